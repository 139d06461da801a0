"""What of a batch is taken in: known relations, times in reach, and lateness by policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adatkg_core.clock import Clock, readable
from adatkg_core.constants import LAST_TIME, LatePolicy
from adatkg_core.events import Fact, Refusal
from adatkg_core.messages import Reason
from adatkg_core.state import Relations

Objection = tuple[Reason, str]  # and a sentence


@dataclass(frozen=True)
class Admission:
    """The places of the facts taken, how many of them are late, and those refused."""

    taken: list[int]
    late: int
    refused: tuple[Refusal, ...]


def admit(
    facts: Sequence[Fact], relations: Relations, watermark: int | None, policy: LatePolicy, max_jump: int
) -> Admission:
    """Sort out facts in log order; each that is taken moves the watermark for those behind it."""
    reached, taken, late, refused = watermark, [], 0, []
    for i, fact in enumerate(facts):
        objection = object_to_fact(fact, relations, reached, policy, max_jump)
        if objection:
            refused.append(Refusal(i, *objection))
            continue
        taken.append(i)
        late += reached is not None and fact.t < reached
        reached = fact.t if reached is None else max(reached, fact.t)
    return Admission(taken, late, tuple(refused))


def object_to_fact(
    fact: Fact,
    relations: Relations,
    watermark: int | None,
    policy: LatePolicy,
    max_jump: int,
    clock: Clock | None = None,
) -> Objection | None:
    """Why a fact cannot be taken in at this watermark; None when it can. A clock gives the times in the sentence."""
    if fact.r not in relations:
        return object_to_relation(fact.r, relations)
    objection = object_to_time(fact.t, watermark, max_jump, clock)
    if objection is None and policy == "refuse" and watermark is not None and fact.t < watermark:
        return Reason.LATE, f"late: time {readable(clock, fact.t)} is before the watermark {readable(clock, watermark)}"
    return objection


def object_to_relation(name: str, relations: Relations) -> Objection:
    """What is said of a relation that is not among the known ones."""
    near = " or ".join(map(repr, relations.nearest(name)))
    hint = f"; did you mean {near}?" if near else ""
    return Reason.UNKNOWN_RELATION, f"unknown relation {name!r}: the present model does not know it{hint}"


def object_to_time(
    time: int, watermark: int | None, max_jump: int | None, clock: Clock | None = None
) -> Objection | None:
    """Why the watermark cannot move to this time; one wrong date must not make all that follows late."""
    if abs(time) > LAST_TIME:
        return Reason.BAD_TIME, f"time {time} is out of range: a tick has 32 bits"
    if watermark is not None and max_jump is not None and time - watermark > max_jump:
        when, reached = readable(clock, time), readable(clock, watermark)
        return Reason.FAR_FUTURE, f"time {when} is more than {max_jump} ticks ahead of {reached}"
    return None

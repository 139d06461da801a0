"""What of a batch is taken in: known relations, times in reach, and lateness by policy."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from adatkg_core.events import Fact, Refusal

LatePolicy = Literal["apply", "refuse"]
MAX_JUMP = 1_000  # ticks that the watermark may move at once
LAST_TIME = 2**31 - 1  # ticks are kept in 32 bits
Objection = tuple[str, str]  # in one word, and in a sentence


@dataclass(frozen=True)
class Admission:
    """The places of the facts taken, how many of them are late, and those refused."""

    taken: list[int]
    late: int
    refused: tuple[Refusal, ...]


def admit(
    facts: Sequence[Fact], relations: Mapping[str, int], watermark: int | None, policy: LatePolicy, max_jump: int
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
    fact: Fact, relations: Container[str], watermark: int | None, policy: LatePolicy, max_jump: int
) -> Objection | None:
    """Why a fact cannot be taken in at this watermark; None when it can."""
    if fact.r not in relations:
        return object_to_relation(fact.r)
    objection = object_to_time(fact.t, watermark, max_jump)
    if objection is None and policy == "refuse" and watermark is not None and fact.t < watermark:
        return "late", f"late: time {fact.t} is before the watermark {watermark}"
    return objection


def object_to_relation(name: str) -> Objection:
    """What is said of a relation that is not in the vocabulary."""
    return "unknown-relation", f"unknown relation {name!r}: the present model does not know it"


def object_to_time(time: int, watermark: int | None, max_jump: int | None) -> Objection | None:
    """Why the watermark cannot move to this time; one wrong date must not make all that follows late."""
    if abs(time) > LAST_TIME:
        return "bad-time", f"time {time} is out of range: a tick has 32 bits"
    if watermark is not None and max_jump is not None and time - watermark > max_jump:
        return "far-future", f"time {time} is more than {max_jump} ticks ahead of {watermark}"
    return None

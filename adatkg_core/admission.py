"""Which facts of a batch are taken in: known relation, a time in reach, and lateness by policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from adatkg_core.events import Fact, Refusal

LatePolicy = Literal["apply", "refuse"]
LAST_TIME = 2**31 - 1  # ticks are kept in 32 bits


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
        behind = reached is not None and fact.t < reached
        if fact.r not in relations:
            refused.append(Refusal(i, f"unknown relation {fact.r!r}: the present model does not know it"))
        elif abs(fact.t) > LAST_TIME:
            refused.append(Refusal(i, f"time {fact.t} is out of range: a tick has 32 bits"))
        elif reached is not None and fact.t - reached > max_jump:
            refused.append(Refusal(i, f"time {fact.t} is more than {max_jump} ticks ahead of {reached}"))
        elif behind and policy == "refuse":
            refused.append(Refusal(i, f"late: time {fact.t} is before the watermark {reached}"))
        else:
            taken.append(i)
            late += behind
            reached = fact.t if reached is None else max(reached, fact.t)
    return Admission(taken, late, tuple(refused))

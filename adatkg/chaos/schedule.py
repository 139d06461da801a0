"""Which faults strike when: a pure function of a seed, so that a run which failed can be had again."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

LEAST_GAP = 3.0  # seconds between two faults


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    `target` is the worker or graph that it strikes, as a number of which the remainder counts; `seconds` is how long it
    lasts, where it lasts; `draw`, from 0 to 1, decides whatever else it has to choose.
    """

    at: float  # seconds after the beginning
    kind: str
    target: int
    seconds: float
    draw: float


def schedule(seed: int, seconds: float, spans: Mapping[str, tuple[float, float]], gap: float) -> list[Fault]:
    """The faults of a run of so many seconds, one every `gap` seconds on average.

    `spans` are the kinds, each with how long it lasts at least and at most. All kinds have had their turn before one
    comes again.
    """
    chance = random.Random(f"chaos {seed}")
    kinds = _in_turn(chance, sorted(spans))
    faults: list[Fault] = []
    at = _gap(chance, gap)
    while at < seconds:
        kind = next(kinds)
        faults.append(Fault(at, kind, chance.randrange(1 << 16), chance.uniform(*spans[kind]), chance.random()))
        at += _gap(chance, gap)
    return faults


def _gap(chance: random.Random, mean: float) -> float:
    return LEAST_GAP + chance.expovariate(1 / max(mean - LEAST_GAP, 0.1))


def _in_turn(chance: random.Random, kinds: list[str]) -> Iterator[str]:
    while True:
        order = list(kinds)
        chance.shuffle(order)
        yield from order

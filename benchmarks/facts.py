"""How many facts a second the engine of `live` takes in, alone: ICEWS14's test period behind valid, time by time.

What a name never heard of costs is the text encoder's time; the rate with it is told beside.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import time

from adatkg_core.engine import Engine
from adatkg_core.events import Fact
from adatkg_core.runtime import keep_freed_memory
from streams.settings import StreamSettings

from .results import tell
from .untrained import after_valid

RUNS = 3  # the middle one counts


def main() -> None:
    """Take the same facts in again and again, each time from the same state."""
    keep_freed_memory()
    engine, facts = after_valid()
    state = engine.snapshot()
    with_names = _rate(engine, facts)  # and warm
    rates = []
    for _ in range(RUNS):
        engine.restore(state)
        engine.register([name for fact in facts for name in (fact.s, fact.o)])
        rates.append(_rate(engine, facts))
    tell("facts_per_second", sorted(rates)[RUNS // 2], with_new_names=with_names)


def _rate(engine: Engine, facts: list[Fact]) -> float:
    """In batches of a worker's size, until the last of them is in the state."""
    size = StreamSettings().batch_events
    began = time.perf_counter()
    for start in range(0, len(facts), size):
        engine.observe(facts[start : start + size])
    engine.turn_to(facts[-1].t + 1)
    return len(facts) / (time.perf_counter() - began)


if __name__ == "__main__":
    main()

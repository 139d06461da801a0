"""What `live` takes for one question at a time on ICEWS14 after valid: of an idle engine, and each behind a new fact.

First nothing else happens. Then 2,000 facts of one time arrive one by one, and after each somebody asks about the next
time, as people and services do; what a fact and its question take must not grow with the facts before them.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import time

import numpy as np

from adatkg_core.engine import Engine
from adatkg_core.events import Fact, Query
from adatkg_core.runtime import keep_freed_memory

from .matmul import matmul_gflops
from .results import tell
from .untrained import after_valid

ROUNDS, WARM, ASKED, FACTS = 5, 50, 1_000, 2_000
EDGE = 100  # facts compared at both ends


def main() -> None:
    """Ask, then take facts in and ask, and ask again; several times, since a machine does not always run as fast."""
    keep_freed_memory()
    rounds = [_round() for _ in range(ROUNDS)]
    one = np.concatenate([alone for alone, _ in rounds])
    both = np.stack([behind for _, behind in rounds])  # [rounds, facts]
    middle, gflops = float(np.median(one)), matmul_gflops()
    p50, p99 = 1e3 * middle, 1e3 * float(np.quantile(one, 0.99))
    first, last = float(np.median(both[:, :EDGE])), float(np.median(both[:, -EDGE:]))
    tell("one_query_p50_ms", p50)
    tell("one_query_p99_ms", p99)
    tell("one_query_p50_in_gflop", middle * gflops, p50_ms=p50)
    tell("next_after_fact_to_one_query", float(np.median(both)) / middle, p50_ms=1e3 * float(np.median(both)))
    tell("next_after_fact_last_to_first", last / first, first_ms=1e3 * first, last_ms=1e3 * last)


def _round() -> tuple[list[float], list[float]]:
    """Seconds of questions alone, before the facts and behind them, and of facts with their questions."""
    engine, facts = after_valid()
    now = facts[0].t
    facts = [Fact(fact.s, fact.r, fact.o, now) for fact in facts[: WARM + FACTS]]
    # What a name never heard of costs is the text encoder's time, and not looked at here.
    engine.register([name for fact in facts for name in (fact.s, fact.o)])
    one = _alone(engine, facts, now)
    both = [_seconds(engine, [fact], _question(i, fact, now + 1)) for i, fact in enumerate(facts)][WARM:]
    return one + _alone(engine, facts, now + 1), both


def _alone(engine: Engine, facts: list[Fact], time: int) -> list[float]:
    return [_seconds(engine, [], _question(i, fact, time)) for i, fact in enumerate(facts[: WARM + ASKED])][WARM:]


def _question(number: int, fact: Fact, time: int) -> Query:
    """About either end in turn."""
    return Query(s=fact.s, r=fact.r, t=time) if number % 2 else Query(o=fact.o, r=fact.r, t=time)


def _seconds(engine: Engine, facts: list[Fact], query: Query) -> float:
    began = time.perf_counter()
    engine.observe(facts)
    engine.predict([query])
    return time.perf_counter() - began


if __name__ == "__main__":
    main()

"""Reading slots of the state's tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from adatkg_core.evidence.compiled.layout import ONE, PAGE, Pairs, Table
from adatkg_core.evidence.compiled.memory import Cells, floats, narrow, wide
from adatkg_core.evidence.questions import OLDEST
from adatkg_core.runtime import compiled

QUARTER: Any = np.float32(0.25)


@compiled
def slot_of(pages: Cells[int], width: int, row: int, i: int) -> int:
    """The place of the i-th slot of a row."""
    return np.int64(pages[row * width + i // PAGE]) * PAGE + i % PAGE  # type: ignore[return-value]


@compiled
def faded(stored: float, last: int, time: int, left: Cells[float]) -> float:
    """As `questions.decayed`, of one count."""
    return stored * left[min(max(time - last, 0), OLDEST - 1)]


@compiled
def damped(count: float) -> float:
    """As `questions.damped`, of one count."""
    return count / (ONE + QUARTER * count)  # type: ignore[no-any-return]


@compiled
def read_pairs(fact: Table, kinds: int, count: int, time: int, n: int, slow: int, fast: int, pairs: Pairs) -> None:
    """The pairs of distinct relations, into room that is large enough for them."""
    kind, fill, pages = wide(kinds), narrow(fact.fill), narrow(fact.pages)
    near, far, last = narrow(fact.relation), narrow(fact.other), narrow(fact.last)
    slowly, quickly, slow_left, fast_left = floats(fact.slow), floats(fact.fast), floats(slow), floats(fast)
    start, one, other = wide(pairs.start), narrow(pairs.one), narrow(pairs.other)
    out_slow, out_fast = floats(pairs.slow), floats(pairs.fast)
    at = 0
    start[0] = 0
    for i in range(count):
        for j in range(fill[kind[i]]):
            slot = slot_of(pages, fact.width, kind[i], j)
            if near[slot] < n and far[slot] < n:
                one[at], other[at] = near[slot], far[slot]
                out_slow[at] = damped(faded(slowly[slot], last[slot], time, slow_left))
                out_fast[at] = damped(faded(quickly[slot], last[slot], time, fast_left))
                at += 1
        start[i + 1] = at

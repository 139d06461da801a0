"""Facts by rows: what is not there is refused before compiled code could look for it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from adatkg_core.engine.fact_rows import by_time
from adatkg_core.errors import InputError
from tests.support.small_graph import assert_same_snapshot, engine_with_past


@pytest.mark.parametrize(
    ("fact", "problem"),
    [
        ((-1, 0, 1), "no entity -1"),
        ((0, 0, 10_000), "no entity 10000, for"),
        ((0, -3, 1), "no relation -3"),
        ((0, 500, 1), "no relation 500, for"),
    ],
)
def test_facts_of_rows_that_nobody_registered_are_refused_and_leave_no_trace(
    fact: tuple[int, int, int], problem: str
) -> None:
    engine, other = engine_with_past(), engine_with_past()
    time = (engine.watermark or 0) + 1
    facts = torch.tensor([(0, 0, 1, time), (*fact, time)])
    with pytest.raises(InputError, match=problem):
        engine.observe_rows(facts)
    assert_same_snapshot(engine.snapshot(), other.snapshot())
    engine.observe_rows(facts[:1])


def test_facts_are_dealt_out_by_time_and_late_ones_belong_to_the_time_before() -> None:
    facts = np.array([(0, 0, 1, t) for t in (3, 5, 5, 4, 7, 6, 9)])
    assert list(by_time(facts, None)) == [(3, slice(0, 1)), (5, slice(1, 4)), (7, slice(4, 6)), (9, slice(6, 7))]
    assert list(by_time(facts, 6)) == [(6, slice(0, 4)), (7, slice(4, 6)), (9, slice(6, 7))]
    assert list(by_time(facts[:0], 6)) == []

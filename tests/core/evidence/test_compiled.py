"""Compiled code and tensor operations find the same candidates and the same features, bit for bit."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adatkg_core.datasets import facts_by_time, load_dataset
from adatkg_core.engine import Engine
from adatkg_core.evidence.all_families import Gathered, gather_by_planes, gather_evidence
from adatkg_core.evidence.compiled import gather
from adatkg_core.evidence.compiled.choice import kth_largest
from adatkg_core.evidence.compiled.memory import floats
from adatkg_core.model import AdaTKG
from adatkg_core.runtime import compiled
from adatkg_core.state import GraphState
from tests.support.evidence_history import EVERY_QUERY, EVERYONE, Commit, ask, commits, empty_state, remember
from tests.support.small_graph import ENCODER, small_config

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TIGHT = {"recall.hops": 2, "recall.partner_slots": 16, "recall.fact_slots": 16, "recall.kin_slots": 16}


def assert_same(state: GraphState, found: Gathered, wanted: Gathered) -> None:
    order = torch.argsort(found.place)
    assert torch.equal(found.place[order], wanted.place)
    assert torch.equal(found.place[found.entry], wanted.place[wanted.entry])
    assert torch.equal(found.features[order], wanted.features)


@quick
@given(
    story=commits(8),
    queries=st.lists(st.sampled_from(EVERY_QUERY), min_size=1, max_size=40),
    most=st.integers(1, 12),
    tight=st.booleans(),
    later=st.sampled_from([0, 1, 3, 40, 5000]),
)
def test_both_ways_agree_on_any_history(
    story: list[Commit], queries: list[tuple[int, int]], most: int, tight: bool, later: int
) -> None:
    history = remember(story, TIGHT if tight else None)
    questions = ask(queries, history.now + later, len(EVERYONE))
    found = Gathered(*gather(history.state, questions, most))
    assert_same(history.state, found, gather_by_planes(history.state, questions, most))


def test_nothing_is_found_where_nothing_happened() -> None:
    state = empty_state()
    questions = ask(EVERY_QUERY, 3, len(EVERYONE))
    assert_same(state, Gathered(*gather(state, questions, 5)), gather_by_planes(state, questions, 5))


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_both_ways_agree_on_real_facts_and_threads_change_no_bit(threads: int) -> None:
    dataset = load_dataset("icews14")
    config = small_config({"recall.evidence": True, "model.names": "brackets"})
    model = AdaTKG(config, ENCODER.encode(list(dataset.relations)), 0).eval()
    engine = Engine(model, list(dataset.relations), ENCODER, entities=dataset.entities)
    for time, rows in facts_by_time(dataset.facts[:4_000]):
        engine.observe_rows(torch.cat((torch.from_numpy(rows[:, :3]), torch.full((len(rows), 1), time)), 1))
    asked = torch.from_numpy(dataset.facts[4_000:4_300])
    time = int(asked[-1, 3])
    engine.turn_to(time)
    questions = ask([(int(s), int(r)) for s, r in asked[:, :2]], time, engine.state.entities)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = gather_evidence(engine.state, questions, 30)
    finally:
        torch.set_num_threads(before)
    assert_same(engine.state, found, gather_by_planes(engine.state, questions, 30))


@compiled
def kth(address: int, count: int, k: int) -> float:
    return kth_largest(floats(address), count, k)  # type: ignore[no-any-return]


@given(values=st.lists(st.integers(0, 9), min_size=1, max_size=50), data=st.data())
def test_the_kth_largest_is_found_whatever_repeats(values: list[int], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(values)))
    cells = torch.tensor(values, dtype=torch.float32)
    assert kth(cells.data_ptr(), len(values), k) == sorted(values, reverse=True)[k - 1]

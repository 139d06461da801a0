"""Prototypes and memories that take the facts of a tick in as they come end bitwise where the single commit does."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from random import Random

import pytest
import torch
from torch import Tensor

from adatkg_core.engine import Engine, Snapshot, commit_facts
from adatkg_core.engine.live_commit import LiveCommit, LiveMemory
from adatkg_core.model import AdaTKG
from adatkg_core.state import GraphState, state_capture
from tests.core.engine.live_commit.test_live_commit import assert_bitwise, assert_same_rows
from tests.support.small_graph import ENCODER, ENTITIES, named, small_config, small_graph, small_model

MEMORIES: dict[str, dict[str, object]] = {
    "none": {"model.memory": "none"},
    "ema": {},
    "ema-per-dimension": {"model.decay": "dimension"},
    "ema-per-entity": {"model.decay": "entity"},
    "gru": {"model.memory": "gru"},
    "attention": {"model.memory": "attention", "model.ring": 2},
    "unscaled": {"model.scaled": False, "model.token": "quarters"},
}
RELATIONS = len(small_graph().relations)
NOW = int(small_graph().facts[-1, 3])
Facts = list[tuple[int, int, int]]

each_memory = pytest.mark.parametrize(
    ("memory", "prior"), [(memory, prior) for memory in MEMORIES for prior in (True, False)]
)


@functools.cache
def model_with(memory: str, prior: bool) -> AdaTKG:
    return small_model(small_config({**MEMORIES[memory], "model.prior": prior}))


def empty_engine(memory: str, prior: bool) -> Engine:
    names = small_graph().entities[:ENTITIES]
    return Engine(model_with(memory, prior), small_graph().relations, ENCODER, entities=names)


@functools.cache
def _past(memory: str, prior: bool) -> Snapshot:
    engine = empty_engine(memory, prior)
    engine.observe(named(small_graph().facts.tolist()))
    engine.advance(NOW + 1)
    engine.register(["New one", "New two", "New three"])
    return engine.snapshot()


def state_with_past(memory: str, prior: bool) -> tuple[AdaTKG, GraphState]:
    """A state in which nothing is pending, rings are full, and the last three entities have done nothing."""
    engine = empty_engine(memory, prior)
    engine.restore(_past(memory, prior))
    return engine.model, engine.state


def live_with_past(memory: str, prior: bool) -> tuple[GraphState, LiveCommit]:
    model, state = state_with_past(memory, prior)
    return state, LiveCommit(state, LiveMemory(model, state))


def some_facts(choose: Random, entities: int, most: int = 14) -> Facts:
    """Facts of one time, more about some entities than about others, some of them about the new ones."""
    ends = [
        choose.choice((int(entities * choose.random() ** 3), entities - 1 - choose.randrange(3)))
        for _ in range(2 * most)
    ]
    pairs = list(zip(ends[::2], ends[1::2], strict=True))
    return [(s, choose.randrange(RELATIONS), o) for s, o in pairs[: choose.randint(2, most)]]


def take_in_parts(live: LiveCommit, facts: Facts, now: int, choose: Random) -> None:
    start = 0
    while start < len(facts):
        end = start + choose.choice((1, 1, 2, 4))
        live.take(torch.tensor(facts[start:end]), now)
        start = end


def written_by_the_model(state: GraphState) -> dict[str, Tensor]:
    names = ("memory", "updates", "prototype_sum", "prototype_weight")
    return {name: state.tensors[name] for name in names if name in state.tensors}


def assert_close(found: GraphState, wanted: GraphState) -> None:
    theirs = written_by_the_model(wanted)
    for name, tensor in written_by_the_model(found).items():
        torch.testing.assert_close(tensor, theirs[name], rtol=1e-5, atol=1e-5)


def assert_tensors(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    assert [name for name, tensor in wanted.items() if not torch.equal(found[name], tensor)] == []


@each_memory
def test_a_tick_at_once_is_bitwise_the_single_commit_and_in_parts_it_is_so_but_for_rounding(
    memory: str, prior: bool
) -> None:
    choose, now = Random(1), NOW + 1
    model, calm = state_with_past(memory, prior)
    state, live = live_with_past(memory, prior)
    for tick in range(12):
        now += choose.choice((1, 1, 3, 40))
        facts = some_facts(choose, state.entities)
        before = state.export()
        commit_facts(model, calm, torch.tensor(facts), now)
        if tick % 3:
            take_in_parts(live, facts, now, choose)
            assert live.parts > 1 or len(facts) <= 4
            assert_close(state, calm)
            live.undo()
            assert_tensors(state.export(), before)
        live.take(torch.tensor(facts), now)
        assert_same_rows(state, calm)
        live.keep()
        assert_bitwise(state, calm)


@each_memory
@pytest.mark.parametrize("many", [4, 5, 6, 13])
def test_a_ring_that_wraps_around_within_the_tick_is_read_as_it_was_before(memory: str, prior: bool, many: int) -> None:
    model, calm = state_with_past(memory, prior)
    state, live = live_with_past(memory, prior)
    facts = [(0, i % RELATIONS, 1 + i % 3) for i in range(many)]
    assert int(calm.tensors["interactions"][0]) > calm.tensors["ring_time"].shape[1], "the ring is full"
    commit_facts(model, calm, torch.tensor(facts), NOW + 2)
    for fact in facts:
        live.take(torch.tensor([fact]), NOW + 2)
    assert_close(state, calm)


def test_each_interaction_of_a_tick_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    state, live = live_with_past("ema", True)
    encoded: list[int] = []
    encode = AdaTKG.encode_chains

    def counted(model: AdaTKG, state: GraphState, entity: Tensor, *rest: object) -> tuple[Tensor, Tensor]:
        encoded.append(entity.shape[0])
        return encode(model, state, entity, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(AdaTKG, "encode_chains", counted)
    for fact in some_facts(Random(3), state.entities)[:6]:
        live.take(torch.tensor([fact]), NOW + 2)
    assert encoded == [2] * 6


def test_prototypes_fade_once_in_a_tick_also_where_no_chain_holds_anything() -> None:
    model, calm = state_with_past("ema", True)
    state, live = live_with_past("ema", True)
    strangers = [(state.entities - 1, 0, state.entities - 2), (state.entities - 3, 1, state.entities - 1)]
    before = state.tensors["prototype_weight"].clone()
    commit_facts(model, calm, torch.tensor(strangers), NOW + 2)
    for fact in strangers:
        live.take(torch.tensor([fact]), NOW + 2)
    decay = model.config.model.prototype_decay
    assert torch.equal(state.tensors["prototype_weight"], before * decay)
    assert_tensors(written_by_the_model(state), {"prototype_sum": calm.tensors["prototype_sum"]})


def test_entities_for_whom_the_state_has_to_grow_between_two_facts_keep_what_they_have() -> None:
    model, calm = state_with_past("ema", True)
    state, live = live_with_past("ema", True)
    first, second = [(0, 0, 1), (2, 1, 0)], [(500, 0, 1), (0, 2, 499)]
    live.take(torch.tensor(first), NOW + 2)
    for one in (calm, state):
        one.reserve(501)
        one.entities = 501
    live.take(torch.tensor(second), NOW + 2)
    commit_facts(model, calm, torch.tensor(first + second), NOW + 2)
    assert_close(state, calm)


# -- while the state is copied ------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("ending", ["keep", "undo"])
@pytest.mark.parametrize("ends_within", [True, False])
def test_a_tick_that_comes_in_parts_while_the_state_is_copied_is_not_in_the_copy(
    memory: str, ending: str, ends_within: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_capture, "SLICE", 1 << 9)
    choose = Random(5)
    state, live = live_with_past(memory, True)
    wanted, capture = state.export(), state.capture()
    copying = capture.copy()
    for part in range(8):
        assert len([next(copying) for _ in range(9)]) == 9
        live.take(torch.tensor(some_facts(choose, state.entities, 3)), NOW + 2)
        assert part == 7 or live.parts == part + 1
    if ends_within:
        assert list(copying)
    getattr(live, ending)()
    assert ends_within or list(copying)
    assert_tensors(capture.tensors(), wanted)


@pytest.mark.parametrize("memory", ["ema", "gru", "attention"])
def test_what_a_tick_has_changed_is_in_the_next_increment(memory: str) -> None:
    choose = Random(9)
    state, live = live_with_past(memory, True)
    before, changes = state.export(), state.watch_changes()
    for now in (NOW + 2, NOW + 3):
        take_in_parts(live, some_facts(choose, state.entities, 4), now, choose)
        live.keep()
    wanted, capture = state.export(), state.capture(changes)
    capture.finish()
    found, rows = capture.tensors(), capture.rows["entity"]
    assert 0 < rows.shape[0] < state.entities
    for name in ("memory", "updates"):
        assert torch.equal(before[name].index_copy(0, rows, found[name]), wanted[name]), name
    assert torch.equal(found["prototype_sum"], wanted["prototype_sum"])

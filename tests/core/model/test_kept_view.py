"""The kept view is the view of the state as it is, and only what has changed of it is computed again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from adatkg_core.engine import Engine, commit_facts
from adatkg_core.model import AdaTKG, KeptView, View
from adatkg_core.state import GraphState
from tests.support.small_graph import bits, engine_with_past

PAIR = torch.tensor([[2, 0, 5]])  # of one cluster


@pytest.fixture
def viewed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[int]]]:
    """Which rows were computed at each time."""
    computed: list[list[int]] = []
    view = AdaTKG.view

    def noted(model: AdaTKG, state: GraphState, ids: Tensor, **rest: Tensor) -> View:
        computed.append(ids.tolist())
        return view(model, state, ids, **rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch, torch.no_grad():
        patch.setattr(AdaTKG, "view", noted)
        yield computed


def settled(name: str = "default") -> tuple[Engine, KeptView]:
    """An engine whose state nobody but the test writes, and a view of it that has been read once."""
    engine = engine_with_past(name)
    engine.advance(int(engine.watermark or 0) + 1)
    kept = KeptView(engine.model)
    with torch.no_grad():
        kept.read(engine.state)
    return engine, kept


def read_fresh(engine: Engine) -> View:
    with torch.no_grad():
        return engine.model.view(engine.state, torch.arange(engine.state.entities))


def assert_fresh(kept: KeptView, engine: Engine) -> None:
    with torch.no_grad():
        found, wanted = kept.read(engine.state), read_fresh(engine)
    assert torch.allclose(found.fused, wanted.fused, rtol=1e-5, atol=2e-6)
    assert torch.allclose(found.unit, wanted.unit, atol=1e-6)
    assert torch.allclose(found.gate, wanted.gate, atol=1e-6)
    assert torch.equal(found.cluster, wanted.cluster)


def commit(engine: Engine, facts: Tensor, later: int = 1) -> Tensor:
    """Facts are in the state from now on; the entities in them."""
    assert engine.watermark is not None
    commit_facts(engine.model, engine.state, facts, engine.watermark + later)
    return facts[:, [0, 2]].flatten()


@pytest.mark.parametrize("name", ["default", "memoryless", "gru", "attention", "constant-gate", "as-published"])
def test_after_facts_the_view_is_that_of_the_state(name: str) -> None:
    engine, kept = settled(name)
    draw = torch.Generator().manual_seed(4)
    for later in range(1, 30):
        facts = torch.randint(5, (1 + later % 3, 3), generator=draw) * torch.tensor([7, 1, 3])
        kept.renew(engine.state, commit(engine, facts, later))
        assert_fresh(kept, engine)


def test_what_was_read_anew_is_bitwise_the_view_of_the_state() -> None:
    engine, kept = settled()
    kept.renew(engine.state, commit(engine, PAIR))
    with torch.no_grad():
        found, wanted = KeptView(engine.model).read(engine.state), read_fresh(engine)
    assert bits(found.fused) == bits(wanted.fused) and bits(found.unit) == bits(wanted.unit)


def test_only_entities_of_the_facts_and_members_of_their_clusters_are_computed_again(viewed: list[list[int]]) -> None:
    engine, kept = settled()
    viewed.clear()
    kept.renew(engine.state, commit(engine, PAIR))
    kept.read(engine.state)
    cluster = engine.state.tensors["cluster"][: engine.state.entities]
    members = (cluster == cluster[2]).nonzero().squeeze(1).tolist()
    assert len(viewed) == 1 and sorted({*viewed[0]}) == members
    assert len(members) < engine.state.entities / 2, "the others only faded"


def test_without_prototypes_only_entities_of_the_facts_are_computed_again(viewed: list[list[int]]) -> None:
    engine, kept = settled("constant-gate")
    viewed.clear()
    kept.renew(engine.state, commit(engine, PAIR))
    kept.read(engine.state)
    kept.read(engine.state)
    assert viewed == [[2, 5]]


def test_an_entity_that_is_new_is_computed_alone(viewed: list[list[int]]) -> None:
    engine, kept = settled()
    viewed.clear()
    n = engine.state.entities
    engine.register(["Somebody new"])
    assert kept.read(engine.state).fused.shape[0] == n + 1
    assert viewed == [[n]]
    assert_fresh(kept, engine)


def test_steps_of_a_prototype_that_are_too_small_to_be_seen_do_not_add_up() -> None:
    engine, kept = settled("as-published")
    nobody, eps = torch.zeros(0, dtype=torch.int64), torch.finfo(torch.float32).eps
    for _ in range(2_000):
        engine.state.tensors["prototype_sum"] *= 1 + 2 * eps
        kept.renew(engine.state, nobody)
        with torch.no_grad():
            kept.read(engine.state)
    assert_fresh(kept, engine)


def test_a_prototype_that_moves_and_comes_back_is_read_both_times() -> None:
    engine, kept = settled()
    before = engine.state.tensors["prototype_sum"].clone()
    for prototypes in (before.flip(1), before):
        engine.state.tensors["prototype_sum"].copy_(prototypes)
        kept.renew(engine.state, torch.zeros(0, dtype=torch.int64))
        assert_fresh(kept, engine)


def test_prototypes_that_only_fade_have_nobody_computed_again(viewed: list[list[int]]) -> None:
    engine, kept = settled()
    viewed.clear()
    for name in ("prototype_sum", "prototype_weight"):
        engine.state.tensors[name] *= 0.99
    kept.renew(engine.state, torch.zeros(0, dtype=torch.int64))
    kept.read(engine.state)
    assert sum(map(len, viewed)) == 0

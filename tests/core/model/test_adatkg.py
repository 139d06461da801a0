"""The parts of an entity have one scale, and the model's options do what they say."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from adatkg_core.engine import Engine
from adatkg_core.model import AdaTKG
from adatkg_core.model.chain_encoder import ChainEncoder
from adatkg_core.model.decoder import ConvTransE
from adatkg_core.state import Chains, GraphState
from tests.support.small_graph import ENCODER, engine_with_past, named, small_config, small_graph

GRAPH = small_graph()
AFTER = int(GRAPH.facts[-1, 3]) + 1
DIM = 64


def untrained(**changes: Any) -> Engine:
    """An engine that has seen the small graph, with parameters as they are before training."""
    torch.manual_seed(0)
    settings = {"model.dim": DIM, "recall.enabled": False, **{f"model.{key}": value for key, value in changes.items()}}
    model = AdaTKG(small_config(settings), ENCODER.encode(list(GRAPH.relations)), GRAPH.n_entities).eval()
    engine = Engine(model, GRAPH.relations, ENCODER)
    engine.observe(named(GRAPH.facts.tolist()))
    engine.turn_to(AFTER)
    return engine


def within_clusters(engine: Engine) -> Tensor:
    """The mean cosine of different entities of the same cluster, before anything is learned."""
    view = engine.model.view(engine.state, torch.arange(engine.state.entities))
    same = (view.cluster.unsqueeze(0) == view.cluster.unsqueeze(1)).fill_diagonal_(False)
    return (view.unit @ view.unit.T)[same].mean()


def test_before_training_scaled_entities_of_a_cluster_are_told_apart_and_others_are_not() -> None:
    with torch.no_grad():
        assert within_clusters(untrained(memory="none")) < 0.8
        assert within_clusters(untrained(memory="none", scaled=False)) > 0.9


def test_scaled_prototypes_have_half_a_names_length_and_are_zero_where_nobody_was() -> None:
    engine = untrained(memory="none")
    engine.model.transfer = torch.nn.Sequential(torch.nn.Linear(2 * DIM, DIM), OneEverywhere())
    ids = torch.arange(engine.state.entities)
    base, cluster = torch.randn(len(ids), DIM), engine.state.tensors["cluster"][ids]
    with torch.no_grad():
        lengths = engine.model._transfer(engine.state, base, cluster).norm(dim=1)
        assert lengths == pytest.approx(math.sqrt(DIM) / 2, rel=1e-4)
        engine.state.reset()
        assert bool((engine.model._transfer(engine.state, base, cluster) == 0).all())


class OneEverywhere(torch.nn.Module):
    """Whatever is asked, all of the prototype is taken."""

    def forward(self, hidden: Tensor) -> Tensor:
        return torch.ones_like(hidden)


def test_a_scaled_score_is_a_cosine_times_the_learned_sharpness() -> None:
    engine = engine_with_past("model-alone")
    sharpness = engine.model.sharpness
    assert sharpness is not None
    rows = torch.arange(engine.state.entities)
    scores = torch.cat([part for _, part in engine.score_rows(rows, rows % len(GRAPH.relations), AFTER)])
    assert scores.abs().max() <= sharpness.exp() * (1 + 1e-5)
    assert scores.min() < 0 < scores.max()


def test_clusters_are_assigned_by_the_vectors_that_a_view_has() -> None:
    engine = untrained(memory="none", prior=False, decay="entity")
    ids = torch.arange(engine.state.entities)
    codebook = engine.model.codebook
    assert codebook is not None
    with torch.no_grad():
        assert torch.equal(
            engine.model.assign_clusters(engine.state, ids),
            codebook.assign(engine.model.view(engine.state, ids).fused),
        )


# -- tokens -------------------------------------------------------------------------------------------------------


def encoded(token: str, *, entity: int, other: int, age: int) -> Tensor:
    """The encoding of a chain of two facts of which the second has these rows and age."""
    torch.manual_seed(2)
    encoder = ChainEncoder(8, small_config({"model.token": token}).model).eval()
    vectors, relations = torch.randn(5, 8), torch.randn(3, 16)
    who, whom = torch.tensor([entity, entity]), torch.tensor([1, other])
    kind, ages = torch.tensor([0, 1]), torch.tensor([1, age])
    chains = Chains(torch.tensor([0]), torch.ones(1, 2, dtype=torch.bool), torch.arange(2), who, kind, whom, ages)
    found: Tensor = encoder(chains, vectors.__getitem__, relations, relations[2:])
    return found.detach()


@pytest.mark.parametrize("token", ["sum", "quarters"])
def test_a_token_tells_the_partner_and_the_age(token: str) -> None:
    plain = encoded(token, entity=0, other=2, age=3)
    assert not torch.allclose(encoded(token, entity=0, other=3, age=3), plain)
    assert not torch.allclose(encoded(token, entity=0, other=2, age=4), plain)


def test_only_a_token_of_quarters_tells_whose_chain_it_is() -> None:
    plain = encoded("sum", entity=0, other=2, age=3)
    assert torch.equal(encoded("sum", entity=4, other=2, age=3), plain)
    quarters = encoded("quarters", entity=0, other=2, age=3)
    assert not torch.allclose(encoded("quarters", entity=4, other=2, age=3), quarters)


@pytest.mark.parametrize("rectified", [True, False])
def test_only_a_rectified_decoder_wants_no_negative_coordinate(rectified: bool) -> None:
    torch.manual_seed(3)
    decoder = ConvTransE(16, 4, 3, 0.0, rectified=rectified).eval()
    wanted = decoder(torch.randn(8, 16), torch.randn(8, 16))
    assert bool((wanted >= 0).all()) == rectified


def test_a_state_of_a_scaled_model_forgets_its_memories_at_a_reset() -> None:
    engine = untrained()
    state: GraphState = engine.state
    ids = torch.arange(state.entities)
    with torch.no_grad():
        assert bool((engine.model.view(state, ids).gate > 0).any())
        state.reset()
        assert bool((engine.model.view(state, ids).gate == 0).all())

"""What the model adds to recall is learned where the model itself does not learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from adatkg_core.datasets import synthesize
from adatkg_core.engine import Engine
from adatkg_core.model import AdaTKG
from adatkg_core.text.encoder import HashEncoder
from tests.support.small_graph import assert_same_bits, named, small_config, small_graph, small_model
from trainer import train
from trainer.fit.objective import OF_RECALL, Stage, combining_from, cross_entropy, enter, objective

pytestmark = pytest.mark.slow  # seconds of models in all

GRAPH = small_graph()
AFTER = int(GRAPH.facts[-1, 3]) + 1
SUBJECT = torch.arange(12)
RELATION = SUBJECT % (2 * len(GRAPH.relations))
ANSWER = (SUBJECT + 1) % 12


def engine_of(**changes: Any) -> Engine:
    model = small_model(small_config({key.replace("__", "."): value for key, value in changes.items()}))
    engine = Engine(model, GRAPH.relations, HashEncoder(24))
    engine.observe(named(GRAPH.facts.tolist()))
    engine.turn_to(AFTER)
    return engine


def gradients(engine: Engine, stage: Stage, part: str = "objective") -> dict[str, Tensor]:
    """Of every parameter that gets one, by the objective of a stage or by the loss of one part of the scores."""
    model = engine.model
    model.zero_grad()
    enter(model, stage)
    torch.manual_seed(0)
    view = model.view(engine.state, torch.arange(engine.state.entities))
    scores = model.score(engine.state, view, SUBJECT, RELATION, AFTER)
    if part == "objective":
        loss = objective(scores, ANSWER, None, stage, model.config.train)
    else:
        loss = cross_entropy(getattr(scores, part), ANSWER, None)
    loss.backward()  # type: ignore[no-untyped-call]
    return {name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None}


def parts_of(found: dict[str, Tensor]) -> set[str]:
    """Which of recall, trust and the model got a gradient that is not zero."""
    moved = [name for name, gradient in found.items() if bool(gradient.any())]
    return {name.partition(".")[0] if name.startswith(OF_RECALL) else "model" for name in moved}


def test_apart_each_part_learns_from_its_own_loss_and_trust_from_none() -> None:
    found = gradients(engine_of(), "apart")
    assert parts_of(found) == {"model", "recall"}
    for part, mine in (("recalled", True), ("reasoned", False)):
        alone = gradients(engine_of(), "apart", part)  # a fresh one, for clusters move with every step
        assert parts_of(alone) == {"recall" if mine else "model"}
        for name, gradient in alone.items():
            if name.startswith("recall.") == mine and bool(gradient.any()):
                torch.testing.assert_close(found[name], gradient)


def test_combining_moves_recall_and_trust_and_nothing_of_the_model() -> None:
    engine = engine_of()
    before = {name: tensor.clone() for name, tensor in engine.model.state_dict().items()}
    assert parts_of(gradients(engine, "combining")) == {"recall", "trust"}
    assert_same_bits(engine.model.state_dict(), before)  # neither batch statistics nor clusters have moved


def test_together_all_parts_learn_from_the_sum_of_their_scores() -> None:
    engine = engine_of(train__alone_weight=0.0)
    gradients(engine, "combining")  # what did not learn before learns again
    assert parts_of(gradients(engine, "together")) == {"model", "recall", "trust"}


@pytest.mark.parametrize(("share", "first"), [(0.5, 8), (0.85, 13), (0.99, 15), (0.01, 0)])
def test_combining_begins_after_a_share_of_the_times_and_never_later_than_the_last(share: float, first: int) -> None:
    model = small_model(small_config({"train.combine_from": share}))
    facts = synthesize(40, 5, 16, 12, seed=3).facts
    assert combining_from(model, facts) == first


@pytest.mark.parametrize(
    "changes",
    [{"train.combine_from": 0.0}, {"train.protocol": "snapshot"}, {"model.enabled": False}, {"recall.enabled": False}],
    ids=str,
)
def test_where_there_is_nothing_to_combine_all_learn_together_all_the_time(changes: dict[str, Any]) -> None:
    assert combining_from(small_model(small_config(changes)), GRAPH.facts) is None


def test_a_run_that_only_combines_leaves_the_model_as_it_began(tmp_path: Path) -> None:
    graph = synthesize(30, 4, 12, 8, seed=5)
    config = small_config({"train.epochs": 1, "train.combine_from": 0.001, "train.burn_in": 0.0, "train.batch": 16})
    found = dict(train(graph, config, HashEncoder(24), tmp_path).bundle.model.named_parameters())
    torch.manual_seed(config.train.seed)
    entities = int(graph.split("train")[:, [0, 2]].max()) + 1
    began = AdaTKG(config, HashEncoder(24).encode(list(graph.relations)), entities)
    moved = {name for name, tensor in began.named_parameters() if not torch.equal(found[name], tensor)}
    assert "trust.bias" in moved
    assert all(name.startswith(OF_RECALL) for name in moved)
    assert all(parameter.requires_grad for parameter in found.values())

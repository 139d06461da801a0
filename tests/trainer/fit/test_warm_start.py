"""What an earlier bundle learned carries over by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from adatkg_core.datasets import synthesize
from adatkg_core.errors import InputError
from adatkg_core.model import AdaTKG
from adatkg_core.storage import Bundle
from adatkg_core.text.encoder import HashEncoder
from tests.support.small_graph import randomize, small_config
from trainer import train
from trainer.fit.warm_start import BY_ENTITY, BY_ENTITY_DECAY, BY_RELATION, OWN, start_from

pytestmark = pytest.mark.slow  # seconds of models in all

ENCODER = HashEncoder(24)
OLD, NEW = ("Visit", "Host", "Sue"), ("Sue", "Pay", "Visit", "Arrest")
OLD_PEOPLE, NEW_PEOPLE = ("A", "B", "C"), ("C", "X", "A", "Y")


def model(relations: tuple[str, ...], people: tuple[str, ...], seed: int, changes: dict[str, Any]) -> AdaTKG:
    made = AdaTKG(small_config(changes), ENCODER.encode(relations), len(people))
    randomize(made, seed)
    return made


def test_a_bundle_with_a_memory_that_is_not_kept_any_more_gives_all_the_rest() -> None:
    """`live` had one until it kept only what the recall head reads; its bundles are there still."""
    old = model(OLD, OLD_PEOPLE, 1, {"model.enabled": False, "model.chain_capacity": 64})
    new = model(OLD, OLD_PEOPLE, 2, {"model.enabled": False, "model.chain_capacity": 32, "model.memory": "none"})
    start_from(Bundle(old, OLD, OLD_PEOPLE, "old"), new, OLD, OLD_PEOPLE)
    theirs = old.state_dict()
    assert any(name.startswith("memory") for name in theirs)
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in new.state_dict().items())


@pytest.mark.parametrize("changes", [{}, {"model.decay": "entity"}, {"model.entity": "learned"}])
def test_rows_of_relations_and_entities_go_by_name_and_all_else_as_it_is(changes: dict[str, Any]) -> None:
    old, new = model(OLD, OLD_PEOPLE, 1, changes), model(NEW, NEW_PEOPLE, 2, changes)
    before = {name: tensor.clone() for name, tensor in new.state_dict().items()}
    start_from(Bundle(old, OLD, OLD_PEOPLE, "old"), new, NEW, NEW_PEOPLE)
    mine, theirs = new.state_dict(), old.state_dict()
    people = (BY_ENTITY if "model.entity" in changes else BY_ENTITY_DECAY) if changes else ()
    # Whatever has a row for each relation or entity is in these lists, and nothing else is.
    assert {name for name in mine if mine[name].shape != theirs[name].shape} == {*BY_RELATION, *people, OWN}
    for name, tensor in mine.items():
        if name == OWN:
            assert torch.equal(tensor, before[name])
        elif name in BY_RELATION:
            for row, known in {0: 2, 2: 0, 4: 5, 6: 3}.items():  # Sue, Visit, and both inverses
                assert torch.equal(tensor[row], theirs[name][known]), name
            assert torch.equal(tensor[[1, 3, 5, 7]], before[name][[1, 3, 5, 7]]), name
        elif name in people:
            assert torch.equal(tensor[[0, 2]], theirs[name][[2, 0]])
            assert torch.equal(tensor[[1, 3]], before[name][[1, 3]])
        else:
            assert torch.equal(tensor, theirs[name]), name


def test_another_encoder_is_refused() -> None:
    old = model(OLD, OLD_PEOPLE, 1, {})
    other = AdaTKG(small_config({"model.encoder": "hash:32"}), HashEncoder(32).encode(NEW), 0)
    with pytest.raises(InputError, match="without --warm-start"):
        start_from(Bundle(old, OLD, (), "old"), other, NEW, ())


def test_training_goes_on_from_the_old_loss(tmp_path: Path) -> None:
    graph = synthesize(30, 4, 12, 8, seed=5)
    settings = {"train.burn_in": 0.0, "train.batch": 16, "train.lr": 0.01, "train.patience": 0}
    cold = train(graph, small_config(settings | {"train.epochs": 6}), ENCODER, tmp_path / "cold")
    once = small_config(settings | {"train.epochs": 1})
    warm = train(graph, once, ENCODER, tmp_path / "warm", warm=cold.bundle)
    losses = [json.loads(line)["loss"] for line in (tmp_path / "cold" / "curves.jsonl").read_text().splitlines()]
    (loss,) = [json.loads(line)["loss"] for line in (tmp_path / "warm" / "curves.jsonl").read_text().splitlines()]
    assert loss < (losses[0] + losses[-1]) / 2
    # Where it began is part of what a bundle is.
    plain = train(graph, once, ENCODER, tmp_path / "plain")
    assert warm.bundle.version != plain.bundle.version

"""Rounds of retraining on a real log: what they write, promote, refuse and survive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adatkg_core.datasets import Dataset, synthesize
from adatkg_core.errors import InputError
from adatkg_core.events import Fact
from adatkg_core.messages import encode_fact, encode_tick
from adatkg_core.storage import ModelStore
from adatkg_core.text.encoder import HashEncoder
from streams.kafka import event_log, partition_of
from tests.support.running_system import World
from tests.support.small_graph import assert_same_snapshot
from tests.support.trainer_logs import GRAPH, messages, named
from tests.support.trainer_rounds import announced, plan, round_of, store
from trainer import TrainingMetrics, log_trainer
from trainer.retrain import rounds as from_log


class Killed(Exception):
    """What a test throws out of a round to end it anywhere."""


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthesize(30, 4, 16, 12, seed=5)


@pytest.fixture
def world(bootstrap: str, tmp_path: Path) -> World:
    return World(bootstrap, tmp_path)


# -- a round ------------------------------------------------------------------------------------------------------


def test_a_round_gives_a_bundle_and_the_state_of_an_engine_that_followed_the_log(world: World, data: Dataset) -> None:
    late = encode_fact(data.entities[0], data.relations[0], data.entities[1], 2)
    tail = [late, b"no event", encode_tick(40), encode_fact(data.entities[2], data.relations[1], "newcomer", 9_999)]
    world.publish((GRAPH, value) for value in [*messages(data), *tail])
    done = round_of(world)
    assert (done.status, done.offset, done.facts) == ("present", len(data.facts) + len(tail), len(data.facts) + 1)
    assert done.version is not None and done.version.startswith(f"{GRAPH}-{done.offset}-")
    bundle, state = store(world).bundle(GRAPH, done.version), store(world).state(GRAPH, done.version)
    assert state is not None and (state.offset, state.known_through, state.version) == (done.offset, None, done.version)
    where = event_log(world.connection, world.topics)
    assert state.log == where.log_id(partition_of(GRAPH, where.partitions))
    engine = bundle.engine(HashEncoder(24))
    for row in named(data):
        engine.observe([Fact(*row)])
    engine.observe([Fact(data.entities[0], data.relations[0], data.entities[1], 2)])
    engine.advance(40)
    assert_same_snapshot(state.snapshot, engine.snapshot())
    assert store(world).present(GRAPH) == done.version
    note = store(world).note(GRAPH, done.version)
    assert note["status"] == "present" and note["offset"] == done.offset and note["scores"] == done.scores
    (only,) = announced(world)
    assert (only.version, only.status) == (done.version, "present")
    assert only.verdict is not None and only.verdict.present is None and only.verdict.candidate > 0
    folder = world.folder / "archive" / world.prefix / GRAPH
    assert {place.name for place in folder.iterdir()} == {state.log, "lock"}
    assert {place.name for place in (folder / state.log).iterdir()} == {"segments", "done.json"}


def test_only_what_is_better_by_the_margin_is_promoted(world: World, data: Dataset) -> None:
    world.publish((GRAPH, value) for value in messages(data, 0, 150))
    first = round_of(world)
    world.publish((GRAPH, value) for value in messages(data, 150))
    metrics = TrainingMetrics()
    second = round_of(world, metrics, margin=1.0)
    assert second.status == "candidate" and "had to be better by 1" in second.reason
    assert store(world).present(GRAPH) == first.version and second.version in store(world).versions(GRAPH)
    assert second.scores is not None and 0 < second.scores["present"] < 1 and 0 < second.scores["candidate"] < 1
    value = metrics.registry.get_sample_value
    assert value("adatkg_training_runs_total", {"graph": GRAPH, "outcome": "kept"}) == 1
    assert value("adatkg_training_score", {"graph": GRAPH, "who": "present"}) == second.scores["present"]
    assert value("adatkg_training_facts", {"graph": GRAPH}) == len(data.facts)
    third = round_of(world, config={"train.epochs": 3}, keep=1, warm_start=True)
    assert third.status == "present" and third.scores is not None
    assert third.scores["candidate"] >= third.scores["present"]
    assert store(world).line(GRAPH) == [third.version, first.version]
    assert second.version not in store(world).versions(GRAPH)  # neither present nor the one before
    by_key = {one.key: one for one in announced(world)}
    assert by_key[GRAPH.encode()].version == third.version
    kept = by_key[f"{GRAPH}@{second.version}".encode()]
    assert kept.verdict is not None and (kept.verdict.candidate, kept.verdict.present) == (
        second.scores["candidate"],
        second.scores["present"],
    )


def test_a_new_relation_is_learnt_and_costs_the_present_bundle_its_queries(world: World, data: Dataset) -> None:
    world.publish((GRAPH, value) for value in messages(data))
    first = round_of(world)
    people = data.entities
    fresh = [encode_fact(people[i % 5], "Invite", people[i % 7], t) for t in range(16, 22) for i in range(8)]
    world.publish((GRAPH, value) for value in fresh)
    second = round_of(world)
    assert first.version is not None and second.version is not None and second.scores is not None
    assert "Invite" not in store(world).bundle(GRAPH, first.version).relations
    assert "Invite" in store(world).bundle(GRAPH, second.version).relations
    # The newest window has the new relation only.
    assert second.scores["present"] == 0.0 and second.status == "present"


def test_nothing_is_trained_on_too_little(world: World, data: Dataset) -> None:
    assert round_of(world).status == "waiting"
    world.publish((GRAPH, value) for value in messages(data, 0, 5))
    assert "1 times" in round_of(world).reason
    world.publish((GRAPH, value) for value in messages(data, 5))
    done = round_of(world)
    assert done.status == "present"
    with log_trainer(plan(world), world.connection, world.topics, TrainingMetrics()) as trainer:
        assert trainer.new_facts() == 0
        assert trainer.round(at_least=1).status == "waiting"
        assert trainer.round().reason == "this very bundle is present already"
    assert len(announced(world)) == 1


@pytest.fixture(scope="module")
def undisturbed(bootstrap: str, data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The version that the first facts give when nothing goes wrong."""
    world = World(bootstrap, tmp_path_factory.mktemp("undisturbed"))
    world.publish((GRAPH, value) for value in messages(data, 0, 150))
    return str(round_of(world).version)


# -- kills --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["judge", "announce", "make_present", "prune"])
def test_a_kill_at_any_step_leads_to_the_same_end(
    world: World, data: Dataset, undisturbed: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    world.publish((GRAPH, value) for value in messages(data, 0, 150))

    def kill(*arguments: Any, **options: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(from_log if step in ("judge", "announce") else ModelStore, step, kill)
        with pytest.raises(Killed):
            round_of(world)
    world.publish((GRAPH, value) for value in messages(data, 150))  # these are for the next round
    done = round_of(world)
    assert (done.status, done.offset) == ("present", 150)
    assert store(world).present(GRAPH) == announced(world)[-1].version == done.version == undisturbed


def test_a_decision_that_others_have_overtaken_is_made_again(
    world: World, data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.publish((GRAPH, value) for value in messages(data))
    first = round_of(world)
    spare = round_of(world, config={"train.seed": 2}, margin=1.0)
    assert spare.version is not None and first.version is not None

    def kill(*arguments: Any, **options: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(from_log, "announce", kill)
        with pytest.raises(Killed):
            round_of(world, config={"train.seed": 3}, margin=1.0)
    store(world).make_present(GRAPH, spare.version)
    done = round_of(world, config={"train.seed": 3}, margin=1.0)
    assert done.status == "candidate" and done.scores is not None and spare.scores is not None
    assert done.scores["present"] == pytest.approx(spare.scores["candidate"])


def test_a_present_bundle_that_cannot_be_read_is_replaced(world: World, data: Dataset) -> None:
    world.publish((GRAPH, value) for value in messages(data))
    first = round_of(world)
    assert first.version is not None
    (Path(store(world).bundle_url(GRAPH, first.version)) / "tensors.safetensors").write_bytes(b"")
    done = round_of(world, config={"train.seed": 2}, margin=0.5)
    assert done.status == "present" and f"{first.version} cannot be read" in done.reason
    with pytest.raises(InputError, match="without --warm-start"):
        (Path(store(world).bundle_url(GRAPH, str(done.version))) / "tensors.safetensors").write_bytes(b"")
        round_of(world, warm_start=True)

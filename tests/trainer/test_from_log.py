"""Rounds of retraining on a real log: what they write, promote, refuse and survive."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adatkg_core.announcements import Announcement, decode_announcement
from adatkg_core.config import Config
from adatkg_core.datasets import Dataset
from adatkg_core.encoder import HashEncoder
from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.events import Fact
from adatkg_core.messages import encode_fact, encode_tick
from adatkg_core.model_store import ModelStore
from adatkg_core.synth import synthesize
from streams.log import open_log
from tests.core.small import assert_same_snapshot, small_config
from tests.end_to_end.world import World, free_port, until
from tests.trainer.logs import GRAPH, messages, named
from trainer import Plan, Round, TrainingMetrics, from_log, log_trainer
from trainer.schedule import Every, Stop, parse_every, run_rounds

QUICK = {"train.epochs": 1, "train.burn_in": 0.0, "train.batch": 64, "train.lr": 0.01}
SET = {
    "model.dim": 16,
    "model.heads": 2,
    "model.encoder": "hash:24",
    "train.burn_in": 0.0,
}


class Killed(Exception):
    """What a test throws out of a round to end it anywhere."""


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthesize(30, 4, 16, 12, seed=5)


@pytest.fixture
def world(bootstrap: str, tmp_path: Path) -> World:
    return World(bootstrap, tmp_path)


def plan(world: World, **changes: Any) -> Plan:
    config: Config = small_config(QUICK | changes.pop("config", {}))
    return replace(Plan(GRAPH, config, str(world.models), world.folder / "archive"), **changes)


def round_of(world: World, metrics: TrainingMetrics | None = None, **changes: Any) -> Round:
    with log_trainer(plan(world, **changes), world.connection, world.topics, metrics or TrainingMetrics()) as trainer:
        return trainer.round()


def announced(world: World) -> list[Announcement]:
    with open_log(world.connection, world.topics.models) as reader:
        first, end = reader.bounds(0)
        return [decode_announcement(record.value) for record in reader.read(0, first, end)]


def store(world: World) -> ModelStore:
    return ModelStore(str(world.models))


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
    assert {place.name for place in folder.iterdir()} == {"segments", "lock", "done.json"}


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
    third = round_of(world, config={"train.epochs": 4}, keep=1)
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


def test_the_same_version_comes_after_a_process_was_killed(world: World, data: Dataset) -> None:
    world.publish((GRAPH, value) for value in messages(data))
    command = train_command(world, "--epochs", "8")
    with start(command, world) as process:
        checkpoint = world.folder / "archive" / world.prefix / GRAPH / "work" / "checkpoint" / "manifest.json"
        until(checkpoint.is_file, "an epoch is done")
        with pytest.raises(InputError, match=f"process {process.pid} is training it already"):
            round_of(world)
        process.kill()
    assert not store(world).versions(GRAPH)
    with start(command, world) as process:
        printed, logged = process.communicate(timeout=100)
    assert process.returncode == 0, logged
    begins = [json.loads(line) for line in logged.splitlines() if '"training_begins"' in line]
    assert begins[0]["resumed"] is True
    again = json.loads(printed)
    assert again.keys() == {"graph", "version", "status", "reason", "scores", "offset", "facts", "seconds"}
    calm = replace_folder(world)
    with start(train_command(calm, "--epochs", "8"), world) as process:
        printed, logged = process.communicate(timeout=100)
    assert json.loads(printed)["version"] == again["version"]


def test_a_trainer_on_a_schedule_follows_the_log_and_stops_cleanly(world: World, data: Dataset) -> None:
    world.publish((GRAPH, value) for value in messages(data, 0, 150))
    port = free_port()
    command = train_command(world, "--epochs", "1", "--every", "1s", "--metrics-port", str(port))
    with start(command, world) as process:
        until(lambda: len(announced(world)) == 1, "the first bundle")
        world.publish((GRAPH, value) for value in messages(data, 150))
        until(lambda: len(announced(world)) == 2, "the second bundle")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
            assert f'adatkg_training_facts{{graph="{GRAPH}"}} {len(data.facts)}.0' in page.read().decode()
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        _, logged = process.communicate(timeout=30)
    assert process.returncode == 0, logged
    assert time.monotonic() - began < 10


# -- the schedule -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "every"),
    [
        ("6h", Every(seconds=21_600)),
        ("1.5m", Every(seconds=90)),
        ("90s", Every(seconds=90)),
        ("5-facts", Every(facts=5)),
    ],
)
def test_a_schedule_is_a_time_or_a_number_of_facts(text: str, every: Every) -> None:
    assert parse_every(text) == every


@pytest.mark.parametrize("text", ["", "6", "0s", "0-facts", "6 hours", "-1h", "facts", "1e3-facts"])
def test_any_other_schedule_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"--every .*50000-facts"):
        parse_every(text)


def test_rounds_are_due_by_facts_and_go_on_after_failures(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.schedule.POLL", 0.0)
    monkeypatch.setattr("trainer.schedule.RETRY", 0.0)
    counts: Iterator[int] = iter([3, 9, 10, 0, 25, 25])
    said: list[str] = []
    stop = Stop()

    class Trainer:
        plan = plan(world)
        rounds = 0

        def unfinished(self) -> bool:
            return False

        def new_facts(self, report: Any) -> int:
            count = next(counts)
            if count == 0:
                raise AdatkgError("the broker is away")
            said.append(str(count))
            return count

        def round(self, at_least: int, report: Any) -> Round:
            self.rounds += 1
            return Round(GRAPH, str(self.rounds), "present", "", None, 0, 0, 0.0)

    def tell(done: Round) -> None:
        said.append(f"round {done.version}")
        if done.version == "2":
            stop.ask()

    run_rounds(Trainer(), Every(facts=10), stop, tell)  # type: ignore[arg-type]
    assert said == ["3", "9", "10", "round 1", "25", "round 2"]
    stop.close()


# -- processes ----------------------------------------------------------------------------------------------------


def train_command(world: World, *more: str) -> list[str]:
    settings = [word for key, value in SET.items() for word in ("--set", f"{key}={value}")]
    place = ["--models", str(world.models), "--archive", str(world.folder / "archive"), "--config", "tiny"]
    where = ["--bootstrap", world.bootstrap, "--topic-prefix", world.prefix, "--device", "cpu", "--json"]
    return [sys.executable, "-m", "adatkg_cli.main", "train", "--from-log", GRAPH, *place, *settings, *where, *more]


def start(command: list[str], world: World) -> subprocess.Popen[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(
        command, cwd=world.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def replace_folder(world: World) -> World:
    """The same log, another archive and store."""
    other = World(world.bootstrap, world.folder / "calm", prefix=world.prefix)
    other.folder.mkdir(exist_ok=True)
    return other


def refused(work: Callable[[], object]) -> str:
    with pytest.raises(InputError) as error:
        work()
    return str(error.value)


def test_wrong_plans_are_refused_with_the_remedy(world: World) -> None:
    assert "between 0 and 1" in refused(lambda: plan(world, window=1.0))
    assert "emerging" in refused(lambda: plan(world, slice="some"))
    assert "at least one" in refused(lambda: plan(world, keep=0))

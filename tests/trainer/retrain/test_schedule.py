"""Trainers as processes: kills, signals, schedules and wrong flags."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adatkg.main import main
from adatkg_core.datasets import Dataset, synthesize
from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.runtime import Stop, stop_on_signals
from tests.support.preloaded import Preloaded
from tests.support.running_system import PATIENCE, World, free_port, until
from tests.support.trainer_logs import GRAPH, messages
from tests.support.trainer_rounds import announced, plan, round_of, store
from trainer import Round, TrainingMetrics, log_trainer
from trainer.retrain import Stopped, parse_every, run_rounds
from trainer.retrain.schedule import Every

SETTINGS = {"model.dim": 16, "model.heads": 2, "model.encoder": "hash:24", "train.burn_in": 0.0}


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthesize(30, 4, 16, 12, seed=5)


@pytest.fixture
def world(bootstrap: str, tmp_path: Path) -> World:
    return World(bootstrap, tmp_path)


# -- processes -----------------------------------------------------------------------------------------------------


@dataclass
class Trainer:
    """A process that retrains, and what it prints and logs."""

    process: Preloaded
    printed: Path
    logged: Path

    def ended(self) -> str:
        """What it printed, once it has ended well."""
        assert self.process.wait(PATIENCE) == 0, self.logged.read_text()
        return self.printed.read_text()


def start(world: World, *more: str) -> Trainer:
    settings = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
    place = ["--models", str(world.models), "--archive", str(world.folder / "archive"), "--config", "tiny"]
    where = ["--bootstrap", world.bootstrap, "--topic-prefix", world.prefix, "--device", "cpu", "--json"]
    words = ("retrain", GRAPH, *place, *settings, *where, *more)
    printed, logged = world.folder / "printed", world.folder / "logged"
    return Trainer(Preloaded(*words, env=os.environ, output=printed, errors=logged), printed, logged)


def test_the_same_version_comes_after_a_process_was_killed(world: World, data: Dataset) -> None:
    world.publish((GRAPH, value) for value in messages(data))
    first = start(world, "--epochs", "8").process
    until(lambda: any(world.folder.glob("archive/*/*/*/work/checkpoint/manifest.json")), "an epoch is done")
    with pytest.raises(InputError, match=f"process {first.pid} is training it already"):
        round_of(world)
    first.kill()
    first.wait()
    assert not store(world).versions(GRAPH)
    # The same log, another archive and store, and nobody who kills.
    calm = World(world.bootstrap, world.folder / "calm", prefix=world.prefix)
    calm.folder.mkdir()
    second = start(world, "--epochs", "8")
    done, wanted = json.loads(second.ended()), json.loads(start(calm, "--epochs", "8").ended())
    begins = [json.loads(line) for line in second.logged.read_text().splitlines() if '"training_begins"' in line]
    assert begins[0]["resumed"] is True
    assert done.keys() == {"graph", "version", "status", "reason", "scores", "offset", "facts", "seconds"}
    assert done["version"] == wanted["version"]
    bundles = [store(each).bundle(GRAPH, done["version"]) for each in (world, calm)]
    assert bundles[0].model.fingerprint() == bundles[1].model.fingerprint()


def test_a_trainer_on_a_schedule_follows_the_log_and_stops_cleanly(world: World, data: Dataset) -> None:
    world.publish((GRAPH, value) for value in messages(data, 0, 150))
    port = free_port()
    trainer = start(world, "--epochs", "1", "--every", "1s", "--set", f"retrain.metrics_port={port}")
    until(lambda: len(announced(world)) == 1, "the first bundle")
    world.publish((GRAPH, value) for value in messages(data, 150))
    until(lambda: len(announced(world)) == 2, "the second bundle")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as page:
        assert f'adatkg_training_facts{{graph="{GRAPH}"}} {len(data.facts)}.0' in page.read().decode()
    trainer.process.terminate()
    trainer.ended()


# -- the schedule -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "every"),
    [
        ("6h", Every(seconds=21_600)),
        ("1.5m", Every(seconds=90)),
        ("90s", Every(seconds=90)),
        ("5-facts", Every(facts=5)),
        ("drop-0.03", Every(drop=0.03)),
    ],
)
def test_a_schedule_is_a_time_a_number_of_facts_or_a_drop(text: str, every: Every) -> None:
    assert parse_every(text) == every


@pytest.mark.parametrize("text", ["", "6", "0s", "0-facts", "6 hours", "-1h", "facts", "1e3-facts", "drop-3"])
def test_any_other_schedule_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"--every .*50000-facts"):
        parse_every(text)


def test_rounds_are_due_by_facts_and_go_on_after_failures(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.retrain.schedule.POLL", 0.0)
    monkeypatch.setattr("trainer.retrain.schedule.RETRY", 0.0)
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


def test_a_signal_ends_a_round_that_can_go_on_later(world: World, data: Dataset) -> None:
    world.publish((GRAPH, value) for value in messages(data, 0, 100))
    with log_trainer(plan(world), world.connection, world.topics, TrainingMetrics()) as trainer:
        with stop_on_signals() as stop:

            def report(stage: str, done: int, total: int) -> None:
                if stage == "train":
                    os.kill(os.getpid(), signal.SIGTERM)

            with pytest.raises(Stopped):
                run_rounds(trainer, None, stop, lambda done: None, report)
            assert stop.wait(60)
        assert trainer.unfinished() and not store(world).versions(GRAPH)
        assert trainer.round().status == "present" and not trainer.unfinished()


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["train", "icews14", "--from-log", "g"], "extra argument"),
        (["train", "--from-log", "g", "--to", "40"], "No such option: --to"),
        (["train", "--from-log=g", "--every", "soon"], "50000-facts"),
        (["retrain", "g", "--every", "soon"], "50000-facts"),
        (["retrain", "g", "--set", "retrain.slice=best"], "emerging"),
        (["retrain", "g", "--set", "retrain.metrics_port=70000"], "65535"),
        (["retrain", "g", "--set", "retrain.patience=1"], "metrics_port"),
        (["train", "icews14", "--every", "6h", "--out", "x"], "No such option: --every"),
        (["train"], "Missing argument"),
    ],
)
def test_wrong_flags_are_refused_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], remedy: str
) -> None:
    monkeypatch.setattr("sys.argv", ["adatkg", *arguments, "--config", "tiny"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2 and remedy in capsys.readouterr().err


def refused(work: Callable[[], object]) -> str:
    with pytest.raises(InputError) as error:
        work()
    return str(error.value)


def test_wrong_plans_are_refused_with_the_remedy(world: World) -> None:
    assert "between 0 and 1" in refused(lambda: plan(world, window=1.0))
    assert "emerging" in refused(lambda: plan(world, slice="some"))
    assert "at least one" in refused(lambda: plan(world, keep=0))

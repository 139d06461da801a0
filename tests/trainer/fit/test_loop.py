"""Training moves what must learn, and neither a kill nor a second run changes its result."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from structlog.testing import capture_logs
from torch import Tensor

from adatkg_core.datasets import Dataset, synthesize
from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.settings import Config
from adatkg_core.storage import read_artifact
from adatkg_core.text import NameStructure, find_structure
from adatkg_core.text.encoder import HashEncoder
from tests.support.small_graph import assert_same_bits, small_config
from trainer import Run, train
from trainer.fit import Report
from trainer.fit.checkpoint import save_checkpoint

ENCODER = HashEncoder(24)
QUICK: dict[str, Any] = {
    "train.epochs": 3,
    "train.burn_in": 0.0,
    "train.patience": 0,
    "train.batch": 16,
    "train.lr": 0.01,
}
KINDS: dict[str, dict[str, Any]] = {
    "ema": {},
    "ema-per-entity": {"model.decay": "entity", "recall.enabled": False},
    "ema-per-dimension": {"model.decay": "dimension", "recall.enabled": False},
    "gru": {"model.memory": "gru", "recall.enabled": False},
    "attention": {"model.memory": "attention", "recall.enabled": False},
    "snapshot-protocol": {"train.protocol": "snapshot", "recall.enabled": False},
    "snapshot-protocol-after": {"train.protocol": "snapshot", "model.timing": "after", "recall.enabled": False},
}


class Killed(Exception):
    """What a test throws out of a run to end it anywhere."""


@pytest.fixture(scope="module")
def graph() -> Dataset:
    return synthesize(30, 4, 12, 8, seed=5)


def configured(**changes: Any) -> Config:
    return small_config(QUICK | {key.replace("__", "."): value for key, value in changes.items()})


def of_kind(kind: str, **changes: Any) -> Config:
    return small_config(QUICK | KINDS[kind] | {key.replace("__", "."): value for key, value in changes.items()})


def curves(work: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (work / "curves.jsonl").read_text().splitlines()]


def assert_same_run(found: Run, wanted: Run) -> None:
    assert_same_bits(found.bundle.model.state_dict(), wanted.bundle.model.state_dict())
    assert (found.bundle.version, found.bundle.metrics) == (wanted.bundle.version, wanted.bundle.metrics)
    assert (found.epochs, found.best_epoch, found.valid) == (wanted.epochs, wanted.best_epoch, wanted.valid)


def kill_in(epoch: int, stage: str, after: int = 2) -> Report:
    """A report that ends the run in some epoch, after some reports of a stage in it."""
    epochs, reports, latest = 0, 0, ""

    def report(name: str, done: int, total: int) -> None:
        nonlocal epochs, reports, latest
        if name == "train" and latest != "train":
            epochs += 1
            reports = 0
        latest = name
        reports += name == stage
        if epochs == epoch and name == stage and reports == after:
            raise Killed

    return report


# -- what moves ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_moves_by_its_gradient(graph: Dataset, tmp_path: Path, kind: str) -> None:
    # Without weight decay AdamW moves nothing that gets no gradient.
    config = of_kind(kind, train__epochs=2, train__weight_decay=0.0)
    earlier: dict[str, Tensor] = {}

    def remember(stage: str, done: int, total: int) -> None:
        if stage == "train" and not earlier and (tmp_path / "checkpoint").exists():
            earlier.update(read_artifact(tmp_path / "checkpoint", "checkpoint")[0])

    train(graph, config, ENCODER, tmp_path, report=remember)
    later, _ = read_artifact(tmp_path / "checkpoint", "checkpoint")
    model = train(graph, config, ENCODER, tmp_path).bundle.model
    moved = {name: not torch.equal(earlier[f"model.{name}"], later[f"model.{name}"]) for name, _ in weights(model)}
    assert moved.keys() >= {"signal_in.weight", "signal_out.weight", "gate.weight.weight", "decoder.out.weight"}
    assert all(moved.values()), [name for name, did in moved.items() if not did]
    if kind.startswith("ema"):
        assert moved["memory.rho"]
        assert not torch.equal(later["model.memory.rho"], torch.full_like(later["model.memory.rho"], 2.0))


@pytest.mark.parametrize(("setting", "found"), [("auto", "brackets"), ("none", "none"), ("comma", "comma")])
def test_the_bundle_says_how_names_tell_of_groups(tmp_path: Path, setting: str, found: str) -> None:
    graph, config = synthesize(80, 4, 20, 20, seed=6), configured(train__epochs=1, model__names=setting)
    with capture_logs() as logs:
        bundle = train(graph, config, ENCODER, tmp_path).bundle
    assert bundle.names.kind == bundle.model.config.model.names == found
    assert [(line["kind"], line["setting"]) for line in logs if line["event"] == "names"] == [(found, setting)]


def test_names_that_come_after_train_do_not_decide_how_names_tell_of_groups(tmp_path: Path) -> None:
    graph = synthesize(80, 4, 20, 20, seed=6, emerging=0.6)
    known = set(graph.split("train")[:, [0, 2]].ravel().tolist())
    entities = tuple(f"Person {row}" if row in known else name for row, name in enumerate(graph.entities))
    assert find_structure(entities) == NameStructure("brackets")
    bundle = train(replace(graph, entities=entities), configured(train__epochs=1), ENCODER, tmp_path).bundle
    assert bundle.names == NameStructure("none")


def weights(model: torch.nn.Module) -> list[tuple[str, Tensor]]:
    """The parameters, without those before a layer that takes their effect away again."""
    # Pooling is a softmax over the keys' products with a question: what all keys share has no effect.
    # A batch norm takes away the bias of the layer before it.
    idle = {"chain.answer.bias", "decoder.maps.bias", "decoder.out.bias"}
    return [(name, parameter) for name, parameter in model.named_parameters() if name not in idle]


@pytest.mark.parametrize("kind", ["ema", "snapshot-protocol"])
def test_the_loss_falls(graph: Dataset, tmp_path: Path, kind: str) -> None:
    train(graph, of_kind(kind, train__epochs=5), ENCODER, tmp_path)
    losses = [curve["loss"] for curve in curves(tmp_path)]
    assert losses[-1] < 0.9 * losses[0]


def test_the_best_epoch_is_kept_not_the_last(graph: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states = given_scores(monkeypatch, [0.1, 0.4, 0.3])
    run = train(graph, configured(), ENCODER, tmp_path)
    assert (run.epochs, run.best_epoch) == (3, 2)
    assert run.valid["slices"]["all"]["mrr"] == 0.4
    later, _ = read_artifact(tmp_path / "checkpoint", "checkpoint")
    assert not torch.equal(run.bundle.model.project.weight, later["model.project.weight"])
    assert torch.equal(run.bundle.model.project.weight, later["best.project.weight"])
    assert states == []


def given_scores(monkeypatch: pytest.MonkeyPatch, scores: list[float]) -> list[float]:
    """Validation gives these scores one after the other."""
    left = list(scores)

    def summarize(*asked: object) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"all": {"mrr": left.pop(0)}}, {}

    monkeypatch.setattr("trainer.fit.loop.summarize", summarize)
    return left


@pytest.mark.parametrize(
    ("patience", "scores", "epochs", "best"),
    [
        (2, [0.1, 0.3, 0.2, 0.3, 0.9, 0.9], 4, 2),
        (3, [0.1, 0.3, 0.2, 0.3, 0.9, 0.8], 6, 5),
        (0, [0.5, 0.1, 0.1, 0.1, 0.1, 0.1], 6, 1),
    ],
)
def test_training_stops_when_patience_runs_out(
    graph: Dataset,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    patience: int,
    scores: list[float],
    epochs: int,
    best: int,
) -> None:
    given_scores(monkeypatch, scores)
    run = train(graph, configured(train__epochs=6, train__patience=patience), ENCODER, tmp_path)
    assert (run.epochs, run.best_epoch) == (epochs, best)
    assert len(curves(tmp_path)) == epochs


# -- the same result ----------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bundle_and_another_seed_another(graph: Dataset, tmp_path: Path) -> None:
    first = train(graph, configured(train__epochs=1), ENCODER, tmp_path / "1")
    torch.rand(7)  # what happened before a run is nothing to it
    assert_same_run(train(graph, configured(train__epochs=1), ENCODER, tmp_path / "2"), first)
    other = train(graph, configured(train__epochs=1, train__seed=2), ENCODER, tmp_path / "3").bundle
    assert not torch.equal(other.model.project.weight, first.bundle.model.project.weight)
    assert other.version != first.bundle.version


@pytest.mark.parametrize("kind", ["ema", "ema-per-entity", "snapshot-protocol"])
@pytest.mark.parametrize("kill", [(2, "train", 2), (1, "validate", 1)], ids=["learning", "validating"])
def test_a_run_that_was_killed_goes_on_to_bitwise_the_same_bundle(
    graph: Dataset, tmp_path: Path, kind: str, kill: tuple[int, str, int]
) -> None:
    config = of_kind(kind, train__valid_every=1 if kill[1] == "train" else 2)
    steady = train(graph, config, ENCODER, tmp_path / "steady")
    with pytest.raises(Killed):
        train(graph, config, ENCODER, tmp_path / "killed", report=kill_in(*kill_for(config, kill)))
    torch.rand(11)
    assert_same_run(train(graph, config, ENCODER, tmp_path / "killed"), steady)
    assert [curve["epoch"] for curve in curves(tmp_path / "killed")] == [1, 2, 3]
    for found, wanted in zip(curves(tmp_path / "killed"), curves(tmp_path / "steady"), strict=True):
        assert found["loss"] == wanted["loss"]


def test_a_run_that_only_remembers_its_first_times_also_goes_on_to_the_same_bundle(
    graph: Dataset, tmp_path: Path
) -> None:
    config = configured(train__burn_in=0.4)
    steady = train(graph, config, ENCODER, tmp_path / "steady")
    with pytest.raises(Killed):
        train(graph, config, ENCODER, tmp_path / "killed", report=kill_in(2, "train"))
    assert_same_run(train(graph, config, ENCODER, tmp_path / "killed"), steady)


def kill_for(config: Config, kill: tuple[int, str, int]) -> tuple[int, str, int]:
    """The first validation is that of epoch `valid_every`."""
    return kill if kill[1] == "train" else (config.train.valid_every, *kill[1:])


def test_a_finished_run_that_is_started_again_gives_the_same_bundle_at_once(graph: Dataset, tmp_path: Path) -> None:
    first = train(graph, configured(), ENCODER, tmp_path)
    reports: list[str] = []
    again = train(graph, configured(), ENCODER, tmp_path, report=lambda stage, done, total: reports.append(stage))
    assert_same_run(again, first)
    assert reports == []
    assert [curve["epoch"] for curve in curves(tmp_path)] == [1, 2, 3]


SCRIPT = """
import os, signal, sys
from pathlib import Path
from adatkg_core.settings.model_settings import config_from_dict
from adatkg_core.text.encoder import HashEncoder
from adatkg_core.datasets.synthetic import synthesize
from trainer import train
import json

epochs, latest = 0, ""

def report(stage, done, total):
    global epochs, latest
    epochs += stage == "train" and latest != "train"
    latest = stage
    if epochs == 2:
        os.kill(os.getpid(), signal.SIGKILL)

config = config_from_dict(json.loads(sys.argv[2]), where="test")
train(synthesize(30, 4, 12, 8, seed=5), config, HashEncoder(24), Path(sys.argv[1]), report=report)
"""


def test_a_process_that_was_killed_leaves_a_run_that_another_finishes(graph: Dataset, tmp_path: Path) -> None:
    config = configured()
    values = json.dumps(config.as_dict())
    environment = os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "killed"), values]
    killed = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    finished = train(graph, config, ENCODER, tmp_path / "killed")
    assert_same_run(finished, train(graph, config, ENCODER, tmp_path / "steady"))


# -- its files ----------------------------------------------------------------------------------------------------


def test_every_epoch_is_one_line_of_the_curves(graph: Dataset, tmp_path: Path) -> None:
    train(graph, configured(train__valid_every=2), ENCODER, tmp_path)
    lines = curves(tmp_path)
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert all({"loss", "queries_per_second", "seconds", "alpha"} <= line.keys() for line in lines)
    assert ["score" in line for line in lines] == [False, True, True]  # the last epoch is always measured
    assert set(lines[1]["mrr"]) >= {"all", "emerging_subject_unseen", "unknown"}


def test_a_kill_behind_the_checkpoint_loses_no_line_of_the_curves(
    graph: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save_and_die(*arguments: Any) -> None:
        save_checkpoint(*arguments)
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr("trainer.fit.loop.save_checkpoint", save_and_die)
        train(graph, configured(), ENCODER, tmp_path)
    train(graph, configured(), ENCODER, tmp_path)
    assert [line["epoch"] for line in curves(tmp_path)] == [1, 2, 3]


def test_a_new_run_in_an_old_folder_begins_its_curves_anew(graph: Dataset, tmp_path: Path) -> None:
    train(graph, configured(), ENCODER, tmp_path)
    shutil.rmtree(tmp_path / "checkpoint")
    train(graph, configured(train__epochs=2), ENCODER, tmp_path)
    assert [line["epoch"] for line in curves(tmp_path)] == [1, 2]


def test_a_run_with_other_settings_is_not_taken_up(graph: Dataset, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        train(graph, configured(), ENCODER, tmp_path, report=kill_in(2, "train"))
    for changed in (configured(train__lr=0.02), configured(train__seed=9), configured(model__dim=32)):
        with pytest.raises(InputError, match="other settings or data"):
            train(graph, changed, ENCODER, tmp_path)
    with pytest.raises(InputError, match="other settings or data"):
        train(synthesize(30, 4, 16, 10, seed=6), configured(), ENCODER, tmp_path)
    with pytest.raises(InputError, match="other settings or data"):
        train(graph, configured(), HashEncoder(25), tmp_path)


def test_more_patience_takes_a_run_up_again(graph: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_scores(monkeypatch, [0.5, 0.1, 0.6])
    assert train(graph, configured(train__patience=1), ENCODER, tmp_path).epochs == 2
    assert train(graph, configured(train__patience=3), ENCODER, tmp_path).best_epoch == 3


def test_a_damaged_checkpoint_is_one_clear_error(graph: Dataset, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        train(graph, configured(), ENCODER, tmp_path, report=kill_in(2, "train"))
    tensors = next((tmp_path / "checkpoint").glob("tensors*"))
    tensors.write_bytes(tensors.read_bytes()[:100])
    with pytest.raises(InputError, match="checkpoint is damaged"):
        train(graph, configured(), ENCODER, tmp_path)


def test_a_graph_with_too_few_times_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too few distinct times"):
        train(synthesize(10, 2, 2, 5, seed=1), configured(), ENCODER, tmp_path / "work")
    assert not (tmp_path / "work").exists()


def test_a_run_that_diverges_says_so(graph: Dataset, tmp_path: Path) -> None:
    with pytest.raises(AdatkgError, match="diverged"):
        train(graph, configured(train__lr=1e30, train__clip=1e30), ENCODER, tmp_path)


def test_patience_does_not_run_out_before_the_first_validation(graph: Dataset, tmp_path: Path) -> None:
    run = train(graph, configured(train__epochs=4, train__patience=2, train__valid_every=4), ENCODER, tmp_path)
    assert (run.epochs, run.best_epoch) == (4, 4)

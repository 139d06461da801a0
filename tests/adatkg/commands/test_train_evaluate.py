"""`adatkg train` and `adatkg evaluate` as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from adatkg.main import main
from adatkg_core.datasets import Dataset, load_dataset, synthesize, write_dataset
from adatkg_core.engine import Engine
from adatkg_core.evaluation import GROUPS, Asked, measure
from adatkg_core.metrics.scores import METRICS
from adatkg_core.storage import ModelStore, load_bundle

Capture = pytest.CaptureFixture[str]
QUICK = ("--config", "tiny", "--epochs", "1", "--seed", "3")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a data set `graph` and the bundle `bundle` trained from it, and what training printed."""
    folder = tmp_path_factory.mktemp("place")
    write_dataset(synthesize(40, 4, 14, 10, seed=2), folder / "graph")
    done = adatkg(folder, "train", "graph", *QUICK, "--out", "bundle", "--json")
    assert done.returncode == 0, done.stderr
    (folder / "printed.json").write_text(done.stdout)
    return folder


def adatkg(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": root, "ADATKG_LOG": "warning", **variables}
    command = [sys.executable, "-m", "adatkg", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str) -> int:
    """The command inside this process, which spares the seconds of a start."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ADATKG_LOG", "warning")
    monkeypatch.setattr("sys.argv", ["adatkg", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    return int(exit_.value.code or 0)


def content(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_training_says_what_it_made(place: Path) -> None:
    printed = json.loads((place / "printed.json").read_text())
    assert printed.keys() == {"bundle", "version", "epochs", "best_epoch", "seconds", "valid", "names"}
    assert (printed["bundle"], printed["epochs"], printed["best_epoch"]) == ("bundle", 1, 1)
    assert printed["valid"]["protocol"] == "streaming"
    assert printed["names"] == load_bundle(str(place / "bundle")).names.kind == "brackets"
    assert (place / "bundle" / "manifest.json").is_file()
    curves = [json.loads(line) for line in (place / "bundle.training" / "curves.jsonl").read_text().splitlines()]
    assert [curve["epoch"] for curve in curves] == [1]


@pytest.fixture(scope="module")
def measured(place: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    done = adatkg(place, "evaluate", "bundle", "graph", "--split", "test", "--json", "--per-query", "lines.jsonl")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    return json.loads(done.stdout), [json.loads(line) for line in (place / "lines.jsonl").read_text().splitlines()]


def test_the_result_of_an_evaluation_has_the_keys_that_are_promised(
    measured: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    result, _ = measured
    promised = {"protocol", "split", "encoder", "slices", "baseline", "queries_per_second"}
    parts = {"strata", "baseline_strata", "by_interactions", "baseline_by_interactions"}
    assert result.keys() == promised | parts | {"bundle", "catalog", "without_memory"}
    assert (result["catalog"], result["without_memory"]) == ("all", False)
    assert (result["protocol"], result["split"], result["encoder"]) == ("streaming", "test", "hash:64")
    assert result["queries_per_second"] > 0
    for keys, names in GROUPS.items():
        for part in keys:
            assert list(result[part]) == list(names)
            for figures in result[part].values():
                assert figures.keys() == {*METRICS, "count"}


def test_every_query_is_one_line_and_the_lines_give_the_figures(
    measured: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    result, lines = measured
    keys = {"subject", "relation", "object", "time", "direction", "rank", "slices", "stratum", "interactions", "gate"}
    assert all(line.keys() == keys for line in lines)
    assert {line["direction"] for line in lines} == {"forward", "inverse"}
    assert all(line["interactions"].keys() == {"subject", "object"} for line in lines)
    assert all(0 <= line["gate"] <= 1 and line["rank"] >= 1 for line in lines)
    for name, figures in result["slices"].items():
        ranks = [line["rank"] for line in lines if name in line["slices"]]
        assert figures["count"] == len(ranks)
        if ranks:
            assert figures["mrr"] == pytest.approx(sum(1 / rank for rank in ranks) / len(ranks))
            assert figures["hits@3"] == pytest.approx(sum(rank <= 3 for rank in ranks) / len(ranks))
    for name, figures in result["strata"].items():
        assert figures["count"] == sum(name == line["stratum"] for line in lines)


def test_the_lines_name_the_facts_of_the_split_in_both_directions(
    place: Path, measured: tuple[dict[str, Any], list[dict[str, Any]]]
) -> None:
    _, lines = measured
    names = dict(line.split("\t")[::-1] for line in (place / "graph" / "entity2id.txt").read_text().splitlines())
    relations = dict(line.split("\t")[::-1] for line in (place / "graph" / "relation2id.txt").read_text().splitlines())
    facts = [line.split("\t")[:4] for line in (place / "graph" / "test.txt").read_text().splitlines()]
    forward = [(names[s], relations[r], names[o], int(t)) for s, r, o, t in facts]
    wanted = sorted(forward + [(o, r, s, t) for s, r, o, t in forward])
    assert sorted((line["subject"], line["relation"], line["object"], line["time"]) for line in lines) == wanted


def test_a_share_of_a_split_has_the_ranks_that_the_whole_split_has_up_to_there(
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    place: Path,
    measured: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    _, lines = measured
    times = sorted({line["time"] for line in lines})
    last = times[len(times) // 2]
    arguments = ("evaluate", "bundle", "graph", "--to", str(last), "--per-query", "part.jsonl")
    assert run(monkeypatch, place, *arguments, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    part = [json.loads(line) for line in (place / "part.jsonl").read_text().splitlines()]
    assert part == [line for line in lines if line["time"] <= last] != []
    assert (result["to"], result["share_of_split"]) == (last, round(len(part) / len(lines), 4))
    assert run(monkeypatch, place, *arguments) == 0
    assert f"test, up to {last}, {len(part) / len(lines):.0%} of it" in capsys.readouterr().out
    assert run(monkeypatch, place, "evaluate", "bundle", "graph", "--to", "0") == 2
    assert "test split is empty" in capsys.readouterr().err


def test_the_table_shows_every_part_in_80_columns_and_the_snapshot_protocol_is_labelled(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, place: Path
) -> None:
    arguments = ("evaluate", "bundle", "graph", "--protocol", "snapshot", "--split", "valid", "--without-memory")
    assert run(monkeypatch, place, *arguments) == 0
    shown = capsys.readouterr().out
    words = [line.split()[0] for line in shown.splitlines() if line.split()]
    order = [words.index(name) for names in GROUPS.values() for name in names]
    assert order == sorted(order)
    assert "snapshot protocol, valid, without memory" in shown
    table = shown.splitlines()[1:]
    assert max(map(len, table)) <= 80


def test_causality_is_checked_on_demand_and_the_catalog_can_be_causal(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, place: Path
) -> None:
    arguments = ("evaluate", "bundle", "graph", "--split", "valid", "--check-causality", "9", "--seed", "5")
    assert run(monkeypatch, place, *arguments, "--catalog", "causal", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["catalog"] == "causal"
    assert result["causality"] == {"checked": 9, "different": 0, "seed": 5, "examples": []}
    assert run(monkeypatch, place, *arguments) == 0
    assert "of 9 queries asked again without a future, 0 differ" in capsys.readouterr().out


def test_an_answer_that_knows_of_the_future_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, place: Path
) -> None:
    def hasty(engine: Engine, data: Dataset, *rest: Any, **options: Any) -> Iterator[Asked]:
        """Brings facts of each time in a tick too early, while its queries are being asked."""
        for one in measure(engine, data, *rest, **options):
            now = data.facts[data.facts[:, 3] == one.time] - np.array((0, 0, 0, 1))
            engine.observe_rows(torch.from_numpy(now))
            yield one

    monkeypatch.setattr("adatkg_core.evaluation.bundles.measure", hasty)
    arguments = ("evaluate", "bundle", "graph", "--split", "valid", "--check-causality", "9", "--json")
    assert run(monkeypatch, place, *arguments) == 1
    assert json.loads(capsys.readouterr().out)["causality"]["different"] > 0


def test_accuracy_over_seeds_is_said_in_json_and_in_a_table(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, place: Path, tmp_path: Path
) -> None:
    work = str(tmp_path / "runs")
    arguments = ("bench", "accuracy", "graph", "--config", "tiny", "--epochs", "1", "--seeds", "3,4", "--work", work)
    assert run(monkeypatch, place, *arguments, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["seeds"], result["split"], result["protocol"]) == ([3, 4], "valid", "streaming")
    trained = json.loads((place / "printed.json").read_text())
    assert result["runs"][0]["bundle"] == trained["version"]
    values = [one["mrr"]["all"] for one in result["runs"]]
    assert values[0] == pytest.approx(trained["valid"]["slices"]["all"]["mrr"])
    assert result["slices"]["all"]["mrr"] == {
        "mean": pytest.approx(sum(values) / 2),
        "deviation": pytest.approx(abs(values[0] - values[1]) / 2**0.5),
    }
    assert run(monkeypatch, place, *arguments) == 0
    shown = capsys.readouterr().out
    assert f"{sum(values) / 2:.4f} ± " in shown and all(name in shown for names in GROUPS.values() for name in names)
    assert max(map(len, shown.splitlines())) <= 80


def test_flags_win_over_variables_and_variables_over_the_configuration(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, place: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("ADATKG_TRAIN_EPOCHS", "7")
    monkeypatch.setenv("ADATKG_MODEL_GATE", "constant")
    settings = ("--set", "model.memory=gru", "--out", str(tmp_path / "other"), "--json")
    assert run(monkeypatch, place, "train", "graph", *QUICK, *settings) == 0
    assert json.loads(capsys.readouterr().out)["epochs"] == 1
    config = json.loads((tmp_path / "other" / "meta.json").read_text())["config"]
    assert (config["model"]["memory"], config["model"]["gate"], config["train"]["seed"]) == ("gru", "constant", 3)


def test_a_model_of_the_past_knows_that_past_and_nothing_after_it(
    monkeypatch: pytest.MonkeyPatch, place: Path, tmp_path: Path
) -> None:
    arguments = ("--to", "9", "--models", str(tmp_path / "models"), "--graph", "graph", "--work", str(tmp_path))
    assert run(monkeypatch, place, "train", "graph", *QUICK, *arguments) == 0
    store = ModelStore(str(tmp_path / "models"))
    version = store.present("graph")
    assert version is not None
    state, bundle = store.state("graph", version), store.bundle("graph", version)
    facts = load_dataset(str(place / "graph"))
    early = facts.facts[facts.facts[:, 3] <= 9]
    assert state is not None and state.known_through == 9
    assert set(bundle.entities) == {facts.entities[row] for row in np.unique(early[:, [0, 2]])}
    assert bundle.relations == facts.relations


# -- what a user can get wrong ------------------------------------------------------------------------------------


def spoil(folder: Path) -> None:
    """Things to stumble over, made once."""
    if (folder / "full").exists():
        return
    (folder / "full").mkdir()
    (folder / "full" / "thesis.txt").write_text("important")
    (folder / "file").write_text("important")
    (folder / "typo.toml").write_text("[model]\ndimm = 3\n")
    (folder / "damaged").mkdir()
    for path in (folder / "bundle").iterdir():
        (folder / "damaged" / path.name).write_bytes(
            path.read_bytes()[:-1] if path.suffix != ".json" else path.read_bytes()
        )
    write_dataset(synthesize(8, 2, 2, 5, seed=1), folder / "short")
    write_dataset(synthesize(20, 9, 10, 5, seed=1), folder / "strange")


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no data set": (("train", "nowhere", *QUICK, "--out", "new"), "nowhere"),
    "no configuration": (("train", "graph", "--config", "nowhere.toml", "--out", "new"), "nowhere.toml"),
    "an unknown key": (("train", "graph", "--config", "typo.toml", "--out", "new"), "dimm"),
    "an unknown setting": (("train", "graph", *QUICK, "--set", "train.speed=9", "--out", "new"), "speed"),
    "a setting without a value": (("train", "graph", *QUICK, "--set", "train.lr", "--out", "new"), "train.lr"),
    "an unknown slice": (("train", "graph", *QUICK, "--set", 'train.select=["x"]', "--out", "new"), "train.select"),
    "no epochs": (("train", "graph", "--config", "tiny", "--epochs", "0", "--out", "new"), "train.epochs"),
    "an unknown device": (("train", "graph", *QUICK, "--device", "toaster", "--out", "new"), "toaster"),
    "a past without a fact": (("train", "graph", *QUICK, "--to", "-1", "--out", "new"), "it goes from 0 to 13"),
    "a past of no calendar": (("train", "graph", *QUICK, "--to", "2014-03-02", "--out", "new"), "--to 2014-03-02"),
    "too short a data set": (("train", "short", *QUICK, "--out", "new"), "short"),
    "a bundle in the way": (("train", "graph", *QUICK, "--out", "bundle"), "already"),
    "a folder in the way": (("train", "graph", *QUICK, "--out", "full"), "full"),
    "a file in the way": (("train", "graph", *QUICK, "--out", "file"), "file"),
    "a file above": (("train", "graph", *QUICK, "--out", "file/new"), "file"),
    "no bundle": (("evaluate", "nowhere", "graph"), "nowhere"),
    "a damaged bundle": (("evaluate", "damaged", "graph"), "damaged"),
    "a folder that is no bundle": (("evaluate", "full", "graph"), "full"),
    "no data set to evaluate on": (("evaluate", "bundle", "nowhere"), "nowhere"),
    "a data set of other relations": (("evaluate", "bundle", "strange"), "relation"),
    "lines into nowhere": (("evaluate", "bundle", "graph", "--per-query", "no/such/lines"), "no/such"),
    "lines into a folder": (("evaluate", "bundle", "graph", "--per-query", "full"), "full"),
    "a check of fewer than none": (("evaluate", "bundle", "graph", "--check-causality", "-3"), "-3"),
    "a check where queries see each other": (
        ("evaluate", "bundle", "graph", "--protocol", "snapshot", "--check-causality", "3"),
        "streaming protocol",
    ),
    "seeds that are no numbers": (("bench", "accuracy", "graph", "--seeds", "1,x", "--work", "new"), "--seeds 1,x"),
    "a seed twice": (("bench", "accuracy", "graph", "--seeds", "1,1", "--work", "new"), "twice"),
    "runs in a file": (("bench", "accuracy", "graph", "--config", "tiny", "--work", "file"), "file"),
    "an unknown protocol": (("evaluate", "bundle", "graph", "--protocol", "both"), "both"),
}


def assert_one_line(error: str, names: str) -> None:
    assert names in error and "Traceback" not in error
    if "Usage" not in error:  # what the parser itself refuses is shown in a box
        assert error.startswith("error: ") and error.count("\n") == 1


@pytest.mark.parametrize("mistake", WRONG)
def test_wrong_input_is_exit_code_2_one_line_and_nothing_half_written(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, place: Path, mistake: str
) -> None:
    arguments, names = WRONG[mistake]
    spoil(place)
    before = content(place)
    assert run(monkeypatch, place, *arguments, "--json") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert_one_line(printed.err, names)
    assert content(place) == before
    assert (place / "file").read_text() == (place / "full" / "thesis.txt").read_text() == "important"


@pytest.mark.parametrize("mistake", ["a bundle in the way", "a damaged bundle"])
def test_wrong_input_is_so_for_the_real_command_too(place: Path, mistake: str) -> None:
    arguments, names = WRONG[mistake]
    spoil(place)
    done = adatkg(place, *arguments, "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert_one_line(done.stderr, names)


def test_a_bundle_is_replaced_on_demand(monkeypatch: pytest.MonkeyPatch, place: Path, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    assert run(monkeypatch, place, "train", "graph", *QUICK, "--out", str(out)) == 0
    first = load_bundle(str(out)).version
    again = ("train", "graph", "--config", "tiny", "--epochs", "1", "--seed", "4", "--out", str(out), "--replace")
    assert run(monkeypatch, place, *again) == 0
    assert load_bundle(str(out)).version != first
    assert not (tmp_path / "bundle.training" / "checkpoint").exists()


def test_a_damaged_run_does_not_spoil_the_bundle_that_is_there(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, place: Path, tmp_path: Path
) -> None:
    """Training that fails under `--replace` leaves the old bundle as it was."""
    out = tmp_path / "bundle"
    assert run(monkeypatch, place, "train", "graph", *QUICK, "--out", str(out)) == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    diverging = ("--set", "train.lr=1e30", "--set", "train.clip=1e30", "--out", str(out), "--replace")
    assert run(monkeypatch, place, "train", "graph", *QUICK, *diverging) == 1
    assert "diverged" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_the_help_has_an_example(monkeypatch: pytest.MonkeyPatch, capsys: Capture, place: Path, command: str) -> None:
    assert run(monkeypatch, place, command, "--help") == 0
    assert f"Example: adatkg {command}" in capsys.readouterr().out

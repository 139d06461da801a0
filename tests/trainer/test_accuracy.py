"""Several seeds of one configuration: what is kept, what is made again, and what is said of all of them."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from adatkg_core.datasets import Dataset, synthesize
from adatkg_core.errors import InputError
from adatkg_core.evaluation import GROUPS, How, evaluate_bundle
from adatkg_core.settings import Config
from adatkg_core.storage import load_bundle
from adatkg_core.text.encoder import HashEncoder
from tests.support.small_graph import small_config
from trainer import SeededRuns
from trainer.accuracy import spread

ENCODER = HashEncoder(24)
VALID = How("valid")
Stages = list[str]


def graph() -> Dataset:
    return synthesize(20, 3, 8, 6, seed=5)


def config(**changes: Any) -> Config:
    quick = {"model.enabled": False, "train.epochs": 1, "train.burn_in": 0.0, "train.batch": 16}
    return small_config(quick | {key.replace("__", "."): value for key, value in changes.items()})


def measured(work: Path, seeds: list[int], how: How = VALID) -> tuple[dict[str, Any], Stages]:
    """The result, and which stages there were anything to do in."""
    told: Stages = []
    runs = SeededRuns(graph(), config(), ENCODER, work)
    result = runs.measure(seeds, how, lambda stage, done, total: told.append(stage))
    return result, list(dict.fromkeys(told))


def test_each_seed_is_trained_and_measured_once_and_kept(tmp_path: Path) -> None:
    result, stages = measured(tmp_path, [1, 2])
    each = [f"seed {seed}: {stage}" for seed in (1, 2) for stage in ("train", "validate", "evaluate valid")]
    assert stages == each
    again, stages = measured(tmp_path, [1, 2])
    assert (again, stages) == (result, [])
    more, stages = measured(tmp_path, [1, 2, 3])
    assert {stage.split(":")[0] for stage in stages} == {"seed 3"}
    assert more["runs"][:2] == result["runs"] and more["seeds"] == [1, 2, 3]


def test_another_split_is_measured_with_the_bundles_that_are_there(tmp_path: Path) -> None:
    first, _ = measured(tmp_path, [1, 2])
    result, stages = measured(tmp_path, [1, 2], How("test", candidates="causal"))
    assert stages == ["seed 1: evaluate test", "seed 2: evaluate test"]
    assert [run["bundle"] for run in result["runs"]] == [run["bundle"] for run in first["runs"]]
    assert (result["split"], result["catalog"]) == ("test", "causal")


def test_the_figures_are_those_of_each_seeds_own_bundle(tmp_path: Path) -> None:
    result, _ = measured(tmp_path, [1, 2])
    alone = []
    for seed, run in zip((1, 2), result["runs"], strict=True):
        bundle = load_bundle(str(tmp_path / f"seed-{seed}" / "bundle"))
        assert (bundle.version, bundle.model.config.train.seed) == (run["bundle"], seed)
        found = evaluate_bundle(bundle, graph(), VALID, encoder=ENCODER)
        assert run["mrr"] == {name: row["mrr"] for name, row in found["slices"].items()}
        alone.append(found)
    assert alone[0]["slices"]["all"] != alone[1]["slices"]["all"]
    assert {key: result[key] for keys in GROUPS for key in keys} == spread(alone)


def test_a_run_that_was_killed_in_the_second_seed_keeps_the_first(tmp_path: Path) -> None:
    class Killed(Exception):
        pass

    def kill(stage: str, done: int, total: int) -> None:
        if stage == "seed 2: validate":
            raise Killed

    with pytest.raises(Killed):
        SeededRuns(graph(), config(), ENCODER, tmp_path).measure([1, 2], VALID, kill)
    result, stages = measured(tmp_path, [1, 2])
    assert {stage.split(":")[0] for stage in stages} == {"seed 2"}
    whole, _ = measured(tmp_path / "other", [1, 2])
    assert result["strata"] == whole["strata"] and result["slices"] == whole["slices"]


@pytest.mark.parametrize("other", ["configuration", "data set", "encoder"])
def test_a_folder_of_other_runs_is_refused(tmp_path: Path, other: str) -> None:
    SeededRuns(graph(), config(), ENCODER, tmp_path)
    data = synthesize(20, 3, 8, 6, seed=6) if other == "data set" else graph()
    settings = config(train__lr=0.5) if other == "configuration" else config()
    encoder = HashEncoder(32) if other == "encoder" else ENCODER
    with pytest.raises(InputError, match="another configuration or data set"):
        SeededRuns(data, settings, encoder, tmp_path)
    SeededRuns(graph(), config(train__seed=9), ENCODER, tmp_path)  # seeds are what these runs differ by


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("important")
    with pytest.raises(InputError, match="cannot be written"):
        SeededRuns(graph(), config(), ENCODER, tmp_path / "file")


# -- means and deviations -----------------------------------------------------------------------------------------


def run_with(mrr: float | None) -> dict[str, Any]:
    row = {"mrr": mrr, "hits@1": 0.5, "count": 0 if mrr is None else 10}
    return {key: dict.fromkeys(names, row) for keys, names in GROUPS.items() for key in keys}


def test_a_figure_over_seeds_is_its_mean_and_its_sample_deviation() -> None:
    values = [0.2, 0.3, 0.7]
    found = spread([run_with(value) for value in values])
    figure = found["strata"]["exact_repeat"]
    assert figure["mrr"]["mean"] == pytest.approx(0.4)
    assert figure["mrr"]["deviation"] == pytest.approx(statistics.stdev(values)) == pytest.approx(0.264575, abs=1e-6)
    assert figure["hits@1"] == {"mean": 0.5, "deviation": 0.0}
    assert figure["count"] == 10
    assert found["baseline_strata"] == run_with(0.2)["baseline_strata"]


def test_one_seed_has_no_deviation_and_an_empty_part_no_mean() -> None:
    assert spread([run_with(0.2)])["slices"]["all"]["mrr"] == {"mean": 0.2, "deviation": None}
    assert spread([run_with(None)] * 2)["slices"]["all"]["mrr"] == {"mean": None, "deviation": None}


def test_results_in_the_folder_are_those_that_evaluate_gives(tmp_path: Path) -> None:
    measured(tmp_path, [4], replace(VALID, without_memory=True))
    kept = orjson.loads((tmp_path / "seed-4" / "valid-streaming-all-without-memory.json").read_bytes())
    assert kept["seed"] == 4 and kept["without_memory"] is True and kept["slices"]["all"]["count"] > 0

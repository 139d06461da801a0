"""One configuration trained with several seeds and measured alike: what of a figure is the method, and what is chance.

A work folder holds for each seed its bundle and its result; what is finished is not made again, and a training that was
killed goes on.
"""

from __future__ import annotations

import hashlib
import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import structlog

from adatkg_core.datasets import Dataset
from adatkg_core.errors import InputError
from adatkg_core.evaluation import GROUPS, How, evaluate_bundle
from adatkg_core.settings import Config
from adatkg_core.storage import Bundle, artifact_exists, load_bundle, save_bundle
from adatkg_core.text import TextEncoder
from trainer.fit import train

Report = Callable[[str, int, int], None]  # stage, done, of how many

log = structlog.get_logger()


class SeededRuns:
    """The trainings of one configuration on one data set, each with its own seed, kept in a folder."""

    def __init__(self, dataset: Dataset, config: Config, encoder: TextEncoder, work: Path, device: str = "cpu") -> None:
        """Refuses a folder that holds those of another configuration or data set."""
        self._dataset, self._config, self._encoder = dataset, config, encoder
        self._work, self._device = work, device
        found, mine = work / "runs.json", {"dataset": dataset.name, "fingerprint": self._fingerprint()}
        try:
            if not found.exists():
                _write(found, mine)
        except OSError as error:
            raise InputError(f"{work}: cannot be written ({error.strerror}); give another --work") from error
        if orjson.loads(found.read_bytes()) != mine:
            raise InputError(f"{work}: it holds runs of another configuration or data set; give another --work")

    def measure(self, seeds: Sequence[int], how: How, report: Report) -> dict[str, Any]:
        """Means and deviations over the seeds, and what each of them said; trains and measures where it must."""
        runs = [self._measured(seed, how, report) for seed in seeds]
        shown = ("seed", "bundle", "queries_per_second")
        mrr = [{name: row["mrr"] for name, row in run["slices"].items()} for run in runs]
        result = {"dataset": self._dataset.name, "encoder": runs[0]["encoder"]} | how.described()
        result |= {"seeds": list(seeds)} | spread(runs)
        result["runs"] = [{key: run[key] for key in shown} | {"mrr": one} for run, one in zip(runs, mrr, strict=True)]
        return result

    def _measured(self, seed: int, how: How, report: Report) -> dict[str, Any]:
        rules = (how.split, how.protocol, how.candidates, *(["without-memory"] if how.without_memory else []))
        place = self._work / f"seed-{seed}" / f"{'-'.join(rules)}.json"
        if place.exists():
            kept: dict[str, Any] = orjson.loads(place.read_bytes())
            return kept
        tell = _prefixed(report, seed)
        with structlog.contextvars.bound_contextvars(seed=seed):
            bundle = self._bundle(seed, tell)
            result = {"seed": seed} | evaluate_bundle(bundle, self._dataset, how, encoder=self._encoder, report=tell)
            log.info("measured", bundle=bundle.version, mrr=result["slices"]["all"]["mrr"])
        _write(place, result)
        return result

    def _bundle(self, seed: int, report: Report) -> Bundle:
        folder = self._work / f"seed-{seed}"
        kept, training = str(folder / "bundle"), folder / "training"
        if not artifact_exists(kept):
            config = replace(self._config, train=replace(self._config.train, seed=seed))
            run = train(self._dataset, config, self._encoder, training, device=self._device, report=report)
            save_bundle(run.bundle, kept)
        shutil.rmtree(training / "checkpoint", ignore_errors=True)
        return load_bundle(kept, self._device)

    def _fingerprint(self) -> str:
        data, plain = self._dataset, self._config.as_dict()
        plain["train"].pop("seed")
        told = [data.entities, data.relations, data.split_bounds, plain, self._encoder.name]
        digest = hashlib.sha256(data.facts.tobytes() + orjson.dumps(told, option=orjson.OPT_SORT_KEYS))
        return digest.hexdigest()


def spread(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of each figure in GROUPS the mean and the sample deviation over the runs, None where there is none.

    The heuristic learns nothing: its figures are those of any run.
    """
    result: dict[str, Any] = {}
    for (key, baseline), names in GROUPS.items():
        result[key] = {name: _spread([run[key][name] for run in runs]) for name in names}
        result[baseline] = runs[0][baseline]
    return result


def _spread(rows: Sequence[dict[str, float | None]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for metric in rows[0]:
        values = [value for row in rows if (value := row[metric]) is not None]
        mean = statistics.fmean(values) if values else None
        deviation = statistics.stdev(values) if len(values) > 1 else None
        found[metric] = {"mean": mean, "deviation": deviation}
    found["count"] = rows[0]["count"]
    return found


def _prefixed(report: Report, seed: int) -> Report:
    return lambda stage, done, total: report(f"seed {seed}: {stage}", done, total)


def _write(path: Path, value: dict[str, Any]) -> None:
    """Whole or absent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2))
    partial.replace(path)

"""What retraining wins: ICEWS14 as a live stream from its first day, once with a trainer beside it, once without.

Two graphs get the same facts, the same first bundle (learned from the log at the end of train) and the same queries
over the test period. One keeps that bundle; the other is retrained from the log, each time from where it was, and swaps
the new bundle in while it runs. Writes `retraining.json` and `retraining.svg`:

    python -m benchmarks.retraining --out docs/results
"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from adatkg_core.datasets import Dataset, load_dataset
from adatkg_core.messages import Announcement
from adatkg_core.storage import ModelStore
from streams.embedded_broker import Broker
from streams.kafka import Connection, Topics, announce, ensure_topics, open_log

from .curves import draw

ROLLING = 10  # days of the rolling mean
FROZEN, RETRAINED = "frozen", "retrained"


def main() -> None:
    """Run the whole experiment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--config", default="tiny", help="configuration of all bundles")
    parser.add_argument("--epochs", default="2", help="epochs of each training")
    parser.add_argument("--rounds", type=int, default=3, help="retrainings, spread over the test period")
    chosen = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name, Broker(Path(name) / "broker", port=0) as broker:
        experiment = Experiment(Path(name), Connection(broker.bootstrap), chosen.config, chosen.epochs)
        with experiment.worker():
            trainings = experiment.run(chosen.rounds)
        ranks = {graph: experiment.ranks(graph) for graph in (FROZEN, RETRAINED)}
    result: dict[str, Any] = {
        "dataset": "icews14",
        "protocol": "streaming",
        "split": "test",
        "candidates": "names that the log had brought when the bundle in use was trained, or since",
        "config": chosen.config,
        "rolling_days": ROLLING,
        "trainings": trainings,
        "seconds": round(time.perf_counter() - began, 1),
        "command": f"python -m benchmarks.retraining --out docs/results --config {chosen.config} "
        f"--epochs {chosen.epochs} --rounds {chosen.rounds}",
    }
    for graph, by_day in ranks.items():
        everything = np.concatenate(list(by_day.values()))
        result[graph] = {
            "mrr": round(float((1 / everything).mean()), 5),
            "hits@10": round(float((everything <= 10).mean()), 5),
            "queries": len(everything),
            "days": sorted(by_day),
            "rolling_mrr": [round(value, 5) for value in _rolling(by_day)],
        }
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "retraining.json").write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2))
    lines = {graph: (result[graph]["days"], result[graph]["rolling_mrr"]) for graph in ranks}
    title = f"MRR over the last {ROLLING} days, ICEWS14 test, streaming"
    (chosen.out / "retraining.svg").write_text(draw(lines, title, "day of 2014"), "utf-8")
    shown = {graph: result[graph]["mrr"] for graph in ranks}
    print(orjson.dumps(shown | {"seconds": result["seconds"]}).decode())


class Experiment:
    """The running system and what is done to it."""

    def __init__(self, folder: Path, connection: Connection, config: str, epochs: str) -> None:
        self._folder, self._connection, self._topics = folder, connection, Topics()
        self._models = ModelStore(str(folder / "models"))
        self._training = ("--config", config, "--epochs", epochs)
        ensure_topics(connection, self._topics)

    def run(self, rounds: int) -> list[dict[str, Any]]:
        """Replay day by day; returns what was trained."""
        data = load_dataset("icews14")
        valid, test = data.split_bounds
        last = int(data.times[-1])
        self._replay(RETRAINED, None, valid - 1)
        trainings = [self._train()]
        self._freeze(str(trainings[0]["version"]))
        self._replay(FROZEN, None, valid - 1)
        for graph in (FROZEN, RETRAINED):
            self._replay(graph, valid, test - 1)
        edges = np.linspace(test, last + 1, rounds + 1).astype(int).tolist()
        for begin, end in itertools.pairwise(edges):
            trainings.append(self._train())
            for graph in (FROZEN, RETRAINED):
                self._replay(graph, begin, end - 1, "--queries")
            self._await_answers(data, end)
        return trainings

    def ranks(self, graph: str) -> dict[int, np.ndarray[Any, np.dtype[np.float64]]]:
        """The rank of each query's answer, by day; infinite where the query was refused."""
        found: dict[int, dict[str, float]] = {}
        with open_log(self._connection, self._topics.deadletter) as reader:
            for record in reader.read(0, *reader.bounds(0)):
                event = orjson.loads(record.value or b"{}")
                if event["kind"] == "query" and record.header("graph") == graph:
                    found.setdefault(event["t"], {})[event["id"]] = np.inf
        with open_log(self._connection, self._topics.predictions) as reader:
            for number in reader.partitions():
                for record in reader.read(number, *reader.bounds(number)):
                    prediction = orjson.loads(record.value or b"")
                    if prediction["graph"] == graph:
                        (rank,) = prediction["ranks"].values()
                        found.setdefault(prediction["as_of"], {})[prediction["id"]] = rank
        return {day: np.array(list(ranks.values())) for day, ranks in sorted(found.items())}

    @contextmanager
    def worker(self) -> Iterator[None]:
        """A worker while the experiment lasts."""
        command = ("worker", "--models", self._models.url, "--snapshots", str(self._folder / "snapshots"))
        with (self._folder / "worker.log").open("wb") as log:
            process = subprocess.Popen(_adatkg(*command, "--web-port", "0"), stderr=log, env=self._environment)
            try:
                yield
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait()

    @property
    def _environment(self) -> dict[str, str]:
        return os.environ | {"ADATKG_BOOTSTRAP": self._connection.bootstrap}

    def _replay(self, graph: str, first: int | None, last: int, *more: str) -> None:
        begin = () if first is None else ("--from", str(first))
        self._do("replay", "icews14", "--graph", graph, *begin, "--to", str(last), *more)

    def _train(self) -> dict[str, Any]:
        archive = str(self._folder / "archive")
        place = ("--models", self._models.url, "--archive", archive)
        done = self._do("retrain", RETRAINED, "--warm-start", *place, *self._training)
        if done["status"] == "present" and self._models.line(RETRAINED)[1:]:
            self._await_swap(str(done["version"]))
        return done

    def _freeze(self, version: str) -> None:
        """The first bundle answers for the other graph too, and stays."""
        bundle = replace(self._models.bundle(RETRAINED, version), graph=FROZEN)
        self._models.put(FROZEN, bundle, None)
        self._models.make_present(FROZEN, version)
        announce(
            self._connection,
            self._topics,
            Announcement(FROZEN, version, "present", "the first of the other graph", forced=False, verdict=None),
        )

    def _await_answers(self, data: Dataset, end: int) -> None:
        """Until each query is answered, or refused because the bundle does not know its relation."""
        facts = data.split("test")
        wanted = 2 * 2 * int((facts[:, 3] < end).sum())
        while self._count(self._topics.predictions) + self._refused() < wanted:
            time.sleep(1.0)

    def _count(self, topic: str) -> int:
        with open_log(self._connection, topic) as reader:
            return sum(last - first for first, last in map(reader.bounds, reader.partitions()))

    def _refused(self) -> int:
        with open_log(self._connection, self._topics.deadletter) as reader:
            return sum(b'"kind":"query"' in (record.value or b"") for record in reader.read(0, *reader.bounds(0)))

    def _await_swap(self, version: str) -> None:
        while f'"{version}"' not in self._said("swapped"):
            time.sleep(0.5)

    def _said(self, event: str) -> str:
        lines = (self._folder / "worker.log").read_text().splitlines()
        return "\n".join(line for line in lines if f'"event": "{event}"' in line)

    def _do(self, *arguments: str) -> dict[str, Any]:
        print(" ".join(arguments), file=sys.stderr)
        done = subprocess.run(_adatkg(*arguments, "--json"), stdout=subprocess.PIPE, env=self._environment, check=True)
        answer: dict[str, Any] = orjson.loads(done.stdout)
        return answer


def _adatkg(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "adatkg", *arguments]


def _rolling(by_day: dict[int, np.ndarray[Any, np.dtype[np.float64]]]) -> list[float]:
    days = sorted(by_day)
    windows = [[by_day[day] for day in days if last - ROLLING < day <= last] for last in days]
    return [float((1 / np.concatenate(window)).mean()) for window in windows]


if __name__ == "__main__":
    main()

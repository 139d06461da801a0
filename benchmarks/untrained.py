"""ICEWS14 with an untrained model: what a stream costs does not depend on what the model has learned."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from adatkg_core.datasets import Dataset, by_first_appearance, load_dataset
from adatkg_core.engine import Engine
from adatkg_core.events import Fact
from adatkg_core.model import AdaTKG
from adatkg_core.settings import load_config
from adatkg_core.storage import Bundle, ModelStore, Saved
from adatkg_core.text import load_encoder, text_of
from replay import Choice, ReplaySequence, publish
from streams.kafka import Connection, Record, Topics, ensure_topics, open_log
from trainer import starting_state

GRAPH = "icews14"


def untrained(dataset: Dataset, version: str, seed: int) -> tuple[Bundle, Saved]:
    """A bundle of the `live` configuration and its state at the end of valid."""
    config = load_config("live")
    encoder = load_encoder(config.model.encoder)
    torch.manual_seed(seed)
    model = AdaTKG(config, encoder.encode([text_of(name) for name in dataset.relations]), dataset.n_entities).eval()
    bundle = Bundle(model, dataset.relations, dataset.entities, version)
    return bundle, starting_state(bundle, dataset, encoder, GRAPH, "valid")


def icews14() -> Dataset:
    """The data set as the stream meets it."""
    return by_first_appearance(load_dataset("icews14"))


def after_valid() -> tuple[Engine, list[Fact]]:
    """An engine with the state at the end of valid, and the facts of the test period."""
    dataset = icews14()
    bundle, state = untrained(dataset, "untrained", seed=1)
    names, relations = dataset.entities, dataset.relations
    rows = dataset.facts[dataset.facts[:, 3] >= dataset.split_bounds[1]].tolist()
    return bundle.engine(snapshot=state.snapshot), [Fact(names[s], relations[r], names[o], t) for s, r, o, t in rows]


@dataclass(frozen=True)
class Place:
    """Brokers, a folder, and what is in them."""

    folder: Path
    connection: Connection
    topics: Topics

    def __post_init__(self) -> None:
        ensure_topics(self.connection, self.topics)

    @property
    def store(self) -> ModelStore:
        """The models."""
        return ModelStore(str(self.folder / "models"))

    @property
    def worker_log(self) -> Path:
        """What the worker said."""
        return self.folder / "worker.log"

    def publish_test(self, dataset: Dataset, days: int) -> None:
        """Facts and queries of so many days of the test period, at once."""
        first = dataset.split_bounds[1]
        choice = Choice(GRAPH, first=first, last=first + days - 1, queries=True)
        publish(ReplaySequence(dataset, choice), self.connection, self.topics.events)

    def records(self, topic: str) -> list[Record]:
        """All messages of a topic."""
        with open_log(self.connection, topic) as reader:
            return [record for number in reader.partitions() for record in reader.read(number, *reader.bounds(number))]

    def count(self, topic: str) -> int:
        """How many messages a topic has."""
        with open_log(self.connection, topic) as reader:
            return sum(end - first for first, end in map(reader.bounds, reader.partitions()))

    @contextmanager
    def worker(self, web_port: int = 0) -> Iterator[subprocess.Popen[bytes]]:
        """A worker while it lasts, with its pages or without."""
        command = [sys.executable, "-m", "adatkg", "worker", "--models", self.store.url]
        where = {"ADATKG_BOOTSTRAP": self.connection.bootstrap, "ADATKG_STREAM_WEB_PORT": str(web_port)}
        with self.worker_log.open("wb") as log:
            process = subprocess.Popen(
                [*command, "--snapshots", str(self.folder / "snapshots")],
                stdout=log,
                stderr=log,
                env=os.environ | where,
            )
            try:
                yield process
            finally:
                process.terminate()
                process.wait()

"""What Kafka and Faust cost: events per second through a worker, against the same engine called directly.

Both take in the same facts and queries of ICEWS14's test period, in batches of the same size, one after the other.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import subprocess
import sys
import tempfile
import time
from itertools import groupby
from pathlib import Path

import orjson
import torch

from adatkg_core.bundle import Bundle
from adatkg_core.config import load_config
from adatkg_core.datasets import Dataset, load_dataset, text_of
from adatkg_core.encoder import load_encoder
from adatkg_core.evaluation import by_first_appearance
from adatkg_core.events import Fact
from adatkg_core.messages import Question, Tick, decode_event
from adatkg_core.model import AdaTKG
from adatkg_core.model_store import ModelStore
from adatkg_core.snapshots import Saved
from benchmarks.results import tell
from replay import Choice, ReplaySequence, publish
from streams.broker import Broker
from streams.connection import Connection
from streams.log import Record, open_log
from streams.settings import StreamSettings
from streams.topics import Topics, ensure_topics
from trainer import starting_state

DAYS = 12  # of the test period
WARM = 0.2  # share of the events that counts for neither: caches fill, the graph is loaded


def main() -> None:
    """Both ways, and their ratio."""
    dataset = by_first_appearance(load_dataset("icews14"))
    config = load_config("live")
    encoder = load_encoder(config.model.encoder)
    torch.manual_seed(1)
    model = AdaTKG(config, encoder.encode([text_of(name) for name in dataset.relations]), dataset.n_entities).eval()
    bundle = Bundle(model, dataset.relations, dataset.entities, "untrained")
    state = starting_state(bundle, dataset, encoder, "icews14", "valid")
    with tempfile.TemporaryDirectory() as name, Broker(Path(name) / "broker", port=0) as broker:
        folder, connection, topics = Path(name), Connection(broker.bootstrap), Topics()
        ensure_topics(connection, topics)
        store = ModelStore(str(folder / "models"))
        store.put("icews14", bundle, state)
        store.make_present("icews14", bundle.version)
        publish(_sequence(dataset), connection, topics.events)
        events = _records(connection, topics.events)
        alone = _alone(bundle, state, events)
        streamed = _streamed(folder, connection, topics, events)
    print(
        orjson.dumps({"engine_alone": round(alone, 1), "through_kafka": round(streamed, 1)}).decode(), file=sys.stderr
    )
    tell("stream_to_engine_rate", streamed / alone)


def _sequence(dataset: Dataset) -> ReplaySequence:
    first = dataset.split_bounds[1]
    return ReplaySequence(dataset, Choice("icews14", first=first, last=first + DAYS - 1, queries=True))


def _records(connection: Connection, topic: str) -> list[Record]:
    with open_log(connection, topic) as reader:
        return [record for number in reader.partitions() for record in reader.read(number, *reader.bounds(number))]


def _alone(bundle: Bundle, state: Saved, records: list[Record]) -> float:
    """Events per second of the engine: decoded events in, predictions out, nothing else."""
    engine = bundle.engine()
    engine.restore(state.snapshot)
    events = [decode_event(record.value, None) for record in records]
    size, warm = StreamSettings().batch_events, int(WARM * len(events))
    began = 0.0
    for start in range(0, len(events), size):
        if began == 0.0 and start >= warm:
            began, first = time.perf_counter(), start
        for kind, run in groupby(events[start : start + size], type):
            assert kind is not Tick
            some = list(run)
            engine.observe([event for event in some if isinstance(event, Fact)])
            engine.predict([event.query for event in some if isinstance(event, Question)])
    return (len(events) - first) / (time.perf_counter() - began)


def _streamed(folder: Path, connection: Connection, topics: Topics, events: list[Record]) -> float:
    """Events per second of a worker that finds the whole stream in the log, by the times of its predictions."""
    queries = sum(b'"kind":"query"' in (record.value or b"") for record in events)
    command = [sys.executable, "-m", "adatkg_cli.main", "worker", "--models", str(folder / "models")]
    place = {"ADATKG_BOOTSTRAP": connection.bootstrap, "ADATKG_STREAM_WEB_PORT": "0"}
    with (folder / "worker.log").open("wb") as log:
        worker = subprocess.Popen(
            [*command, "--snapshots", str(folder / "snapshots")], stdout=log, stderr=log, env=os.environ | place
        )
        try:
            while _count(connection, topics.predictions) < queries:
                assert worker.poll() is None, (folder / "worker.log").read_text()
                time.sleep(2.0)
        finally:
            worker.terminate()
            worker.wait()
    predictions = _records(connection, topics.predictions)
    made = [(orjson.loads(record.value or b"")["source"]["offset"], record.timestamp) for record in predictions]
    counted = sorted(one for one in made if one[0] >= WARM * len(events))
    (first, began), (last, ended) = counted[0], counted[-1]
    return float((last - first) * 1000 / (ended - began))


def _count(connection: Connection, topic: str) -> int:
    with open_log(connection, topic) as reader:
        return sum(end - first for first, end in map(reader.bounds, reader.partitions()))


if __name__ == "__main__":
    main()

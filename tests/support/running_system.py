"""A small world for tests against a real broker: a graph with a model, workers as processes, and what they said."""

from __future__ import annotations

import os
import signal
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from typer.testing import CliRunner

from adatkg.main import app
from adatkg_core.datasets import Dataset
from adatkg_core.events import Source
from adatkg_core.messages import encode_fact, encode_query
from adatkg_core.storage import Bundle, ModelStore, Saved, SnapshotStore
from adatkg_core.text import load_encoder
from streams.embedded_broker import choose_port
from streams.kafka import LogReader, Record, Topics, connection_from, ensure_topics, event_log, open_log, partition_of
from streams.settings import StreamSettings
from streams.worker import Arrival, LiveGraph, Replica
from tests.support.preloaded import Preloaded
from tests.support.small_graph import shared_model, small_graph

PATIENCE = 120.0  # seconds for anything that should happen in a few
GRAPH = small_graph()
VERSION = "small-1"
Event = tuple[str, bytes]  # the graph that is its key, and the message


@dataclass
class Worker:
    """A worker process and the lines it logged."""

    process: Preloaded
    logfile: Path
    port: int

    def log(self) -> list[dict[str, Any]]:
        """What it logged so far."""
        lines = self.logfile.read_bytes().splitlines() if self.logfile.exists() else []
        return [orjson.loads(line) for line in lines if line.startswith(b"{")]

    def said(self, event: str) -> list[dict[str, Any]]:
        """The log lines about one kind of event."""
        return [line for line in self.log() if line["event"] == event]

    def page(self, path: str) -> tuple[int, bytes]:
        """Status and body of one of its pages."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def is_ready(self) -> bool:
        """Whether partitions are assigned to it."""
        assert self.process.poll() is None, f"the worker ended:\n{self.logfile.read_text()[-3000:]}"
        try:
            return self.page("/ready")[0] == 200
        except OSError:
            return False

    def metric(self, name: str) -> float:
        """A metric as Prometheus would read it; 0 while it is not there."""
        lines = self.page("/metrics")[1].decode().splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} ")), 0.0)

    def has_answered(self) -> bool:
        """Whether it has made predictions, by its own count."""
        return b"\nadatkg_predictions_total{" in self.page("/metrics")[1]

    def is_durable(self) -> bool:
        """Whether everything that it has taken in is saved."""
        return self.metric("adatkg_snapshot_age_seconds") == 0

    def kill(self) -> None:
        """SIGKILL: it has no chance to do anything."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """SIGTERM: it finishes, saves and leaves."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE) == 0, self.logfile.read_text()[-3000:]


@dataclass
class World:
    """Topics of its own on a broker, a model store and a place for snapshots."""

    bootstrap: str
    folder: Path
    prefix: str = field(default_factory=lambda: f"test-{uuid.uuid4().hex[:8]}")
    partitions: int = 4
    variables: dict[str, str] = field(default_factory=dict)  # more ADATKG_ ones, for a broker that wants them
    workers: list[Worker] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.connection, self.topics = connection_from(self.variables, self.bootstrap), Topics(self.prefix)
        ensure_topics(self.connection, self.topics, self.partitions)
        self.event_log = event_log(self.connection, self.topics)
        self.models, self.snapshots = self.folder / "models", self.folder / "snapshots"
        self.saved = self.snapshots / f"@{self.prefix}-workers"  # of this group

    @property
    def place(self) -> dict[str, str]:
        """The variables by which a command finds the broker and the topics."""
        return {**self.variables, "ADATKG_BOOTSTRAP": self.bootstrap, "ADATKG_TOPIC_PREFIX": self.prefix}

    # -- what there is ----------------------------------------------------------------------------------------

    def add_model(self, *graphs: str) -> None:
        """Give graphs a small model whose weights are random but matter."""
        bundle = small_bundle()
        for graph in graphs:
            store = ModelStore(str(self.models))
            store.put(graph, bundle, None)
            store.make_present(graph, VERSION)

    def start_worker(self, **settings: Any) -> Worker:
        """Start a worker and wait until events can reach it."""
        worker = self.spawn_worker(**settings)
        until(worker.is_ready, "a worker is ready")
        return worker

    def spawn_worker(self, **settings: Any) -> Worker:
        """Start a worker process; settings go by ADATKG_STREAM_ variables."""
        port = settings.pop("web_port", None) or free_port()
        values = {"group": f"{self.prefix}-workers", "session_seconds": 6, "snapshot_seconds": 1} | settings
        values |= {"models": self.models, "snapshots": self.snapshots, "device": "cpu", "web_port": port}
        variables = {f"ADATKG_STREAM_{name}".upper(): str(value) for name, value in values.items()}
        variables |= self.place | {"OMP_NUM_THREADS": "1"}
        logfile = self.folder / f"worker-{len(self.workers)}.log"
        process = Preloaded("worker", env=os.environ | variables, output=logfile)
        self.workers.append(Worker(process, logfile, port))
        return self.workers[-1]

    # -- what goes in and what comes out ----------------------------------------------------------------------

    def publish(self, events: Iterable[Event]) -> int:
        """Append events to the log; returns how many."""
        producer = KafkaProducer(**self.connection.client(), linger_ms=5, max_request_size=16 << 20)
        count = 0
        for graph, value in events:
            producer.send(self.topics.events, value, key=graph.encode() or None)
            count += 1
        producer.flush()
        producer.close()
        return count

    def records(self, topic: str) -> list[Record]:
        """Everything in a topic."""
        with open_log(self.connection, topic) as reader:
            found = []
            for partition in reader.partitions():
                first, end = reader.bounds(partition)
                found += list(reader.read(partition, first, end))
            return found

    def answers(self) -> dict[str, list[dict[str, Any]]]:
        """The predictions, by the id of their query; more than one where one was made again."""
        found: dict[str, list[dict[str, Any]]] = {}
        for record in self.records(self.topics.predictions):
            assert record.value is not None
            prediction = orjson.loads(record.value)
            found.setdefault(prediction["query"]["id"], []).append(prediction)
        return found

    def count(self, topic: str) -> int:
        """How many messages a topic has."""
        with open_log(self.connection, topic) as reader:
            return _size(reader)

    def await_answers(self, ids: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
        """Wait until each of these queries has an answer."""
        wanted, found = set(ids), dict[str, list[dict[str, Any]]]()

        def complete() -> bool:
            nonlocal found
            found = self.answers()
            return wanted <= found.keys()

        self.await_count(len(wanted))
        until(complete, f"an answer to each of {len(wanted)} queries")
        return found

    def await_count(self, count: int, patience: float = PATIENCE) -> None:
        """Wait until there are so many predictions."""
        self._await(self.topics.predictions, count, f"{count} answers", patience)

    def await_dead_letters(self, count: int) -> list[Record]:
        """Wait until there are so many dead letters."""
        self._await(self.topics.deadletter, count, f"{count} dead letters")
        return self.records(self.topics.deadletter)

    def _await(self, topic: str, count: int, what: str, patience: float = PATIENCE) -> None:
        """Wait until a topic has so many messages; one connection serves all looks at it."""
        with open_log(self.connection, topic) as reader:
            until(lambda: _size(reader) >= count, what, patience)

    def newest_snapshot(self, graph: str, version: str = VERSION) -> Saved:
        """The state that a worker saved last."""
        log_id = self.event_log.log_id(partition_of(graph, self.partitions))
        return next(iter(SnapshotStore(str(self.saved), graph, log_id).newest_first(version, "cpu")))

    def end_of(self, graph: str) -> int:
        """The offset after the last event in a graph's partition."""
        with open_log(self.connection, self.topics.events) as reader:
            return reader.bounds(partition_of(graph, self.partitions))[1]

    def committed(self, graph: str) -> int:
        """From where on a graph's partition comes again after a kill; 0 before anything was committed."""
        admin = KafkaAdminClient(**self.connection.client())
        try:
            group, number = f"{self.prefix}-workers", partition_of(graph, self.partitions)
            found = admin.list_group_offsets({group: [TopicPartition(self.topics.events, number)]})[group]
            offsets: list[int] = [one.offset for one in found.values()]
            return max(0, *offsets)
        finally:
            admin.close()

    def members(self) -> int:
        """How many workers are in the group."""
        admin = KafkaAdminClient(**self.connection.client())
        try:
            group = f"{self.prefix}-workers"
            return len(admin.describe_groups([group])[group]["members"])
        finally:
            admin.close()

    def command(self, *arguments: str) -> dict[str, Any]:
        """The JSON that a command prints."""
        result = CliRunner().invoke(app, [*arguments, "--json"], env=self.place)
        assert result.exit_code == 0, f"{result.output}\n{result.exception!r}"
        answer: dict[str, Any] = orjson.loads(result.stdout)
        return answer

    def ask(self, *arguments: str) -> dict[str, Any]:
        """What `adatkg ask` prints, with as much patience as a busy machine wants."""
        return self.command("ask", *arguments, "--timeout", str(PATIENCE))

    def close(self) -> None:
        """End what is still running."""
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.kill()


def _size(reader: LogReader) -> int:
    return sum(end - first for first, end in map(reader.bounds, reader.partitions()))


def small_bundle() -> Bundle:
    """The bundle that `add_model` adds."""
    return Bundle(shared_model("default"), GRAPH.relations, (), VERSION)


def offline(bundle: Bundle, events: Sequence[Event]) -> dict[str, dict[str, Any]]:
    """What the engine says with this bundle to a log of just these events, by query."""
    graph = LiveGraph("g", bundle, load_encoder("hash:24"), StreamSettings(), Replica())
    arrivals = [Arrival(Source(0, i), 0.0, b"g", value) for i, (_, value) in enumerate(events)]
    answers = [orjson.loads(one.body) for one in graph.apply(arrivals).answered]
    return {answer["query"]["id"]: answer for answer in answers}


def stream_of(dataset: Dataset, graph: str, facts: slice = slice(None), k: int = 5) -> Iterator[Event]:
    """Of each time: both directions of each fact as queries in between its facts, then one about the time after."""
    rows = dataset.facts[facts].tolist()
    for i, (s, r, o, t) in enumerate(rows):
        subject, relation, other = dataset.entities[s], dataset.relations[r], dataset.entities[o]
        yield graph, encode_query(f"{graph}-{i}-o", relation, t, s=subject, k=k, rank_of=[other])
        yield graph, encode_fact(subject, relation, other, t)
        yield graph, encode_query(f"{graph}-{i}-s", relation, t, o=other, k=k, rank_of=[subject])
        if i + 1 == len(rows) or rows[i + 1][3] > t:
            yield graph, encode_query(f"{graph}-{i}-n", relation, t + 1, s=subject, k=k)


def ids_of(events: Sequence[Event]) -> list[str]:
    """The ids of the queries among events."""
    messages = [orjson.loads(value) for _, value in events]
    return [message["id"] for message in messages if message["kind"] == "query"]


def assert_same_answer(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Equal but for rounding: scores agree to 1e-5, and only candidates closer than that swap places."""
    for key in wanted.keys() - {"top", "gate"}:
        assert found[key] == wanted[key], key
    assert abs(found["gate"] - wanted["gate"]) < 1e-5
    scores = {one["entity"]: one["score"] for one in wanted["top"]}
    assert len(found["top"]) == len(wanted["top"])
    for mine, theirs in zip(found["top"], wanted["top"], strict=True):
        assert abs(mine["score"] - theirs["score"]) < 2e-5
        assert abs(mine["probability"] - theirs["probability"]) < 1e-5
        assert abs(scores.get(mine["entity"], wanted["top"][-1]["score"]) - mine["score"]) < 4e-5


def until(holds: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Wait for something that should come true."""
    deadline = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < deadline, f"waited {patience:.0f} s in vain until {what}"
        time.sleep(0.1)


def free_port() -> int:
    """A port that nobody listens on."""
    return choose_port("127.0.0.1")

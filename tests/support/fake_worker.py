"""A worker without Kafka and Faust: its real parts over a log that needs no broker, and deliveries made by hand."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adatkg_core.engine import compile_engine
from adatkg_core.events import Source
from adatkg_core.messages import encode_fact, encode_query
from adatkg_core.runtime import Retry
from adatkg_core.storage import Bundle, LastEvent, ModelStore, Saved
from streams.kafka import Connection, EventLog, Record, Topics, partition_of
from streams.settings import StreamSettings
from streams.worker import (
    Arrival,
    BatchResult,
    CatchUp,
    Checkpointer,
    DeviceThread,
    GraphHost,
    Intake,
    Loader,
    Metrics,
    Observer,
    Overflow,
    Publisher,
    Recovery,
    Replica,
    Worker,
)
from streams.worker.capture import Capture
from streams.worker.graph_capture import GraphCapture
from tests.support.small_graph import shared_model, small_graph

GRAPH = small_graph()
RELATION, SUBJECT = GRAPH.relations[0], GRAPH.entities[0]
PARTITIONS = 4
HERE = partition_of("g", PARTITIONS)


class NoLog(CatchUp):
    """A log that holds nothing but what is delivered; only its bounds are known."""

    def __init__(self, log_id: str, first: int = 0, end: int = 1_000_000) -> None:
        super().__init__(Connection("127.0.0.1:1"), Topics(), Retry("loading_failed"))
        self._log = EventLog(log_id, PARTITIONS)
        self._bounds = first, end
        self.wanted: list[tuple[int, int]] = []  # offsets from which and to which graphs were brought
        self.missed: list[tuple[int, int]] = []  # offsets from which and to which nothing was delivered

    def bounds(self, partition: int) -> tuple[int, int]:
        return self._bounds

    def first_kept(self, partition: int) -> int:
        return self._bounds[0]

    def holds(self, partition: int, last: LastEvent) -> bool:
        return True

    def bring(self, graphs: Sequence[Any], end: int) -> None:
        self.wanted.append((min(hosted.offset for hosted in graphs), end))

    def unseen(self, partition: int, graphs: Sequence[Any], start: int, end: int) -> list[Arrival]:
        self.missed.append((start, end))
        return []


class WholeLog(NoLog):
    """A log that keeps all that was ever written to it, until a test removes something."""

    bring, holds, unseen = CatchUp.bring, CatchUp.holds, CatchUp.unseen

    def __init__(self, log_id: str, arrivals: Sequence[Arrival] = ()) -> None:
        super().__init__(log_id)
        self.arrivals, self.first = list(arrivals), 0
        self.fails: Exception | None = None  # what reading raises
        self.opened = 0

    def bounds(self, partition: int) -> tuple[int, int]:
        if self.fails is not None:
            raise self.fails
        ends = [one.source.offset + 1 for one in self.arrivals if one.source.partition == partition]
        return self.first, max(ends, default=0)

    def first_kept(self, partition: int) -> int:
        return self.first

    def read(self, partition: int, start: int, end: int) -> Iterator[Record]:
        for one in self.arrivals:
            if one.source.partition == partition and max(start, self.first) <= one.source.offset < end:
                yield Record(partition, one.source.offset, 0, one.key, one.value, ())

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        self.opened += 1
        yield self

    def open(self) -> Any:
        return self._opened()


def settings_with_model(folder: Path, **options: Any) -> StreamSettings:
    """Settings of a worker whose store has a model of graph `g`."""
    store = ModelStore(str(folder / "models"))
    store.put("g", Bundle(shared_model("default"), GRAPH.relations, (), "v1"), None)
    store.make_present("g", "v1")
    return StreamSettings(models=str(folder / "models"), snapshots=str(folder / "snapshots"), device="cpu", **options)


def host_of(settings: StreamSettings, log: NoLog | None = None) -> GraphHost:
    replica = Replica(settings.replica, settings.replicas)
    return GraphHost(Loader(settings, replica), log or NoLog("first"), replica, Retry("loading_failed"))


def save_all(host: GraphHost, loader: Loader) -> Capture:
    """A checkpoint without its other steps: what has changed is copied, written and known to be durable."""
    capture = host.capture()
    deque(capture.copy(), maxlen=0)
    for state in capture.states:
        loader.save(state.saved())
    host.saved(capture)
    return capture


def whole(state: GraphCapture) -> Saved:
    """What was captured of a graph of which no snapshot is known."""
    deque(state.copy(), maxlen=0)
    saved = state.saved()
    assert isinstance(saved, Saved)
    return saved


def fact(offset: int, partition: int = HERE, key: bytes = b"g") -> Arrival:
    value = encode_fact(SUBJECT, RELATION, GRAPH.entities[1 + offset % 5], offset)
    return Arrival(Source(partition, offset), 0.0, key, value)


def query(offset: int, partition: int = HERE, key: bytes = b"g") -> Arrival:
    value = encode_query(f"q{offset}", RELATION, "next", s=SUBJECT)
    return Arrival(Source(partition, offset), 0.0, key, value)


# -- deliveries ---------------------------------------------------------------------------------------------------


@dataclass
class Message:
    """What Faust delivers, as far as the worker reads it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Any = None
    timestamp: float = 0.0
    generation_id: int = 1


class Delivered:
    """An event as Faust delivers it."""

    def __init__(self, arrival: Arrival) -> None:
        self.message = Message(arrival.source.partition, arrival.source.offset, arrival.key, arrival.value)


class NoFlow:
    """Where deliveries come from when a test makes them: remembers which partitions are paused."""

    def __init__(self, highwater: Callable[[int], int | None] = lambda _: None) -> None:
        self._highwater = highwater
        self.paused: set[int] = set()
        self.committed: dict[int, int] = {}  # by partition

    def highwater(self, partition: int) -> int | None:
        return self._highwater(partition)

    def begin(self, partition: int) -> int | None:
        return self.committed.get(partition)

    def pause(self, partition: int) -> None:
        self.paused.add(partition)

    def resume(self, partition: int) -> None:
        self.paused.discard(partition)


class Outbox:
    """Stands in for the producer: what was sent is durable at once."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []

    async def start(self, topics: Sequence[str]) -> None:
        return None

    def send(self, topic: str, messages: Sequence[Any], *, in_order: bool = False) -> None:
        self.sent += [(topic, message) for message in messages]

    async def room(self) -> None:
        return None

    async def flush(self) -> None:
        return None

    async def stop(self) -> None:
        return None


class FakeWorker:
    """A whole worker, each of whose parts a test can reach."""

    def __init__(
        self, settings: StreamSettings, observers: Sequence[Observer] = (), log: CatchUp | None = None
    ) -> None:
        compile_engine()  # once on a machine it takes long, and tests of waiting begin after it
        outbox: Any = Outbox()
        self.outbox, self.metrics, self.device = outbox, Metrics(), DeviceThread()
        self.replica, self.retry = Replica(settings.replica, settings.replicas), Retry("loading_failed")
        self.loader = Loader(settings, self.replica)
        self.log = log or NoLog("first")
        self.incidents, self.committed = self.log.incidents, list[tuple[int, int]]()
        self.host = GraphHost(self.loader, self.log, self.replica, self.retry)
        self.flow = NoFlow()
        self.intake = Intake(settings, self.flow)
        self.publisher = Publisher(Topics(), outbox, self.metrics, observers)
        self.checkpointer = Checkpointer(
            settings,
            self.device,
            self.host,
            self.loader,
            self.publisher,
            self.metrics,
            self.incidents,
            self._commit,
        )
        parts = self.intake, self.device, self.host, self.publisher, self.checkpointer
        self.worker = Worker(*parts, settings.batch_events)
        beside = self.worker.process_beside
        self.recovery = Recovery(self.loader, self.host, self.log, self.device, beside, settings.batch_events)
        self.overflow = Overflow(self.host, self.log, self.device, self.intake.wake)

    @property
    def is_idle(self) -> bool:
        """Whether everything that was delivered is processed."""
        waits = self.intake.is_waiting or self.host.turns.is_waiting
        return not waits and not self.device.turn.locked()

    async def _commit(self, partition: int, offset: int) -> None:
        self.committed.append((partition, offset))


def answered_by(results: Sequence[BatchResult]) -> list[Any]:
    """All answers, in the order in which they are sent."""
    return [one for result in results for one in result.answered]

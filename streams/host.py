"""The graphs that this worker answers for: loaded when their first event comes, caught up from the log, saved.

Everything here runs on the one thread that touches the device.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from adatkg_core.bundle import Bundle, resolve_device
from adatkg_core.encoder import TextEncoder, load_encoder
from adatkg_core.errors import AdatkgError
from adatkg_core.messages import Question, Source, Unusable, decode_event, decode_graph
from adatkg_core.model_store import ModelStore
from adatkg_core.snapshots import Saved, SnapshotStore
from streams.connection import Connection
from streams.graph import Answered, Arrival, Graph, Outcome, Rejected
from streams.log import LogReader, open_log
from streams.settings import StreamSettings
from streams.share import Share
from streams.topics import Topics

CATCH_UP = 4_096  # events applied at once while catching up
LOOK_AGAIN = 5.0  # seconds until the store is asked again for a graph's first model
STALE = 500_000  # offsets: a graph that is idle for so long in a busy partition is saved again, to be found sooner
RETRY = 2.0  # seconds before loading or catching up is tried again
log = structlog.get_logger()
K = TypeVar("K")


@dataclass
class _Seat:
    """A graph in its partition: `offset` is that of the next event it takes."""

    graph: Graph
    offset: int
    saved: int  # the offset that its newest snapshot stands at
    dirty: bool = False


@dataclass
class _Partition:
    next: int  # the offset that should come next
    seats: dict[str, _Seat] = field(default_factory=dict)
    absent: dict[str, float] = field(default_factory=dict)  # graphs without a model: when to look again


@dataclass
class Done:
    """What came of a batch over all graphs."""

    answered: list[Answered] = field(default_factory=list)
    rejected: list[tuple[str, Rejected]] = field(default_factory=list)
    counts: dict[str, Counter[str]] = field(default_factory=dict)  # of events by kind, per graph
    answers: Counter[str] = field(default_factory=Counter)  # predictions, per graph


@dataclass(frozen=True)
class Capture:
    """States as of one moment: once they are durable, events below `positions` need not come again."""

    states: tuple[Saved, ...]
    positions: dict[int, int]


class Host:
    """Partitions, their graphs, and where each stands in the log."""

    def __init__(self, settings: StreamSettings, connection: Connection, topics: Topics) -> None:
        self._settings, self._connection, self._topics = settings, connection, topics
        self._share = Share(settings.replica, settings.replicas)
        self._device = resolve_device(settings.device)
        self._models = ModelStore(settings.models)
        self._partitions: dict[int, _Partition] = {}
        self._encoders: dict[str, TextEncoder] = {}
        self._given_up = threading.Event()

    def give_up(self) -> None:
        """Called from any thread when the worker ends: what waits for a broker or a store waits no longer."""
        self._given_up.set()

    # -- events -----------------------------------------------------------------------------------------------

    def process(self, arrivals: Sequence[Arrival]) -> Done:
        """Take in events as they were delivered: in order within a partition, perhaps again, perhaps after a gap."""
        done = Done()
        for partition, some in _grouped(arrivals, lambda arrival: arrival.source.partition):
            fresh = self._unseen(partition, some)
            if fresh:
                self._deal_out(partition, fresh, done)
                self._partitions[partition].next = fresh[-1].source.offset + 1
        return done

    def keep_only(self, partitions: Iterable[int]) -> None:
        """Forget the partitions that others answer for now."""
        keep = set(partitions)
        self._partitions = {number: one for number, one in self._partitions.items() if number in keep}

    # -- states -----------------------------------------------------------------------------------------------

    def capture(self) -> Capture:
        """Copies of the states that have changed since they were last saved."""
        states = []
        for partition in self._partitions.values():
            for seat in partition.seats.values():
                offset = max(seat.offset, partition.next)
                if seat.dirty or offset - seat.saved > STALE:
                    states.append(seat.graph.capture(offset))
                    seat.dirty, seat.saved = False, offset
        return Capture(tuple(states), {number: one.next for number, one in self._partitions.items()})

    def save(self, capture: Capture) -> None:
        """Write captured states; this touches no device and may run beside `process`."""
        for saved in capture.states:
            self._snapshots(saved.graph).save(saved)

    def sizes(self) -> dict[str, tuple[int, int, int | None, str]]:
        """Of each graph: bytes of its state, entities, watermark, and the version that answers."""
        return {
            name: (
                sum(tensor.nbytes for tensor in seat.graph.engine.state.tensors.values()),
                len(seat.graph.engine.catalog),
                seat.graph.engine.watermark,
                seat.graph.version,
            )
            for partition in self._partitions.values()
            for name, seat in partition.seats.items()
        }

    # -- private ----------------------------------------------------------------------------------------------

    def _unseen(self, number: int, arrivals: Sequence[Arrival]) -> list[Arrival]:
        """Without those that came before; what was delivered to others in the meantime is read from the log."""
        first = arrivals[0].source.offset
        partition = self._partitions.setdefault(number, _Partition(first))
        if first > partition.next and partition.seats:
            seats = list(partition.seats.values())
            self._insist(lambda: self._catch_up(number, seats, first), f"partition {number}")
        return [arrival for arrival in arrivals if arrival.source.offset >= partition.next]

    def _deal_out(self, number: int, arrivals: Sequence[Arrival], done: Done) -> None:
        for key, some in _grouped(arrivals, lambda arrival: arrival.key):
            try:
                name = decode_graph(key)
            except Unusable as problem:
                if self._share.leads:
                    done.rejected += [("", Rejected(arrival, problem.code, problem.detail)) for arrival in some]
                continue
            seat = self._seat(number, name, some[0].source.offset)
            if seat is None:
                outcome = self._without_model(name, some)
            else:
                outcome = seat.graph.apply([arrival for arrival in some if arrival.source.offset >= seat.offset])
                seat.offset, seat.dirty = max(seat.offset, some[-1].source.offset + 1), True
            done.answered += outcome.answered
            done.answers[name] += len(outcome.answered)
            done.rejected += [(name, rejected) for rejected in outcome.rejected]
            done.counts[name] = done.counts.get(name, Counter()) + outcome.counts

    def _without_model(self, name: str, arrivals: Sequence[Arrival]) -> Outcome:
        """Facts wait in the log, where the first model will find them; a question cannot wait."""
        outcome = Outcome()
        detail = f"graph {name} has no model in {self._models.url}: train one with --models and --graph"
        for arrival in arrivals:
            try:
                if isinstance(event := decode_event(arrival.value, None), Question):
                    if self._share.answers(event.id):
                        outcome.rejected.append(Rejected(arrival, "no-model", detail))
                else:
                    outcome.counts["waiting"] += 1
            except Unusable as problem:
                if problem.code == "bad-time":  # without a model there is no clock to read it by
                    outcome.counts["waiting"] += 1
                elif self._share.leads:
                    outcome.rejected.append(Rejected(arrival, problem.code, problem.detail))
        return outcome

    def _seat(self, number: int, name: str, offset: int) -> _Seat | None:
        """The graph, loaded if need be to stand right before `offset`, or further where it was saved later."""
        partition = self._partitions[number]
        if name in partition.seats:
            return partition.seats[name]
        if partition.absent.get(name, 0.0) > time.monotonic():
            return None
        bundle = self._present(name)
        if bundle is None:
            partition.absent[name] = time.monotonic() + LOOK_AGAIN
            return None
        began = time.perf_counter()
        seat = self._insist(lambda: self._load(number, name, bundle), f"graph {name}")
        self._insist(lambda: self._catch_up(number, [seat], offset), f"graph {name}")
        partition.seats[name] = seat
        partition.absent.pop(name, None)
        took = round(time.perf_counter() - began, 3)
        log.info("graph_loaded", graph=name, version=bundle.version, snapshot=seat.saved, offset=offset, seconds=took)
        return seat

    def _present(self, name: str) -> Bundle | None:
        try:
            version = self._models.present(name)
            if version is None:
                log.warning("graph_without_model", graph=name, models=self._models.url)
                return None
            return self._models.bundle(name, version, self._device)
        except AdatkgError as error:
            log.error("model_unusable", graph=name, problem=str(error))
            return None

    def _load(self, number: int, name: str, bundle: Bundle) -> _Seat:
        """From the newest sound snapshot, else from the state that came with the bundle, else from nothing."""
        spec = bundle.model.config.model.encoder
        if spec not in self._encoders:
            self._encoders[spec] = load_encoder(spec, device=self._device)
        with open_log(self._connection, self._topics.events) as reader:
            first, end = reader.bounds(number)
        for saved in self._starts(name, bundle):
            if saved.offset > end:
                log.warning("snapshot_of_another_log", graph=name, offset=saved.offset, end=end)
                continue
            graph = Graph(name, bundle, self._encoders[spec], self._settings, self._share)
            try:
                graph.restore(saved)
            except AdatkgError as error:
                log.warning("snapshot_unusable", graph=name, offset=saved.offset, problem=str(error))
                continue
            if saved.offset < first:
                log.error("log_truncated", graph=name, wanted=saved.offset, first=first)
            return _Seat(graph, saved.offset, saved.offset)
        if first > 0:
            log.error("log_truncated", graph=name, wanted=0, first=first)
        return _Seat(Graph(name, bundle, self._encoders[spec], self._settings, self._share), first, first)

    def _starts(self, name: str, bundle: Bundle) -> Iterable[Saved]:
        yield from self._snapshots(name).newest_first(bundle.version, self._device)
        try:
            state = self._models.state(name, bundle.version, self._device)
        except AdatkgError as error:
            log.warning("snapshot_unusable", graph=name, problem=str(error))
        else:
            if state is not None:
                yield state

    def _catch_up(self, number: int, seats: Sequence[_Seat], end: int) -> None:
        """Bring graphs of one partition to the state right before `end`; their answers were given before."""
        start = min(seat.offset for seat in seats)
        if start >= end:
            return
        began = time.perf_counter()
        with open_log(self._connection, self._topics.events) as reader:
            read = self._follow(reader, number, {seat.graph.name.encode(): seat for seat in seats}, start, end)
        seconds = round(time.perf_counter() - began, 3)
        log.info("caught_up", partition=number, start=start, end=end, applied=read, seconds=seconds)

    def _follow(self, reader: LogReader, number: int, seats: dict[bytes, _Seat], start: int, end: int) -> int:
        waiting: dict[bytes, list[Arrival]] = {key: [] for key in seats}
        applied = 0

        def apply(key: bytes) -> None:
            nonlocal applied
            applied += len(waiting[key])
            seats[key].graph.apply(waiting[key], silent=True)
            seats[key].offset, seats[key].dirty = waiting[key][-1].source.offset + 1, True
            waiting[key] = []

        for record in reader.read(number, start, end):
            if record.key in seats and record.offset >= seats[record.key].offset:
                source = Source(number, record.offset)
                waiting[record.key].append(Arrival(source, record.timestamp / 1000, record.key, record.value))
                if len(waiting[record.key]) >= CATCH_UP:
                    apply(record.key)
        for key, seat in seats.items():
            if waiting[key]:
                apply(key)
            seat.offset = max(seat.offset, end)
        return applied

    def _insist(self, work: Callable[[], K], what: str) -> K:
        """Try until it works: a broker or a store that is away comes back, and no event may be lost meanwhile."""
        while True:
            try:
                return work()
            except AdatkgError as error:
                log.error("loading_failed", what=what, problem=str(error), again_in=RETRY)
                if self._given_up.wait(RETRY):
                    raise

    def _snapshots(self, graph: str) -> SnapshotStore:
        url = self._settings.snapshots
        if self._share.name:
            url = f"{url.rstrip('/')}/{self._share.name}"
        return SnapshotStore(url, graph, self._settings.keep_snapshots)


def _grouped(arrivals: Sequence[Arrival], key: Callable[[Arrival], K]) -> Iterable[tuple[K, list[Arrival]]]:
    """The arrivals by key, each group in order."""
    groups: dict[K, list[Arrival]] = {}
    for arrival in arrivals:
        groups.setdefault(key(arrival), []).append(arrival)
    return groups.items()

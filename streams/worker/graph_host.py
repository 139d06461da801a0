"""The graphs that this worker answers for: loaded when their first event comes, caught up from the log, saved.

Everything here runs on the one thread that touches the device, except what the loader says of itself.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from adatkg_core.clock import Clock, iso_of
from adatkg_core.engine import EntityProfile, profile_entity
from adatkg_core.errors import AdatkgError
from adatkg_core.messages import Question, Reason, Unusable, decode_event, decode_graph
from adatkg_core.storage import Bundle, Saved
from streams.kafka import Connection, EventLog, LogReader, Record, Topics, event_log, open_log, partition_of
from streams.settings import StreamSettings
from streams.worker.incoming_graph import Stretch, Successor
from streams.worker.live_graph import Answered, Arrival, Graph, Outcome, Rejected, arrival_of
from streams.worker.live_score import ScoredAnswer, Scores
from streams.worker.loader import Loader
from streams.worker.replica import Share

CATCH_UP = 4_096  # events applied at once while catching up
LOOK_AGAIN = 5.0  # seconds until the store is asked again for a graph's first model
STALE = 500_000  # offsets: a graph that is idle for so long in a busy partition is saved again, to be found sooner
ABSENT = 10_000  # graphs without a model that are remembered
PARTITIONER = "place keys by murmur2, as Kafka's own clients do, and never change the topic's partitions"
RETRY = 2.0  # seconds before loading or catching up is tried again
log = structlog.get_logger()
K = TypeVar("K")


@dataclass
class _Seat:
    """A graph in its partition: `offset` is that of the next event it takes."""

    graph: Graph
    offset: int
    saved: int  # the offset that its newest snapshot stands at
    successor: Successor | None = None  # the same graph with another bundle, on its way to the same offset


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
    graphs: dict[str, Told] = field(default_factory=dict)  # what is told of each graph that answers here


@dataclass
class Told:
    """What a batch told of one graph, for those who watch."""

    clock: Clock | None
    version: str
    answered: list[Answered] = field(default_factory=list)
    scored: list[ScoredAnswer] = field(default_factory=list)
    ended: dict[int, bool] = field(default_factory=dict)  # offsets of answers that were open; whether a truth had come


@dataclass(frozen=True)
class GraphStatus:
    """What there is to see of a graph: bytes of its state, entities, watermark, who answers and how well.

    `heuristic` are the scores of the recurrency heuristic for the same queries; None where no counts are kept. Queries
    about the next time wait for their truth for `horizon` ticks; `unsettled` ones have ended without a truth.
    """

    size: int
    entities: int
    relations: int
    watermark: int | None
    watermark_iso: str | None
    version: str
    scores: Scores
    heuristic: Scores | None
    horizon: int
    unsettled: int


@dataclass(frozen=True)
class Capture:
    """States as of one moment: once they are durable, events below `positions` need not come again."""

    states: tuple[Saved, ...]
    positions: dict[int, int]
    seats: tuple[_Seat, ...] = field(repr=False, default=())  # whose states these are


class Host:
    """Partitions, their graphs, and where each stands in the log."""

    def __init__(self, settings: StreamSettings, connection: Connection, topics: Topics) -> None:
        self._settings, self._connection, self._topics = settings, connection, topics
        self._share = Share(settings.replica, settings.replicas)
        self.loader = Loader(settings, self._share)
        self._partitions: dict[int, _Partition] = {}
        self._given_up = threading.Event()
        self._event_log: EventLog | None = None

    def give_up(self) -> None:
        """Called from any thread when the worker ends: what waits for a broker or a store waits no longer."""
        self._given_up.set()

    # -- events -----------------------------------------------------------------------------------------------

    def process(self, arrivals: Sequence[Arrival]) -> Done:
        """Take in events as they were delivered: in order within a partition, perhaps again, perhaps after a gap."""
        done = Done()
        for number, some in _grouped(arrivals, lambda arrival: arrival.source.partition):
            partition = self._partitions.setdefault(number, _Partition(some[0].source.offset))
            for run in _runs(some, partition.next):
                if run[0].source.offset > partition.next and partition.seats:
                    self._fill_gap(number, run[0].source.offset)
                self._deal_out(number, run, done)
                partition.next = run[-1].source.offset + 1
        return done

    def keep_only(self, partitions: Iterable[int]) -> None:
        """Forget the partitions that others answer for now."""
        keep = set(partitions)
        self._partitions = {number: one for number, one in self._partitions.items() if number in keep}

    # -- states -----------------------------------------------------------------------------------------------

    def capture(self) -> Capture:
        """Copies of the states that have changed since they were last saved."""
        states, seats = [], []
        for number, partition in self._partitions.items():
            for seat in partition.seats.values():
                offset = self._standing(number, seat)
                if seat.offset > seat.saved or offset - seat.saved > STALE:
                    states.append(seat.graph.capture(offset, self._log().stretch(number)))
                    seats.append(seat)
        positions = {number: one.next for number, one in self._partitions.items()}
        return Capture(tuple(states), positions, tuple(seats))

    def save(self, capture: Capture) -> None:
        """Write captured states; this touches no device and may run beside `process`."""
        for saved in capture.states:
            self.loader.save(saved)

    def saved(self, capture: Capture) -> None:
        """The captured states are durable."""
        for seat, saved in zip(capture.seats, capture.states, strict=True):
            if seat.graph.version == saved.version:
                seat.saved = saved.offset

    def statuses(self) -> dict[str, GraphStatus]:
        """What there is to see of each graph."""
        return {
            name: GraphStatus(
                size=sum(tensor.nbytes for tensor in seat.graph.engine.state.tensors.values()),
                entities=len(seat.graph.engine.catalog),
                relations=len(seat.graph.engine.relations),
                watermark=seat.graph.engine.watermark,
                watermark_iso=iso_of(seat.graph.bundle.clock, seat.graph.engine.watermark),
                version=seat.graph.version,
                scores=seat.graph.score.scores(),
                heuristic=seat.graph.score.heuristic_scores() if seat.graph.heuristic else None,
                horizon=seat.graph.score.horizon,
                unsettled=seat.graph.score.unsettled,
            )
            for partition in self._partitions.values()
            for name, seat in partition.seats.items()
        }

    def timed_statuses(self) -> tuple[dict[str, GraphStatus], float]:
        """The same, and how many seconds of the device's thread it took."""
        began = time.perf_counter()
        return self.statuses(), time.perf_counter() - began

    def names(self, name: str) -> tuple[Sequence[str], Sequence[str]] | None:
        """A graph's entities and relations, None where it is not here; the first grows, and may be read meanwhile."""
        found = self._find(name)
        return None if found is None else (found[1].graph.engine.catalog.names, found[1].graph.bundle.relations)

    def profile(self, name: str, entity: str) -> tuple[EntityProfile, Clock | None] | None:
        """What is known of an entity, and its graph's clock; None where the graph is not here."""
        found = self._find(name)
        return None if found is None else (profile_entity(found[1].graph.engine, entity), found[1].graph.bundle.clock)

    # -- bundles ----------------------------------------------------------------------------------------------

    def seated(self, name: str) -> Bundle | None:
        """What answers for a graph; None where it is not loaded. It may be asked for anew at once."""
        for partition in self._partitions.values():
            partition.absent.pop(name, None)
            if name in partition.seats:
                return partition.seats[name].graph.bundle
        return None

    def prepare(self, graph: Graph, offset: int) -> Stretch | None:
        """Seat a graph that stands at `offset` beside the present one; says which stretch of the log it wants first.

        None where the graph is not here.
        """
        found = self._find(graph.name)
        if found is None:
            return None
        number, seat = found
        seat.successor = Successor(graph, offset)
        return seat.successor.wants(number, self._standing(number, seat), self._settings.batch_events)

    def advance(self, name: str, stretch: Stretch, records: Sequence[Record]) -> Stretch | None:
        """Let the successor take in a stretch; None once it sits in the seat, or the graph has left."""
        found = self._find(name)
        if found is None or found[1].successor is None:
            return None
        number, seat = found
        successor = seat.successor
        assert successor is not None
        successor.take_in(stretch, records, self._settings.batch_events)
        if successor.has_reached(self._standing(number, seat)):
            successor.graph.score = seat.graph.score  # of the graph's answers, whoever gives them
            seat.graph, seat.successor, seat.saved = successor.graph, None, -1
            return None
        return successor.wants(number, self._standing(number, seat), self._settings.batch_events)

    def dismiss(self, name: str) -> None:
        """No successor after all; the present bundle goes on."""
        found = self._find(name)
        if found is not None:
            found[1].successor = None

    # -- private ----------------------------------------------------------------------------------------------

    def _standing(self, number: int, seat: _Seat) -> int:
        """Up to where a graph has all its events: also behind those of others in its partition."""
        return max(seat.offset, self._partitions[number].next)

    def _find(self, name: str) -> tuple[int, _Seat] | None:
        for number, partition in self._partitions.items():
            if name in partition.seats:
                return number, partition.seats[name]
        return None

    def _fill_gap(self, number: int, end: int) -> None:
        """What was delivered to others in the meantime is read from the log."""
        seats = list(self._partitions[number].seats.values())
        self._insist(lambda: self._catch_up(number, seats, end), f"partition {number}")

    def _deal_out(self, number: int, arrivals: Sequence[Arrival], done: Done) -> None:
        for key, some in _grouped(arrivals, lambda arrival: arrival.key):
            try:
                name = decode_graph(key)
            except Unusable as problem:
                done.rejected += self._reported("", some, problem)
                continue
            if partition_of(name, self._log().partitions) != number:
                misplaced = Unusable(Reason.WRONG_PARTITION, f"graph {name} does not belong here: {PARTITIONER}")
                done.rejected += self._reported(name, some, misplaced)
                continue
            seat = self._seat(number, name, some[0].source.offset)
            if seat is None:
                outcome = self._without_model(name, some)
            else:
                fresh = [arrival for arrival in some if arrival.source.offset >= seat.offset]
                outcome = seat.graph.apply(fresh)
                seat.offset = max(seat.offset, some[-1].source.offset + 1)
                if seat.successor is not None:
                    seat.successor.overhear(fresh)
                told = done.graphs.setdefault(name, Told(seat.graph.bundle.clock, seat.graph.version))
                told.answered += outcome.answered
                told.scored += outcome.scored
                told.ended |= outcome.ended
            done.answered += outcome.answered
            done.answers[name] += len(outcome.answered)
            done.rejected += [(name, rejected) for rejected in outcome.rejected]
            # A graph without a model may be a producer's mistake, of which there can be many: they count as one.
            known = name if seat is not None else ""
            done.counts[known] = done.counts.get(known, Counter()) + outcome.counts

    def _without_model(self, name: str, arrivals: Sequence[Arrival]) -> Outcome:
        """Facts wait in the log, where the first model will find them; a question cannot wait."""
        outcome = Outcome()
        detail = f"graph {name} has no model in {self.loader.models}: train one with --models and --graph"
        for arrival in arrivals:
            try:
                if isinstance(event := decode_event(arrival.value, None), Question):
                    if self._share.answers(event.id):
                        outcome.rejected.append(Rejected(arrival, Reason.NO_MODEL, detail))
                else:
                    outcome.counts["waiting"] += 1
            except Unusable as problem:
                if problem.code == Reason.BAD_TIME:  # without a model there is no clock to read it by
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
        bundle = self._insist(lambda: self.loader.present(name), f"graph {name}")
        if bundle is None:
            if len(partition.absent) >= ABSENT:
                partition.absent.clear()
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

    def _load(self, number: int, name: str, bundle: Bundle) -> _Seat:
        first, end = self._bounds(number)
        graph, offset = self.loader.load(name, bundle, self._log().stretch(number), first, end)
        return _Seat(graph, offset, offset)

    def _bounds(self, number: int) -> tuple[int, int]:
        with open_log(self._connection, self._topics.events) as reader:
            return reader.bounds(number)

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
            seats[key].offset = waiting[key][-1].source.offset + 1
            if (successor := seats[key].successor) is not None:
                successor.overhear(waiting[key])
            waiting[key] = []
            if self._given_up.is_set():
                raise AdatkgError(f"partition {number}: the worker ends while it catches up at {seats[key].offset}")

        for record in reader.read(number, start, end):
            if record.key in seats and record.offset >= seats[record.key].offset:
                waiting[record.key].append(arrival_of(record))
                if len(waiting[record.key]) >= CATCH_UP:
                    apply(record.key)
        for key, seat in seats.items():
            if waiting[key]:
                apply(key)
            seat.offset = max(seat.offset, end)
        return applied

    def _log(self) -> EventLog:
        if self._event_log is None:
            self._event_log = self._insist(lambda: event_log(self._connection, self._topics), self._topics.events)
        return self._event_log

    def _reported(self, name: str, arrivals: Sequence[Arrival], problem: Unusable) -> list[tuple[str, Rejected]]:
        if not self._share.leads:
            return []
        return [(name, Rejected(arrival, problem.code, problem.detail)) for arrival in arrivals]

    def _insist(self, work: Callable[[], K], what: str) -> K:
        """Try until it works: a broker or a store that is away comes back, and no event may be lost meanwhile."""
        while True:
            try:
                return work()
            except AdatkgError as error:
                log.error("loading_failed", what=what, problem=str(error), again_in=RETRY)
                if self._given_up.wait(RETRY):
                    raise


def _grouped(arrivals: Sequence[Arrival], key: Callable[[Arrival], K]) -> Iterable[tuple[K, list[Arrival]]]:
    """The arrivals by key, each group in order."""
    groups: dict[K, list[Arrival]] = {}
    for arrival in arrivals:
        groups.setdefault(key(arrival), []).append(arrival)
    return groups.items()


def _runs(arrivals: Sequence[Arrival], start: int) -> Iterable[list[Arrival]]:
    """Runs of offsets without a gap from `start` on; what comes again, within the batch too, is left out."""
    run: list[Arrival] = []
    for arrival in arrivals:
        offset = arrival.source.offset
        if offset < start:
            continue
        if run and offset > start:
            yield run
            run = []
        run.append(arrival)
        start = offset + 1
    if run:
        yield run

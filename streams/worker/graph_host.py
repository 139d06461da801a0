"""The graphs that this worker answers for, and where each stands in the log.

Everything here runs on the one thread that touches the device.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import structlog

from adatkg_core.errors import AdatkgError
from adatkg_core.messages import MAX_BYTES, Question, Reason, Unusable, decode_event, decode_graph
from adatkg_core.runtime import Retry
from adatkg_core.storage import Saved
from streams.kafka import partition_of
from streams.worker.arrival import Arrival
from streams.worker.batch import BatchResult, Rejected
from streams.worker.catch_up import CatchUp
from streams.worker.deliveries import grouped, runs
from streams.worker.hosted_graph import HostedGraph
from streams.worker.incident import IncidentKind, kind_of
from streams.worker.live_graph import LiveGraph
from streams.worker.loader import Loader
from streams.worker.replica import Replica
from streams.worker.waiting_graph import WaitingGraph

LOOK_AGAIN = 5.0  # seconds until the store is asked again for a graph's first model
STALE = 500_000  # offsets: a graph that is idle for so long in a busy partition is saved again, to be found sooner
NEAR = 50_000  # offsets that a graph catches up with at once; with more it does so beside the others
AWAY = (IncidentKind.BAD_ARTIFACT, IncidentKind.UNREACHABLE, IncidentKind.FAILED)  # why a graph may be set aside
ABSENT = 10_000  # graphs without a model that are remembered
log = structlog.get_logger()


@dataclass
class _Partition:
    next: int | None = None  # the offset that should come next; None before the first delivery
    graphs: dict[str, HostedGraph] = field(default_factory=dict)
    absent: dict[str, float] = field(default_factory=dict)  # graphs without a model: when to look again
    waiting: dict[str, WaitingGraph] = field(default_factory=dict)  # whose events wait in the log


@dataclass(frozen=True)
class Capture:
    """States as of one moment: once they are durable, events below `positions` need not come again.

    Except where graphs wait: then those from `waiting` on must, because events of these graphs are among them.
    """

    states: tuple[Saved, ...]
    positions: dict[int, int]  # by partition
    graphs: tuple[HostedGraph, ...] = field(repr=False, default=())  # whose states these are
    waiting: dict[int, int] = field(default_factory=dict)  # by partition


class GraphHost:
    """Loads a graph when its first event comes, lets it catch up, and hands it what is delivered.

    What fails costs one graph: it is set aside with the reason, its events wait in the log, and the others go on.
    """

    def __init__(self, loader: Loader, catch_up: CatchUp, replica: Replica, retry: Retry) -> None:
        self._loader, self._catch_up, self._replica, self._retry = loader, catch_up, replica, retry
        self._incidents = catch_up.incidents
        self._partitions: dict[int, _Partition] = {}

    # -- events -----------------------------------------------------------------------------------------------

    def process(self, arrivals: Sequence[Arrival]) -> list[BatchResult]:
        """Take in events as they were delivered: in order within a partition, perhaps again, perhaps after a gap."""
        results: list[BatchResult] = []
        for number, some in grouped(arrivals, lambda arrival: arrival.source.partition):
            partition = self._partitions.setdefault(number, _Partition())
            if partition.next is None:
                partition.next = some[0].source.offset
                self._fill_gap(number, partition.next)  # of graphs that were loaded before
            for run in runs(self._checked(number, some), partition.next):
                if run[0].begins > partition.next:
                    self._fill_gap(number, run[0].source.offset)
                results += [self._deal_out(number, key, own) for key, own in grouped(run, lambda one: one.key)]
                partition.next = run[-1].source.offset + 1
        return results

    def keep_only(self, partitions: Iterable[int]) -> None:
        """Forget the partitions that others answer for now."""
        keep = set(partitions)
        for number in self._partitions.keys() - keep:
            left = self._partitions.pop(number)
            for name in (*left.graphs, *left.waiting):
                self._incidents.forget(name)
        for number in keep:
            self._partitions.setdefault(number, _Partition())

    def give_up(self) -> None:
        """Called from any thread when the worker ends: what waits for a broker or a store waits no longer."""
        self._retry.end()

    # -- graphs -----------------------------------------------------------------------------------------------

    def hosted(self) -> Iterator[HostedGraph]:
        """Every graph that is here."""
        for partition in self._partitions.values():
            yield from partition.graphs.values()

    def find(self, name: str) -> HostedGraph | None:
        """A graph; None where it is not here."""
        for partition in self._partitions.values():
            if name in partition.graphs:
                return partition.graphs[name]
        return None

    def position(self, hosted: HostedGraph) -> int:
        """Up to where a graph has all its events: also behind those of others in its partition."""
        return max(hosted.offset, self._partitions[hosted.partition].next or 0)

    def expect_model(self, name: str) -> None:
        """A graph that had none, or none that could be used, may have one now: the store is asked again."""
        for partition in self._partitions.values():
            partition.absent.pop(name, None)
            if name in partition.waiting:
                partition.waiting[name].not_before = 0.0

    # -- graphs that wait -------------------------------------------------------------------------------------

    def expect(self, name: str, number: int) -> WaitingGraph | None:
        """Have a graph loaded that has sent nothing yet; None where it is here, or waits already."""
        partition = self._partitions.setdefault(number, _Partition())
        if name in partition.graphs or name in partition.waiting:
            return None
        return partition.waiting.setdefault(name, WaitingGraph(name, number, None))

    def next_waiting(self) -> WaitingGraph | None:
        """The graph whose turn it is to be brought back; None where none is due."""
        now = time.monotonic()
        all_ = [one for partition in self._partitions.values() for one in partition.waiting.values()]
        return min((one for one in all_ if one.not_before <= now), key=lambda one: one.not_before, default=None)

    def bring_in(self, waiting: WaitingGraph, graph: LiveGraph, offset: int, first: int) -> None:
        """A graph that waits is loaded and stands at `offset` of a log that begins at `first`."""
        waiting.hosted = self._hosted(graph, waiting.partition, offset, first)

    def next_range(self, waiting: WaitingGraph, most: int) -> tuple[int, int] | None:
        """Which offsets a loaded graph is to be given next, at most so many; None once it is level, or is others'."""
        partition, hosted = self._partitions.get(waiting.partition), waiting.hosted
        if partition is None or partition.waiting.get(waiting.name) is not waiting or hosted is None:
            return None
        end = hosted.offset if partition.next is None else partition.next
        if hosted.offset >= end:
            self._join(hosted)
            return None
        if waiting.first is not None and hosted.offset < waiting.first:
            end = min(end, waiting.first)  # up to there others have answered
        return hosted.offset, min(end, hosted.offset + most)

    def follow(self, waiting: WaitingGraph, arrivals: Sequence[Arrival], end: int) -> list[BatchResult]:
        """Give a loaded graph what the log has of it below `end`; answers what nobody has answered."""
        if (hosted := waiting.hosted) is None:
            return []
        silent = waiting.first is None or end <= waiting.first
        try:
            results = [hosted.apply(arrivals, silent=silent)] if arrivals else []
        except Exception as error:
            self.postpone(waiting, error)
            return []
        hosted.offset = max(hosted.offset, end)
        return results

    def postpone(self, waiting: WaitingGraph, error: Exception) -> None:
        """Bringing a graph back has failed; it is tried again after a pause that grows."""
        partition = self._partitions.get(waiting.partition)
        if partition is not None and partition.waiting.get(waiting.name) is waiting:
            if not isinstance(error, AdatkgError):
                waiting.hosted = None  # it may have been given half of something
            self._report(waiting, error)

    # -- states -----------------------------------------------------------------------------------------------

    def capture(self) -> Capture:
        """Copies of the states that have changed since they were last saved."""
        states, graphs = [], []
        for hosted in self.hosted():
            offset = self.position(hosted)
            if hosted.offset > hosted.saved or offset - hosted.saved > STALE:
                states.append(hosted.graph.capture(offset, self._catch_up.log.log_id(hosted.partition)))
                graphs.append(hosted)
        positions = {number: one.next for number, one in self._partitions.items() if one.next is not None}
        firsts = {number: [one.first for one in part.waiting.values()] for number, part in self._partitions.items()}
        waiting = {number: min(some) for number, all_ in firsts.items() if (some := [x for x in all_ if x is not None])}
        return Capture(tuple(states), positions, tuple(graphs), waiting)

    def saved(self, capture: Capture) -> None:
        """The captured states are durable."""
        for hosted, saved in zip(capture.graphs, capture.states, strict=True):
            if hosted.graph.version == saved.version:
                hosted.saved = saved.offset

    # -- private ----------------------------------------------------------------------------------------------

    def _fill_gap(self, number: int, end: int) -> None:
        """What was delivered to others in the meantime is read from the log."""
        partition = self._partitions[number]
        for hosted in partition.graphs.values():
            hosted.offset = self.position(hosted) if partition.next != end else hosted.offset
        behind = [hosted for hosted in partition.graphs.values() if hosted.offset < end]
        near = [hosted for hosted in behind if end - hosted.offset <= NEAR]
        try:
            if near:
                self._catch_up.bring(near, end)
        except Exception as error:
            for hosted in near:
                self._set_aside(hosted.graph.name, number, end, error, hosted)
        for hosted in behind:
            if hosted not in near:
                self._wait(hosted.graph.name, number, end, hosted)

    def _deal_out(self, number: int, key: bytes | None, arrivals: Sequence[Arrival]) -> BatchResult:
        """Hand events with one key to the graph that it names."""
        try:
            name = decode_graph(key)
        except Unusable as problem:
            return self._refuse("", arrivals, problem)
        if partition_of(name, self._catch_up.log.partitions) != number:
            return self._move(name, arrivals)
        partition, offset = self._partitions[number], arrivals[0].source.offset
        hosted = partition.graphs.get(name)
        try:
            if hosted is None and name not in partition.waiting:
                hosted = self._load(number, name, offset)
                if hosted is None and name not in partition.waiting:
                    return self._without_model(name, arrivals)
            if hosted is not None:
                return hosted.apply(arrivals)
        except Exception as error:
            self._set_aside(name, number, offset, error)
        return partition.waiting[name].leave_in_log(arrivals)

    def _checked(self, number: int, arrivals: Sequence[Arrival]) -> Sequence[Arrival]:
        """Offsets that a delivery skips hold no event, unless the log lost them before they were read."""
        skipping = [arrival for arrival in arrivals if arrival.begins < arrival.source.offset]
        if not skipping:
            return arrivals
        first = self._retry.run(lambda: self._catch_up.first_kept(number), f"partition {number}")
        return [replace(one, follows=None) if one.begins < first else one for one in arrivals]

    def _move(self, name: str, arrivals: Sequence[Arrival]) -> BatchResult:
        """To the graph's own partition, whose state and order are its only ones; of several replicas one does it."""
        large = [one for one in arrivals if len(one.value or b"") > MAX_BYTES]
        detail = f"the message has more than the {MAX_BYTES} bytes of an event"
        result = self._refuse(name, large, Unusable(Reason.TOO_LARGE, detail))
        if self._replica.leads:
            result.moved = [one for one in arrivals if len(one.value or b"") <= MAX_BYTES]
            result.counts["moved"] = len(result.moved)
        return result

    def _refuse(self, name: str, arrivals: Sequence[Arrival], problem: Unusable) -> BatchResult:
        """Of several replicas one says so."""
        refused = arrivals if self._replica.leads else ()
        return BatchResult(name, rejected=[Rejected(arrival, problem.code, problem.detail) for arrival in refused])

    def _without_model(self, name: str, arrivals: Sequence[Arrival]) -> BatchResult:
        """Facts wait in the log, where the first model will find them; a question cannot wait."""
        result = BatchResult(name)
        detail = f"graph {name} has no model in {self._loader.models}: train one with --models and --graph"
        for arrival in arrivals:
            try:
                if isinstance(event := decode_event(arrival.value, None), Question):
                    if self._replica.answers(event.id):
                        result.rejected.append(Rejected(arrival, Reason.NO_MODEL, detail))
                else:
                    result.counts["waiting"] += 1
            except Unusable as problem:
                if problem.code == Reason.BAD_TIME:  # without a model there is no clock to read it by
                    result.counts["waiting"] += 1
                elif self._replica.leads:
                    result.rejected.append(Rejected(arrival, problem.code, problem.detail))
        return result

    def _load(self, number: int, name: str, offset: int) -> HostedGraph | None:
        """The graph, so that it stands right before `offset`, or further where it was saved later.

        None where it has no model, or has so much to catch up with that it waits.
        """
        partition = self._partitions[number]
        if partition.absent.get(name, 0.0) > time.monotonic():
            return None
        began = time.perf_counter()
        bundle = self._loader.present(name)
        if bundle is None:
            if len(partition.absent) >= ABSENT:
                partition.absent.clear()
            partition.absent[name] = time.monotonic() + LOOK_AGAIN
            return None
        first, end = self._catch_up.bounds(number)
        graph, start = self._loader.load(name, bundle, self._catch_up.log.log_id(number), first, end)
        hosted = self._hosted(graph, number, start, first)
        if offset - hosted.offset > NEAR:
            self._wait(name, number, offset, hosted)
            return None
        self._catch_up.bring([hosted], offset)
        self._join(hosted)
        took = round(time.perf_counter() - began, 3)
        log.info("graph_loaded", graph=name, version=bundle.version, snapshot=start, offset=offset, seconds=took)
        return hosted

    def _hosted(self, graph: LiveGraph, number: int, offset: int, first: int) -> HostedGraph:
        """A graph just loaded that stands at `offset`; what a log that begins at `first` lacks is told."""
        hosted = HostedGraph(graph, number, offset, offset)
        self._catch_up.lost(hosted, offset, first)
        hosted.offset = max(offset, first)
        return hosted

    def _join(self, hosted: HostedGraph) -> None:
        """A graph has all of its events: it takes what is delivered."""
        partition, name = self._partitions[hosted.partition], hosted.graph.name
        partition.graphs[name] = hosted
        partition.absent.pop(name, None)
        partition.waiting.pop(name, None)
        self._incidents.end(name, *AWAY)

    def _wait(self, name: str, number: int, first: int, hosted: HostedGraph | None) -> WaitingGraph:
        """From the event at `first` on, what a graph is sent waits in the log until it is level again."""
        partition = self._partitions[number]
        partition.graphs.pop(name, None)
        return partition.waiting.setdefault(name, WaitingGraph(name, number, first, hosted))

    def _set_aside(
        self, name: str, number: int, first: int, error: Exception, hosted: HostedGraph | None = None
    ) -> None:
        """A graph waits because something is wrong; what may have taken half of a batch is given up."""
        self._report(self._wait(name, number, first, hosted if isinstance(error, AdatkgError) else None), error)

    def _report(self, waiting: WaitingGraph, error: Exception) -> None:
        detail = str(error) if isinstance(error, AdatkgError) else f"{type(error).__name__}: {error}"
        self._incidents.report(waiting.name, kind_of(error), detail, waiting.postpone())

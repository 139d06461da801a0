"""The graphs that this worker answers for, and where each stands in the log.

Everything here runs on the one thread that touches the device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import structlog

from adatkg_core.errors import AdatkgError
from adatkg_core.messages import Unusable, decode_graph
from adatkg_core.runtime import Retry
from streams.kafka import partition_of
from streams.worker.arrival import Arrival
from streams.worker.batch import BatchResult
from streams.worker.capture import Capture
from streams.worker.catch_up import CatchUp
from streams.worker.deliveries import grouped, runs
from streams.worker.hosted_graph import HostedGraph
from streams.worker.incident import IncidentKind, kind_of
from streams.worker.live_graph import LiveGraph
from streams.worker.loader import Loader
from streams.worker.partition import Partition
from streams.worker.replica import Replica
from streams.worker.state_check import StateCheck
from streams.worker.turned_away import TurnedAway
from streams.worker.waiting_graph import WaitingGraph

STALE = 500_000  # offsets: a graph that is idle for so long in a busy partition is saved again, to be found sooner
NEAR = 50_000  # offsets that a graph catches up with at once; with more it does so beside the others
AWAY = (IncidentKind.BAD_ARTIFACT, IncidentKind.UNREACHABLE, IncidentKind.FAILED)  # why a graph may be set aside
log = structlog.get_logger()


class GraphHost:
    """Loads a graph when its first event comes, lets it catch up, and hands it what is delivered.

    What fails costs one graph: it is set aside with the reason, its events wait in the log, and the others go on. One
    that comes to a model event whose version is not ready stays here and is behind until that is.
    """

    def __init__(self, loader: Loader, catch_up: CatchUp, replica: Replica, retry: Retry) -> None:
        self._loader, self._catch_up, self._retry = loader, catch_up, retry
        self._turned_away = TurnedAway(replica, loader.models)
        self._incidents = catch_up.incidents
        self._partitions: dict[int, Partition] = {}
        self.on_change: Callable[[str], None] = lambda _: None  # hears of graphs that may want another version

    # -- events -----------------------------------------------------------------------------------------------

    def process(self, arrivals: Sequence[Arrival]) -> list[BatchResult]:
        """Take in events as they were delivered: in order within a partition, perhaps again, perhaps after a gap."""
        results: list[BatchResult] = []
        for number, some in grouped(arrivals, lambda arrival: arrival.source.partition):
            partition = self._partitions.setdefault(number, Partition())
            if partition.next is None:
                partition.next = some[0].source.offset
                self._fill_gap(number, partition.next)  # of graphs that were loaded before
            for run in runs(self._checked(number, some), partition.next):
                if run[0].begins > partition.next:
                    self._fill_gap(number, run[0].source.offset)
                for key, own in grouped(run, lambda one: one.key):
                    results += self._deal_out(number, key, own)
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
            self._partitions.setdefault(number, Partition())

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
        return hosted.offset if hosted.behind else max(hosted.offset, self.delivered(hosted))

    def delivered(self, hosted: HostedGraph) -> int:
        """Up to where a graph's partition was delivered; 0 before anything was."""
        return self._partitions[hosted.partition].next or 0

    def log_id(self, hosted: HostedGraph) -> str:
        """Of the log in which a graph stands."""
        return self._catch_up.log.log_id(hosted.partition)

    def expect_model(self, name: str) -> None:
        """A graph that had none, or none that could be used, may have one now: the store is asked again."""
        for partition in self._partitions.values():
            partition.absent.pop(name, None)
            if name in partition.waiting:
                partition.waiting[name].not_before = 0.0

    # -- graphs that stand at a model event -------------------------------------------------------------------

    def held_up(self, name: str, error: Exception, again_in: float) -> None:
        """The version that a graph waits for cannot be had now; nothing happens where it does not wait."""
        hosted = self.find(name)
        if hosted is not None and hosted.behind:
            self._report(name, error, again_in)

    def level(self, hosted: HostedGraph) -> None:
        """A graph that was behind has all of its events again: it takes what is delivered."""
        hosted.behind, hosted.answered_below = False, 0
        self._incidents.end(hosted.graph.name, *AWAY)

    def failed(self, hosted: HostedGraph, first: int, error: Exception) -> None:
        """A graph that was behind may have taken half of something; from `first` on nothing of it is answered."""
        self._set_aside(hosted.graph.name, hosted.partition, first, error)

    # -- graphs that wait -------------------------------------------------------------------------------------

    def expect(self, name: str, number: int) -> WaitingGraph | None:
        """Have a graph loaded that has sent nothing yet; None where it is here, or waits already."""
        partition = self._partitions.setdefault(number, Partition())
        if name in partition.graphs or name in partition.waiting:
            return None
        return partition.waiting.setdefault(name, WaitingGraph(name, number, None))

    def next_waiting(self) -> WaitingGraph | None:
        """The graph whose turn it is to be brought back; None where none is due."""
        now = time.monotonic()
        all_ = [one for partition in self._partitions.values() for one in partition.waiting.values()]
        return min((one for one in all_ if one.not_before <= now), key=lambda one: one.not_before, default=None)

    def bring_in(self, waiting: WaitingGraph, graph: LiveGraph, offset: int, check: StateCheck) -> None:
        """A graph that waits is loaded and stands at `offset`; after a loss of events all from there on is asked."""
        waiting.hosted = self._hosted(graph, waiting.partition, offset, check)
        if check.refused:
            waiting.first, waiting.until = waiting.hosted.offset, check.end

    def next_range(self, waiting: WaitingGraph, most: int) -> tuple[int, int] | None:
        """Which offsets a loaded graph is to be given next, at most so many; None once it is level, or is others'."""
        hosted = waiting.hosted
        if hosted is None or not self._waits(waiting):
            return None
        following = self._partitions[waiting.partition].next
        end = max(hosted.offset, waiting.until) if following is None else following
        if hosted.offset >= end:
            self._join(hosted)
            return None
        if waiting.first is not None and hosted.offset < waiting.first:
            end = min(end, waiting.first)  # up to there others have answered
        return hosted.offset, min(end, hosted.offset + most)

    def follow(self, waiting: WaitingGraph, arrivals: Sequence[Arrival], end: int) -> list[BatchResult]:
        """Give a loaded graph what the log has of it below `end`; answers what nobody has answered.

        One that comes to a model event goes on from there as all do that stand at one.
        """
        hosted = waiting.hosted
        if hosted is None or not self._waits(waiting):
            return []
        silent = waiting.first is None or end <= waiting.first
        try:
            results = hosted.apply(arrivals, silent=silent) if arrivals else []
        except Exception as error:
            waiting.hosted = None  # it may have been given half of something
            self.postpone(waiting, error)
            return []
        if hosted.behind:
            hosted.answered_below = self.delivered(hosted) if waiting.first is None else waiting.first
            self._join(hosted)
        else:
            hosted.offset = max(hosted.offset, end)
        return results

    def postpone(self, waiting: WaitingGraph, error: Exception) -> None:
        """Bringing a graph back has failed; it is tried again after a pause that grows."""
        if self._waits(waiting):
            if not isinstance(error, AdatkgError):
                waiting.hosted = None  # it may have been given half of something
            self._report(waiting.name, error, waiting.postpone())

    # -- states -----------------------------------------------------------------------------------------------

    def capture(self) -> Capture:
        """The states that have changed since they were last saved, as they are now."""
        states, graphs = [], []
        for hosted in self.hosted():
            offset = self.position(hosted)
            if hosted.offset > hosted.saved or offset - hosted.saved > STALE:
                states.append(hosted.graph.capture(offset, self.log_id(hosted)))
                graphs.append(hosted)
        positions = {number: one.next for number, one in self._partitions.items() if one.next is not None}
        firsts = {number: one.first_waiting() for number, one in self._partitions.items()}
        waiting = {number: first for number, first in firsts.items() if first is not None}
        return Capture(tuple(states), positions, tuple(graphs), waiting)

    def saved(self, capture: Capture) -> None:
        """The captured states are durable."""
        for hosted, state in zip(capture.graphs, capture.states, strict=True):
            if hosted.graph.version == state.version:
                hosted.saved = state.offset
                hosted.graph.is_durable(state)

    # -- private ----------------------------------------------------------------------------------------------

    def _fill_gap(self, number: int, end: int) -> None:
        """What was delivered to others in the meantime is read from the log."""
        partition = self._partitions[number]
        graphs = [hosted for hosted in partition.graphs.values() if not hosted.behind]
        for hosted in graphs:
            hosted.offset = self.position(hosted) if partition.next != end else hosted.offset
        short = [hosted for hosted in graphs if hosted.offset < end]
        near = [hosted for hosted in short if end - hosted.offset <= NEAR]
        problem: Exception | None = None
        try:
            if near:
                self._catch_up.bring(near, end)
        except Exception as error:
            problem = error
        for hosted in short:
            if hosted.behind:
                hosted.answered_below = end
                self.on_change(hosted.graph.name)
            elif hosted not in near:
                self._wait(hosted.graph.name, number, end, hosted)
            elif problem is not None:
                self._set_aside(hosted.graph.name, number, end, problem, hosted)

    def _deal_out(self, number: int, key: bytes | None, arrivals: Sequence[Arrival]) -> list[BatchResult]:
        """Hand events with one key to the graph that it names."""
        try:
            name = decode_graph(key)
        except Unusable as problem:
            return [self._turned_away.refuse("", arrivals, problem)]
        if partition_of(name, self._catch_up.log.partitions) != number:
            return [self._turned_away.move(name, arrivals)]
        partition, offset = self._partitions[number], arrivals[0].source.offset
        hosted = partition.graphs.get(name)
        try:
            if hosted is None and name not in partition.waiting:
                hosted = self._load(number, name, offset)
                if hosted is None and name not in partition.waiting:
                    return [self._turned_away.without_model(name, arrivals)]
            if hosted is not None:
                return self._apply(hosted, arrivals)
        except Exception as error:
            self._set_aside(name, number, offset, error)
        return [partition.waiting[name].leave_in_log(arrivals)]

    def _apply(self, hosted: HostedGraph, arrivals: Sequence[Arrival]) -> list[BatchResult]:
        was_behind, results = hosted.behind, hosted.apply(arrivals)
        if hosted.behind > was_behind or any(result.wish_met for result in results):
            self.on_change(hosted.graph.name)
        return results

    def _checked(self, number: int, arrivals: Sequence[Arrival]) -> Sequence[Arrival]:
        """Offsets that a delivery skips hold no event, unless the log lost them before they were read."""
        skipping = [arrival for arrival in arrivals if arrival.begins < arrival.source.offset]
        if not skipping:
            return arrivals
        first = self._retry.run(lambda: self._catch_up.first_kept(number), f"partition {number}")
        return [replace(one, follows=None) if one.begins < first else one for one in arrivals]

    def _load(self, number: int, name: str, offset: int) -> HostedGraph | None:
        """The graph, so that it stands right before `offset`, or further where it was saved later.

        None where it has no model, or has so much to catch up with that it waits.
        """
        partition = self._partitions[number]
        if partition.is_absent(name):
            return None
        began = time.perf_counter()
        check = self._catch_up.check(number)
        begun = self._loader.begin(name, check, offset)
        if begun is None:
            partition.has_no_model(name)
            return None
        graph, start = begun
        hosted = self._hosted(graph, number, start, check)
        if offset - hosted.offset > NEAR or check.refused:
            self._wait(name, number, hosted.offset if check.refused else offset, hosted)
            return None
        self._catch_up.bring([hosted], offset)
        if hosted.behind:
            hosted.answered_below = offset
        self._join(hosted)
        took = round(time.perf_counter() - began, 3)
        log.info("graph_loaded", graph=name, version=graph.version, snapshot=start, offset=offset, seconds=took)
        return hosted

    def _hosted(self, graph: LiveGraph, number: int, offset: int, check: StateCheck) -> HostedGraph:
        """A graph just loaded that stands at `offset`; what the log lacks is told."""
        hosted = HostedGraph(graph, number, offset, offset)
        self._catch_up.lost(hosted, offset, check.first)
        hosted.offset = max(offset, check.first)
        if check.refused:
            self._catch_up.cut(hosted, check)
        return hosted

    def _join(self, hosted: HostedGraph) -> None:
        """A graph is here: it takes what is delivered, unless it stands at a model event."""
        self._partitions[hosted.partition].join(hosted)
        self._incidents.end(hosted.graph.name, *AWAY)
        self.on_change(hosted.graph.name)

    def _waits(self, waiting: WaitingGraph) -> bool:
        """Whether a graph is still to be brought back, and by us."""
        partition = self._partitions.get(waiting.partition)
        return partition is not None and partition.waiting.get(waiting.name) is waiting

    def _wait(self, name: str, number: int, first: int, hosted: HostedGraph | None) -> WaitingGraph:
        """From the event at `first` on, what a graph is sent waits in the log until it is level again."""
        partition = self._partitions[number]
        partition.graphs.pop(name, None)
        if hosted is not None:
            hosted.incoming = None  # it is got ready anew; meanwhile it would keep all that this one reads
        return partition.waiting.setdefault(name, WaitingGraph(name, number, first, hosted))

    def _set_aside(
        self, name: str, number: int, first: int, error: Exception, hosted: HostedGraph | None = None
    ) -> None:
        """A graph waits because something is wrong; what may have taken half of a batch is given up."""
        waiting = self._wait(name, number, first, hosted if isinstance(error, AdatkgError) else None)
        self._report(name, error, waiting.postpone())

    def _report(self, name: str, error: Exception, again_in: float) -> None:
        detail = str(error) if isinstance(error, AdatkgError) else f"{type(error).__name__}: {error}"
        self._incidents.report(name, kind_of(error), detail, again_in)

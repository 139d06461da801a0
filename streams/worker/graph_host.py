"""The graphs that this worker answers for, and where each stands in the log.

Everything here runs on the one thread that touches the device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import structlog

from adatkg_core.messages import MAX_BYTES, Question, Reason, Unusable, decode_event, decode_graph
from adatkg_core.runtime import Retry
from adatkg_core.storage import Saved
from streams.kafka import partition_of
from streams.worker.arrival import Arrival
from streams.worker.batch import BatchResult, Rejected
from streams.worker.catch_up import CatchUp
from streams.worker.hosted_graph import HostedGraph
from streams.worker.loader import Loader
from streams.worker.replica import Replica

LOOK_AGAIN = 5.0  # seconds until the store is asked again for a graph's first model
STALE = 500_000  # offsets: a graph that is idle for so long in a busy partition is saved again, to be found sooner
ABSENT = 10_000  # graphs without a model that are remembered
log = structlog.get_logger()
K = TypeVar("K")


@dataclass
class _Partition:
    next: int  # the offset that should come next
    graphs: dict[str, HostedGraph] = field(default_factory=dict)
    absent: dict[str, float] = field(default_factory=dict)  # graphs without a model: when to look again


@dataclass(frozen=True)
class Capture:
    """States as of one moment: once they are durable, events below `positions` need not come again."""

    states: tuple[Saved, ...]
    positions: dict[int, int]  # by partition
    graphs: tuple[HostedGraph, ...] = field(repr=False, default=())  # whose states these are


class GraphHost:
    """Loads a graph when its first event comes, lets it catch up, and hands it what is delivered."""

    def __init__(self, loader: Loader, catch_up: CatchUp, replica: Replica, retry: Retry) -> None:
        self._loader, self._catch_up, self._replica, self._retry = loader, catch_up, replica, retry
        self._partitions: dict[int, _Partition] = {}
        self.on_change: Callable[[str], None] = lambda _: None  # hears of graphs that may want another version

    # -- events -----------------------------------------------------------------------------------------------

    def process(self, arrivals: Sequence[Arrival]) -> list[BatchResult]:
        """Take in events as they were delivered: in order within a partition, perhaps again, perhaps after a gap."""
        results: list[BatchResult] = []
        for number, some in _grouped(arrivals, lambda arrival: arrival.source.partition):
            partition = self._partitions.setdefault(number, _Partition(some[0].source.offset))
            for run in _runs(self._checked(number, some), partition.next):
                if run[0].begins > partition.next and partition.graphs:
                    self._fill_gap(number, run[0].source.offset)
                for key, own in _grouped(run, lambda one: one.key):
                    results += self._deal_out(number, key, own)
                partition.next = run[-1].source.offset + 1
        return results

    def keep_only(self, partitions: Iterable[int]) -> None:
        """Forget the partitions that others answer for now."""
        keep = set(partitions)
        self._partitions = {number: one for number, one in self._partitions.items() if number in keep}

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
        """Up to where a graph's partition was delivered."""
        return self._partitions[hosted.partition].next

    def log_id(self, hosted: HostedGraph) -> str:
        """Of the log in which a graph stands."""
        return self._catch_up.log.log_id(hosted.partition)

    def expect_model(self, name: str) -> None:
        """A graph that had none may have one now: the store is asked at its next event."""
        for partition in self._partitions.values():
            partition.absent.pop(name, None)

    # -- states -----------------------------------------------------------------------------------------------

    def capture(self) -> Capture:
        """Copies of the states that have changed since they were last saved."""
        states, graphs = [], []
        for hosted in self.hosted():
            offset = self.position(hosted)
            if hosted.offset > hosted.saved or offset - hosted.saved > STALE:
                states.append(hosted.graph.capture(offset, self.log_id(hosted)))
                graphs.append(hosted)
        # What a graph that is behind has not taken in must come again.
        positions = {
            number: min([one.next, *(self.position(hosted) for hosted in one.graphs.values())])
            for number, one in self._partitions.items()
        }
        return Capture(tuple(states), positions, tuple(graphs))

    def saved(self, capture: Capture) -> None:
        """The captured states are durable."""
        for hosted, saved in zip(capture.graphs, capture.states, strict=True):
            if hosted.graph.version == saved.version:
                hosted.saved = saved.offset

    # -- private ----------------------------------------------------------------------------------------------

    def _fill_gap(self, number: int, end: int) -> None:
        """What was delivered to others in the meantime is read from the log."""
        graphs = [hosted for hosted in self._partitions[number].graphs.values() if not hosted.behind]
        if graphs:
            self._bring(graphs, end, f"partition {number}")

    def _bring(self, graphs: Sequence[HostedGraph], end: int, what: str) -> None:
        """Let graphs of one partition take in silently what stands below `end`, or before a model event there."""
        self._retry.run(lambda: self._catch_up.bring(graphs, end), what)
        for hosted in graphs:
            if hosted.behind:
                hosted.answered_below = end
                self.on_change(hosted.graph.name)

    def _deal_out(self, number: int, key: bytes | None, arrivals: Sequence[Arrival]) -> list[BatchResult]:
        """Hand events with one key to the graph that it names."""
        try:
            name = decode_graph(key)
        except Unusable as problem:
            return [self._refuse("", arrivals, problem)]
        if partition_of(name, self._catch_up.log.partitions) != number:
            return [self._move(name, arrivals)]
        hosted = self._host(number, name, arrivals[0].source.offset)
        if hosted is None:
            return [self._without_model(name, arrivals)]
        was_behind, results = hosted.behind, hosted.apply(arrivals)
        if hosted.behind > was_behind or any(result.wish_met for result in results):
            self.on_change(name)
        return results

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

    def _host(self, number: int, name: str, offset: int) -> HostedGraph | None:
        """The graph, loaded if need be to stand right before `offset`, or further where it was saved later."""
        partition = self._partitions[number]
        if name in partition.graphs:
            return partition.graphs[name]
        if partition.absent.get(name, 0.0) > time.monotonic():
            return None
        what, began = f"graph {name}", time.perf_counter()
        hosted = self._retry.run(lambda: self._load(number, name, offset), what)
        if hosted is None:
            if len(partition.absent) >= ABSENT:
                partition.absent.clear()
            partition.absent[name] = time.monotonic() + LOOK_AGAIN
            return None
        self._bring([hosted], offset, what)
        partition.graphs[name] = hosted
        partition.absent.pop(name, None)
        took = round(time.perf_counter() - began, 3)
        version = hosted.graph.version
        log.info("graph_loaded", graph=name, version=version, snapshot=hosted.saved, offset=offset, seconds=took)
        self.on_change(name)
        return hosted

    def _load(self, number: int, name: str, offset: int) -> HostedGraph | None:
        bounds = self._catch_up.bounds(number)
        begun = self._loader.begin(name, self._catch_up.log.log_id(number), bounds, offset)
        return None if begun is None else HostedGraph(begun[0], number, begun[1], begun[1])


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
        if run and arrival.begins > start:
            yield run
            run = []
        run.append(arrival)
        start = offset + 1
    if run:
        yield run

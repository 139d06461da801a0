"""The graphs that this worker answers for, and where each stands in the log.

Everything here runs on the one thread that touches the device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import structlog

from adatkg_core.messages import Unusable, decode_graph
from adatkg_core.runtime import Retry
from streams.kafka import partition_of
from streams.worker.arrival import Arrival
from streams.worker.batch import BatchResult
from streams.worker.capture import Capture
from streams.worker.catch_up import CatchUp
from streams.worker.deliveries import grouped, runs
from streams.worker.hosted_graph import HostedGraph
from streams.worker.inboxes import Place
from streams.worker.loader import Loader
from streams.worker.partition import Partition
from streams.worker.replica import Replica
from streams.worker.turned_away import TurnedAway
from streams.worker.turns import Turns
from streams.worker.waiting_graphs import WaitingGraphs

STALE = 500_000  # offsets: a graph that is idle for so long in a busy partition is saved again, to be found sooner
EVENTS = 512  # in a batch, at most
NEAR = 50_000  # offsets that a graph catches up with at once; with more it does so beside the others
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
        self.loads_beside = False  # somebody brings waiting graphs: the others go on while one is loaded
        self.turns = Turns(self._partitions)
        self.waiting = WaitingGraphs(self._partitions, self.turns, catch_up, lambda name: self.on_change(name))

    # -- events -----------------------------------------------------------------------------------------------

    def process(self, arrivals: Sequence[Arrival], most: int = EVENTS) -> list[BatchResult]:
        """Take in events as they were delivered: in order within a partition, perhaps again, perhaps after a gap.

        They wait for their turn; every graph with something to do has its share of at most so many that are done now.
        """
        results: list[BatchResult] = []
        for number, some in grouped(arrivals, lambda arrival: arrival.source.partition):
            partition = self._partitions.setdefault(number, Partition())
            if partition.next is None:
                partition.next = min(some[0].answered, some[0].source.offset)
                self._fill_gap(number, partition.next)  # of graphs that were loaded before
            for run in runs(self._catch_up.checked(number, some), partition.next):
                if run[0].begins > partition.next:
                    results += self._bridge_gap(partition, run[0])
                results += self._receive_all(number, run)
                partition.next = run[-1].source.offset + 1
        for place, own in self.turns.next_batch(most).items():
            results += self._deal_out(place, own)
        return results

    def keep_only(self, partitions: Iterable[int]) -> None:
        """Forget the partitions that others answer for now."""
        keep = set(partitions)
        self.turns.inboxes.keep_only(keep)
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
        if hosted.behind:
            return hosted.offset
        first = self.turns.inboxes.first(hosted.place)
        return max(hosted.offset, self.delivered(hosted) if first is None else first)

    def delivered(self, hosted: HostedGraph) -> int:
        """Up to where a graph's partition was delivered; 0 before anything was."""
        return self._partitions[hosted.partition].next or 0

    def log_id(self, hosted: HostedGraph) -> str:
        """Of the log in which a graph stands."""
        return self._catch_up.log.log_id(hosted.partition)

    def expect_model(self, name: str) -> None:
        """A graph that had none, or none that could be used, may have one now: the store is asked again."""
        if (known := self._catch_up.known) is not None and (
            number := partition_of(name, known.partitions)
        ) in self._partitions:
            self.know([(name, number)])
        for partition in self._partitions.values():
            partition.absent.pop(name, None)
            if name in partition.waiting:
                partition.waiting[name].not_before = 0.0

    def know(self, graphs: Iterable[tuple[str, int]]) -> None:
        """These graphs, each with its partition, have a model: what they are sent must not wait for others' floods."""
        for name, number in graphs:
            self._partitions.setdefault(number, Partition()).known.add(name.encode())

    # -- graphs that stand at a model event -------------------------------------------------------------------

    def held_up(self, name: str, error: Exception, again_in: float) -> None:
        """The version that a graph waits for cannot be had now; nothing happens where it does not wait."""
        hosted = self.find(name)
        if hosted is not None and hosted.behind:
            self.waiting.report(name, error, again_in)

    def level(self, hosted: HostedGraph) -> None:
        """A graph that was behind has all of its events again: it takes what is delivered."""
        hosted.behind, hosted.answered_below = False, 0
        self.waiting.end_incidents(hosted.graph.name)

    def failed(self, hosted: HostedGraph, first: int, error: Exception) -> None:
        """A graph that was behind may have taken half of something; from `first` on nothing of it is answered."""
        self.waiting.set_aside(hosted.graph.name, hosted.partition, first, error)

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
        waiting = self.turns.inboxes.firsts()
        for number, one in self._partitions.items():
            if (first := one.first_waiting()) is not None:
                waiting[number] = min(first, waiting.get(number, first))
        return Capture(tuple(states), positions, tuple(graphs), waiting)

    def saved(self, capture: Capture) -> None:
        """The captured states are durable."""
        for hosted, state in zip(capture.graphs, capture.states, strict=True):
            if hosted.graph.version == state.version:
                hosted.saved = state.offset
                hosted.graph.is_durable(state)

    # -- private ----------------------------------------------------------------------------------------------

    def _bridge_gap(self, partition: Partition, arrival: Arrival) -> list[BatchResult]:
        """Take in what stands in the log before an event and was not delivered here: in silence only what was answered.

        The rest was fetched and dropped, as while partitions were dealt out; nobody else was given it.
        """
        number, end = arrival.source.partition, arrival.source.offset
        results = self._finish(number)
        start = partition.next or 0
        if arrival.answered > start:
            start = min(arrival.answered, end)
            self._fill_gap(number, start)
        for begin in range(start, end, EVENTS):
            graphs = [hosted for hosted in partition.graphs.values() if not hosted.behind]
            some = self._catch_up.unseen(number, graphs, begin, min(begin + EVENTS, end))
            results += self._receive_all(number, some)
        return results

    def _receive_all(self, number: int, arrivals: Sequence[Arrival]) -> list[BatchResult]:
        """Events of one partition, in order."""
        results: list[BatchResult] = []
        for key, own in grouped(arrivals, lambda one: one.key):
            results += self._receive(Place(number, key), own)
        return results

    def _fill_gap(self, number: int, end: int) -> None:
        """What was delivered to others in the meantime, and answered by them, is read from the log."""
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
                self.waiting.wait(hosted.graph.name, number, end, hosted)
            elif problem is not None:
                self.waiting.set_aside(hosted.graph.name, number, end, problem, hosted)

    def _receive(self, place: Place, arrivals: Sequence[Arrival]) -> list[BatchResult]:
        """Events with one key wait for their turn, or in the log where their graph cannot take them now."""
        partition, name = self._partitions[place.partition], _name_of(place)
        if name in partition.waiting:
            return [partition.waiting[name].leave_in_log(arrivals)]
        if not partition.is_behind(name):
            self.turns.receive(place, arrivals)
        return []

    def _finish(self, number: int) -> list[BatchResult]:
        """Before a gap is filled what came before it is taken in, or is what its graph has to read from the log."""
        results: list[BatchResult] = []
        for place, inbox in self.turns.inboxes.of(number).items():
            self.turns.inboxes.drop(place)
            if inbox.arrivals:
                results += self._deal_out(place, list(inbox.arrivals))
            name, partition = _name_of(place), self._partitions[number]
            if inbox.left is not None and name not in partition.waiting and not partition.is_behind(name):
                if name in partition.graphs:
                    self.waiting.wait(name, number, inbox.left, partition.graphs[name])
                else:
                    self.turns.inboxes.leave(place, inbox.left)
        return results

    def _deal_out(self, place: Place, arrivals: Sequence[Arrival]) -> list[BatchResult]:
        """Hand events with one key to the graph that it names."""
        number = place.partition
        try:
            name = decode_graph(place.key)
        except Unusable as problem:
            return [self._turned_away.refuse("", arrivals, problem)]
        if partition_of(name, self._catch_up.log.partitions) != number:
            return [self._turned_away.move(name, arrivals)]
        partition, offset = self._partitions[number], arrivals[0].source.offset
        hosted = partition.graphs.get(name)
        try:
            if self._is_for_others_to_load(partition, name):
                self.waiting.wait(name, number, offset, None)
            elif hosted is None and name not in partition.waiting:
                hosted = self._load(number, name, offset)
                if hosted is None and name not in partition.waiting:
                    return [self._turned_away.without_model(name, arrivals)]
            if hosted is not None:
                return self._apply(hosted, arrivals)
        except Exception as error:
            self.waiting.set_aside(name, number, offset, error)
        return [partition.waiting[name].leave_in_log(arrivals)]

    def _apply(self, hosted: HostedGraph, arrivals: Sequence[Arrival]) -> list[BatchResult]:
        was_behind, results = hosted.behind, hosted.apply(arrivals)
        if hosted.behind > was_behind or any(result.wish_met for result in results):
            self.on_change(hosted.graph.name)
        if hosted.behind:
            self.turns.inboxes.drop(hosted.place)
        return results

    def _is_for_others_to_load(self, partition: Partition, name: str) -> bool:
        """Whether a graph that is not here waits in the log while it is loaded, because some are here already."""
        if not self.loads_beside or name in partition.graphs or name in partition.waiting or partition.is_absent(name):
            return False
        return any(one.graphs or one.waiting for one in self._partitions.values()) and self._loader.has_model(name)

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
        hosted = self._catch_up.hosted(graph, number, start, check)
        if offset - hosted.offset > NEAR or check.refused:
            self.waiting.wait(name, number, hosted.offset if check.refused else offset, hosted)
            return None
        self._catch_up.bring([hosted], offset)
        if hosted.behind:
            hosted.answered_below = offset
        self.waiting.join(hosted)
        took = round(time.perf_counter() - began, 3)
        log.info("graph_loaded", graph=name, version=graph.version, snapshot=start, offset=offset, seconds=took)
        return hosted


def _name_of(place: Place) -> str:
    """The graph that a place's key names; empty where it names none."""
    try:
        return decode_graph(place.key)
    except Unusable:
        return ""

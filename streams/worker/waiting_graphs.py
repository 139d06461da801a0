"""The graphs whose events wait in the log, and how they come back to those that take what is delivered.

Everything here runs on the one thread that touches the device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from adatkg_core.errors import AdatkgError
from streams.worker.arrival import Arrival
from streams.worker.batch import BatchResult
from streams.worker.catch_up import CatchUp
from streams.worker.hosted_graph import HostedGraph
from streams.worker.inboxes import Place
from streams.worker.incident import IncidentKind, kind_of
from streams.worker.live_graph import LiveGraph
from streams.worker.partition import Partition
from streams.worker.state_check import StateCheck
from streams.worker.turns import Turns
from streams.worker.waiting_graph import WaitingGraph

AWAY = (IncidentKind.BAD_ARTIFACT, IncidentKind.UNREACHABLE, IncidentKind.FAILED)  # why a graph may be set aside


class WaitingGraphs:
    """Sets graphs aside, and moves those that are brought back along the log until they are level."""

    def __init__(
        self, partitions: dict[int, Partition], turns: Turns, catch_up: CatchUp, on_change: Callable[[str], None]
    ) -> None:
        """`partitions` are those of the host; `on_change` hears of graphs that may want another version."""
        self._partitions, self._turns, self._catch_up = partitions, turns, catch_up
        self._incidents, self._on_change = catch_up.incidents, on_change

    # -- brought back -----------------------------------------------------------------------------------------

    def expect(self, name: str, number: int) -> WaitingGraph | None:
        """Have a graph loaded that has sent nothing yet; None where it is here, waits already, or is about to be."""
        partition = self._partitions.setdefault(number, Partition())
        coming = self._turns.inboxes.first(Place(number, name.encode())) is not None
        if name in partition.graphs or name in partition.waiting or coming:
            return None
        return partition.wait(WaitingGraph(name, number, None))

    def next(self) -> WaitingGraph | None:
        """The graph whose turn it is to be brought back; None where none is due."""
        now = time.monotonic()
        all_ = [one for partition in self._partitions.values() for one in partition.waiting.values()]
        return min((one for one in all_ if one.not_before <= now), key=lambda one: one.not_before, default=None)

    def bring_in(self, waiting: WaitingGraph, graph: LiveGraph, offset: int, check: StateCheck) -> None:
        """A graph that waits is loaded and stands at `offset`; after a loss of events all from there on is asked."""
        waiting.hosted = self._catch_up.hosted(graph, waiting.partition, offset, check)
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
            self.join(hosted)
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
            delivered = self._partitions[waiting.partition].next or 0
            hosted.answered_below = delivered if waiting.first is None else waiting.first
            self.join(hosted)
        else:
            hosted.offset = max(hosted.offset, end)
        return results

    def postpone(self, waiting: WaitingGraph, error: Exception) -> None:
        """Bringing a graph back has failed; it is tried again after a pause that grows."""
        if self._waits(waiting):
            if not isinstance(error, AdatkgError):
                waiting.hosted = None  # it may have been given half of something
            self.report(waiting.name, error, waiting.postpone())

    def join(self, hosted: HostedGraph) -> None:
        """A graph is here: it takes what is delivered, unless it stands at a model event."""
        self._partitions[hosted.partition].join(hosted)
        if hosted.behind:
            self._turns.inboxes.drop(hosted.place)
        self.end_incidents(hosted.graph.name)
        self._on_change(hosted.graph.name)

    # -- set aside --------------------------------------------------------------------------------------------

    def wait(self, name: str, number: int, first: int, hosted: HostedGraph | None) -> WaitingGraph:
        """From the event at `first` on, what a graph is sent waits in the log until it is level again."""
        if hosted is not None:
            hosted.incoming = None  # it is got ready anew; meanwhile it would keep all that this one reads
        self._turns.inboxes.drop(Place(number, name.encode()))
        return self._partitions[number].wait(WaitingGraph(name, number, first, hosted))

    def set_aside(
        self, name: str, number: int, first: int, error: Exception, hosted: HostedGraph | None = None
    ) -> None:
        """A graph waits because something is wrong; what may have taken half of a batch is given up."""
        waiting = self.wait(name, number, first, hosted if isinstance(error, AdatkgError) else None)
        self.report(name, error, waiting.postpone())

    def report(self, name: str, error: Exception, again_in: float) -> None:
        """What keeps a graph from its events is an incident of it."""
        detail = str(error) if isinstance(error, AdatkgError) else f"{type(error).__name__}: {error}"
        self._incidents.report(name, kind_of(error), detail, again_in)

    def end_incidents(self, name: str) -> None:
        """A graph has its events again."""
        self._incidents.end(name, *AWAY)

    def _waits(self, waiting: WaitingGraph) -> bool:
        """Whether a graph is still to be brought back, and by us."""
        partition = self._partitions.get(waiting.partition)
        return partition is not None and partition.waiting.get(waiting.name) is waiting

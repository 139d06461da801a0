"""A graph in its partition of the log: where it stands, what of it is saved, and who is to take over from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streams.worker.arrival import Arrival
from streams.worker.batch import BatchResult
from streams.worker.incoming_graph import IncomingGraph
from streams.worker.live_graph import LiveGraph


@dataclass
class HostedGraph:
    """A graph that this worker answers for."""

    graph: LiveGraph
    partition: int
    offset: int  # of the next event that it takes
    saved: int  # the offset that its newest snapshot stands at
    incoming: IncomingGraph | None = None  # the same graph with another bundle, on its way to the same offset

    def apply(self, arrivals: Sequence[Arrival], *, silent: bool = False) -> BatchResult:
        """Take in events in log order, at least one; those that it has already are left out."""
        fresh = [arrival for arrival in arrivals if arrival.source.offset >= self.offset]
        result = self.graph.apply(fresh, silent=silent)
        self.offset = max(self.offset, arrivals[-1].source.offset + 1)
        if self.incoming is not None:
            self.incoming.overhear(fresh)
        return result

    def take_over(self, incoming: IncomingGraph) -> None:
        """From here on the incoming graph answers; it must be level. The score is the graph's, whoever answers."""
        incoming.graph.score = self.graph.score
        self.graph, self.incoming = incoming.graph, None
        self.saved = -1  # no snapshot is of this version

"""A graph with a new bundle, catching up beside the present one until it stands at the same offset."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from streams.kafka import Record
from streams.worker.live_graph import Arrival, Graph, arrival_of

NEAR = 4  # batches: from this close on, what the present graph is given is kept for the successor as well


@dataclass(frozen=True)
class Stretch:
    """What of the log a successor takes in next; empty when it lives on what it overhears."""

    partition: int
    start: int
    end: int


class Successor:
    """Takes the log in by slices of at most a batch, so that it delays no prediction by more than that.

    Far behind, it reads the log. Near the present one it also keeps what that one is given, because reading would
    always come a batch too late: once the log is read up to where the keeping began, the rest is in memory.
    """

    def __init__(self, graph: Graph, offset: int) -> None:
        self.graph = graph
        self._offset = offset  # of the next event to take in
        self._kept_from: int | None = None  # where the keeping began
        self._kept: deque[Arrival] = deque()

    def wants(self, partition: int, present: int, batch: int) -> Stretch:
        """The next stretch of the log, when the present graph stands at offset `present`."""
        if self._kept_from is None and present - self._offset <= NEAR * batch:
            self._kept_from = max(present, self._offset)  # its state may be ahead of a worker that lags
        end = present if self._kept_from is None else self._kept_from
        return Stretch(partition, self._offset, max(self._offset, min(end, self._offset + batch)))

    def overhear(self, arrivals: Sequence[Arrival]) -> None:
        """What the present graph was given just now."""
        if self._kept_from is not None:
            self._kept += [arrival for arrival in arrivals if arrival.source.offset >= self._offset]

    def take_in(self, stretch: Stretch, records: Sequence[Record], batch: int) -> None:
        """The records of this graph in a stretch of the log; when that is read, a batch of what was kept."""
        arrivals = [arrival_of(record) for record in records]
        self._offset = max(self._offset, stretch.end)
        if not arrivals and self._kept_from is not None and self._offset >= self._kept_from:
            arrivals = [self._kept.popleft() for _ in range(min(batch, len(self._kept)))]
            if arrivals:
                self._offset = arrivals[-1].source.offset + 1
        if arrivals:
            self.graph.apply(arrivals, silent=True)

    def has_reached(self, present: int) -> bool:
        """Whether it stands where the present graph stands, so that it can take its seat between two events."""
        return self._kept_from is not None and self._kept_from <= self._offset <= present and not self._kept

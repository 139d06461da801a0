"""A graph with a new bundle, catching up beside the present one until it stands at the same offset."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from streams.kafka import Record
from streams.worker.arrival import Arrival, arrival_of
from streams.worker.live_graph import LiveGraph

NEAR = 4  # batches: from this close on, what the present graph is given is kept for the incoming one as well


@dataclass(frozen=True)
class OffsetRange:
    """Offsets of one partition from `start` up to but not including `end`."""

    partition: int
    start: int
    end: int

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        return self.start >= self.end


class IncomingGraph:
    """Takes the log in by slices of at most a batch, so that it delays no prediction by more than that.

    Far behind, it reads the log. Near the present one it also keeps what that one is given, because reading would
    always come a batch too late: once the log is read up to where the keeping began, the rest is in memory.
    """

    def __init__(self, graph: LiveGraph, partition: int, offset: int, batch: int) -> None:
        """`offset` is that of the next event it takes in, `batch` how many events make a slice."""
        self.graph = graph
        self._partition, self._offset, self._batch = partition, offset, batch
        self._kept_from: int | None = None  # where the keeping began
        self._kept: deque[Arrival] = deque()

    def next_range(self, present: int) -> OffsetRange:
        """What of the log it takes in next, when the present graph stands at offset `present`.

        Empty when it lives on what it overhears.
        """
        if self._kept_from is None and present - self._offset <= NEAR * self._batch:
            self._kept_from = max(present, self._offset)  # its state may be ahead of a worker that lags
        end = present if self._kept_from is None else self._kept_from
        end = max(self._offset, min(end, self._offset + self._batch))
        return OffsetRange(self._partition, self._offset, end)

    def overhear(self, arrivals: Sequence[Arrival]) -> None:
        """What the present graph was given just now."""
        if self._kept_from is not None:
            self._kept += [arrival for arrival in arrivals if arrival.source.offset >= self._offset]

    def apply(self, offsets: OffsetRange, records: Sequence[Record]) -> None:
        """Take in the records of this graph in a range of the log; when that is read, a batch of what was kept."""
        arrivals = [arrival_of(record) for record in records]
        self._offset = max(self._offset, offsets.end)
        if not arrivals and self._kept_from is not None and self._offset >= self._kept_from:
            arrivals = [self._kept.popleft() for _ in range(min(self._batch, len(self._kept)))]
            if arrivals:
                self._offset = arrivals[-1].source.offset + 1
        if arrivals:
            self.graph.apply(arrivals, silent=True)

    def is_level(self, present: int) -> bool:
        """Whether it stands where the present graph stands, so that it can take over between two events."""
        return self._kept_from is not None and self._kept_from <= self._offset <= present and not self._kept

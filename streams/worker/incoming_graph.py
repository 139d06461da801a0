"""A graph with another version, catching up beside the present one so that it can answer from a model event on."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streams.kafka import Record
from streams.worker.arrival import Arrival, arrival_of
from streams.worker.live_graph import LiveGraph

NEAR = 4  # batches: from this close on, what the present graph is given is kept for the incoming one as well
SLICE = 2  # batches in a slice: twice as fast as a present graph that never rests, or it would never reach it
READ = 8  # slices read from the log at once


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

    def cut(self, size: int) -> Iterator[OffsetRange]:
        """The same in ranges of at most this size, at least one."""
        for start in range(self.start, max(self.end, self.start + 1), size):
            yield OffsetRange(self.partition, start, min(start + size, self.end))


class IncomingGraph:
    """Takes the log in by slices, so that it delays no prediction by more than that; none has more than two batches.

    Far behind, it reads the log. Near the present one it also keeps what that one is given, because reading would
    always come a batch too late: once the log is read up to where the keeping began, the rest is in memory. From then
    on it follows: it takes in at once whatever the present one is given. A state that is ahead of the present graph
    follows from the beginning, and leaves out what it has.
    """

    def __init__(self, graph: LiveGraph, partition: int, offset: int, batch: int) -> None:
        """`offset` is that of the next event it takes in, `batch` how many events make a live batch."""
        self.graph, self.offset = graph, offset
        self.slice = SLICE * batch
        self.follows = False  # it stands where the present graph stands, or further ahead
        self.announced = False  # the model event that names it is in the log
        self.began = time.perf_counter()
        self.longest_step = 0.0  # seconds for which it had the device
        self._partition, self._near = partition, NEAR * batch
        self._kept_from: int | None = None  # where the keeping began
        self._kept: deque[Arrival] = deque()

    @property
    def version(self) -> str:
        """The one that would answer."""
        return self.graph.version

    def next_range(self, present: int) -> OffsetRange:
        """What of the log it takes in next, when the present graph stands at offset `present`.

        Empty when it lives on what it overhears.
        """
        if self._kept_from is None and present - self.offset <= self._near:
            self._kept_from = max(present, self.offset)  # its state may be ahead of a worker that lags
        end = present if self._kept_from is None else self._kept_from
        end = max(self.offset, min(end, self.offset + READ * self.slice))
        return OffsetRange(self._partition, self.offset, end)

    def overhear(self, arrivals: Sequence[Arrival]) -> None:
        """What the present graph was given just now."""
        fresh = [arrival for arrival in arrivals if arrival.source.offset >= self.offset]
        if self.follows and fresh:
            self._take(fresh)
        elif self._kept_from is not None:
            self._kept += fresh

    def apply(self, offsets: OffsetRange, records: Sequence[Record]) -> None:
        """Take in the records of this graph in a slice of the log; when that is read, a slice of what was kept."""
        if records:
            self._take([arrival_of(record) for record in records])
        self.offset = max(self.offset, offsets.end)
        if self._kept_from is not None and self.offset >= self._kept_from:
            if not records and self._kept:
                self._take([self._kept.popleft() for _ in range(min(self.slice, len(self._kept)))])
            self.follows = not self._kept

    def _take(self, arrivals: Sequence[Arrival]) -> None:
        self.graph.follow(arrivals)
        self.offset = arrivals[-1].source.offset + 1

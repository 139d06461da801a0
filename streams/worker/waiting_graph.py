"""A graph whose events wait in the log: set aside, being loaded, or far behind."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from adatkg_core.runtime import growing_pause
from streams.worker.arrival import Arrival
from streams.worker.batch import BatchResult
from streams.worker.hosted_graph import HostedGraph


@dataclass(eq=False)
class WaitingGraph:
    """What was answered before lies below `first`; what lies beyond is answered from the log once the graph is here."""

    name: str
    partition: int
    first: int | None  # the first event that waits; None while none has come
    hosted: HostedGraph | None = None  # once it is loaded, on its way through the log
    until: int = 0  # what waits reaches to here, where nothing was delivered yet
    tries: int = 0  # that failed
    not_before: float = field(default=0.0)  # when it may be tried again, by time.monotonic

    def leave_in_log(self, arrivals: Sequence[Arrival]) -> BatchResult:
        """Events that were delivered; they are read from the log when their turn comes."""
        if self.first is None:
            self.first = arrivals[0].source.offset
        result = BatchResult(self.name)
        result.counts["waiting"] = len(arrivals)
        return result

    def postpone(self) -> float:
        """A try has failed; returns the seconds until the next one, more each time."""
        pause = growing_pause(self.tries)
        self.tries += 1
        self.not_before = time.monotonic() + pause
        return pause

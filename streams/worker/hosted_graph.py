"""A graph in its partition of the log: where it stands, what of it is saved, and which version comes next."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from adatkg_core.messages import Unusable
from streams.worker.arrival import Arrival
from streams.worker.batch import BatchResult, Rejected, Switch
from streams.worker.inboxes import Place
from streams.worker.incoming_graph import IncomingGraph
from streams.worker.live_graph import LiveGraph

log = structlog.get_logger()


@dataclass
class HostedGraph:
    """A graph that this worker answers for.

    Where it comes to a model event and the version that it names is not ready, it stands there and is `behind`: what is
    delivered to it from then on is left out, and read from the log once it can go on.
    """

    graph: LiveGraph
    partition: int
    offset: int  # of the next event that it takes
    saved: int  # the offset that its newest snapshot stands at
    incoming: IncomingGraph | None = None  # the same graph with another version
    switch: Switch | None = None  # the event at which it stands, because that version is not ready
    behind: bool = False
    answered_below: int = 0  # of what it reads from the log when it is behind, others have answered what is below

    @property
    def place(self) -> Place:
        """What its events are known by."""
        return Place(self.partition, self.graph.name.encode())

    @property
    def unanswered(self) -> int:
        """From where on nobody has answered what it is sent, where it is behind."""
        return max(self.offset, self.answered_below)

    def apply(self, arrivals: Sequence[Arrival], *, silent: bool = False) -> list[BatchResult]:
        """Take in events in log order, at least one; those that it has already are left out."""
        return [] if self.behind else self._take(arrivals, silent)

    def read_on(self, arrivals: Sequence[Arrival], end: int) -> list[BatchResult]:
        """Take in what was read from the log below `end`, where it is behind; it may come to the next model event."""
        results = self._take(arrivals, end <= self.answered_below) if arrivals else []
        if self.switch is None:
            self.offset = max(self.offset, end)
        return results

    def is_ready(self) -> bool:
        """Whether the version that the event names stands right before it."""
        return self.switch is not None and self._can_follow(self.switch)

    def take_over(self) -> BatchResult:
        """From this event on the incoming graph answers. The score is the graph's, whoever answers."""
        assert self.incoming is not None and self.switch is not None
        incoming, switch, before = self.incoming, self.switch, self.graph.version
        incoming.graph.score = self.graph.score
        self.graph, self.incoming, self.switch = incoming.graph, None, None
        self.saved = -1  # no snapshot is of this version
        self._pass(switch)
        took = time.perf_counter() - incoming.began
        log.info(
            "swapped",
            graph=self.graph.name,
            version=self.graph.version,
            before=before,
            offset=switch.offset,
            seconds=round(took, 3),
            longest_step=round(incoming.longest_step, 4),
        )
        return BatchResult(
            self.graph.name,
            self.graph.version,
            self.graph.bundle.clock,
            counts=Counter(model=1),
            swapped=took,
            wish_met=switch.event.after is not None,
        )

    def refuse(self, problem: Unusable) -> BatchResult:
        """The event at which it stands names no version that may answer: the present one goes on behind it."""
        assert self.switch is not None
        switch, self.switch = self.switch, None
        self._pass(switch)
        result = BatchResult(self.graph.name, self.graph.version, self.graph.bundle.clock)
        if self.graph.replica.leads and switch.offset >= self.answered_below:
            result.rejected.append(Rejected(switch.arrival, problem.code, problem.detail))
        return result

    def _take(self, arrivals: Sequence[Arrival], silent: bool) -> list[BatchResult]:
        fresh = [arrival for arrival in arrivals if arrival.source.offset >= self.offset]
        results: list[BatchResult] = []
        while fresh:
            result = self.graph.apply(fresh, silent=silent)
            results.append(result)
            switch = result.switch
            end = arrivals[-1].source.offset + 1 if switch is None else switch.offset
            if self.incoming is not None:
                self.incoming.overhear([arrival for arrival in fresh if arrival.source.offset < end])
            if switch is not None:
                self.switch, self.offset = switch, switch.offset
                if not self._can_follow(switch):
                    self.behind = True
                    return results
                results.append(self.take_over())
            fresh = [arrival for arrival in fresh if arrival.source.offset > end]
        self.offset = max(self.offset, arrivals[-1].source.offset + 1)
        return results

    def _pass(self, switch: Switch) -> None:
        self.graph.origins.take(switch.arrival.origin)
        self.offset = switch.offset + 1

    def _can_follow(self, switch: Switch) -> bool:
        incoming = self.incoming
        return (
            incoming is not None
            and incoming.version == switch.event.version
            and incoming.follows
            and incoming.offset <= switch.offset
        )

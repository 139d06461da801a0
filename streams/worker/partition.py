"""What this worker has of one partition: how far it was delivered, and which graphs are here, wait or have no model."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from streams.worker.hosted_graph import HostedGraph
from streams.worker.waiting_graph import WaitingGraph

LOOK_AGAIN = 5.0  # seconds until the store is asked again for a graph's first model
ABSENT = 10_000  # graphs without a model that are remembered


@dataclass
class Partition:
    """Each graph is in one of these at most."""

    next: int | None = None  # the offset that should come next; None before the first delivery
    graphs: dict[str, HostedGraph] = field(default_factory=dict)
    absent: dict[str, float] = field(default_factory=dict)  # graphs without a model: when to look again
    waiting: dict[str, WaitingGraph] = field(default_factory=dict)  # whose events wait in the log
    known: set[bytes] = field(default_factory=set)  # keys of graphs that are here, wait, or have a model in the store

    def is_absent(self, name: str) -> bool:
        """Whether a graph had no model a moment ago."""
        return self.absent.get(name, 0.0) > time.monotonic()

    def has_no_model(self, name: str) -> None:
        """Remember it for a moment."""
        if len(self.absent) >= ABSENT:
            self.absent.clear()
        self.absent[name] = time.monotonic() + LOOK_AGAIN

    def join(self, hosted: HostedGraph) -> None:
        """A graph is here."""
        name = hosted.graph.name
        self.graphs[name] = hosted
        self.known.add(name.encode())
        self.absent.pop(name, None)
        self.waiting.pop(name, None)

    def wait(self, waiting: WaitingGraph) -> WaitingGraph:
        """A graph's events wait in the log; where they do already, as before."""
        self.graphs.pop(waiting.name, None)
        self.known.add(waiting.name.encode())
        return self.waiting.setdefault(waiting.name, waiting)

    def is_behind(self, name: str) -> bool:
        """Whether a graph stands at a model event, and reads what it is sent from the log later."""
        return name in self.graphs and self.graphs[name].behind

    def first_waiting(self) -> int | None:
        """The first event that waits in the log, of a graph that is not here or stands at a model event."""
        away = [one.first for one in self.waiting.values() if one.first is not None]
        behind = [one.unanswered for one in self.graphs.values() if one.behind]
        return min([*away, *behind], default=None)

"""What a snapshot of a whole worker consists of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from streams.worker.graph_capture import GraphCapture
from streams.worker.hosted_graph import HostedGraph


@dataclass(frozen=True)
class Capture:
    """States as of one moment: once they are durable, events below `positions` need not come again.

    Except where graphs wait: then those from `waiting` on must, because events of these graphs are among them.
    """

    states: tuple[GraphCapture, ...]
    positions: dict[int, int]  # by partition
    graphs: tuple[HostedGraph, ...] = field(repr=False, default=())  # whose states these are
    waiting: dict[int, int] = field(default_factory=dict)  # by partition

    def copy(self) -> Iterator[None]:
        """Copies the states in small steps, on the device's thread."""
        for state in self.states:
            yield from state.copy()

"""What a snapshot of a whole worker consists of."""

from __future__ import annotations

from dataclasses import dataclass, field

from adatkg_core.storage import Saved
from streams.worker.hosted_graph import HostedGraph


@dataclass(frozen=True)
class Capture:
    """States as of one moment: once they are durable, events below `positions` need not come again.

    Except where graphs wait: then those from `waiting` on must, because events of these graphs are among them.
    """

    states: tuple[Saved, ...]
    positions: dict[int, int]  # by partition
    graphs: tuple[HostedGraph, ...] = field(repr=False, default=())  # whose states these are
    waiting: dict[int, int] = field(default_factory=dict)  # by partition

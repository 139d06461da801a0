"""Deliveries as they may come: of several partitions and graphs, again, and with gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from streams.worker.arrival import Arrival

K = TypeVar("K")


def grouped(arrivals: Sequence[Arrival], key: Callable[[Arrival], K]) -> Iterable[tuple[K, list[Arrival]]]:
    """The arrivals by key, each group in order."""
    groups: dict[K, list[Arrival]] = {}
    for arrival in arrivals:
        groups.setdefault(key(arrival), []).append(arrival)
    return groups.items()


def runs(arrivals: Sequence[Arrival], start: int) -> Iterable[list[Arrival]]:
    """Runs of offsets without a gap from `start` on; what comes again, within the batch too, is left out."""
    run: list[Arrival] = []
    for arrival in arrivals:
        offset = arrival.source.offset
        if offset < start:
            continue
        if run and arrival.begins > start:
            yield run
            run = []
        run.append(arrival)
        start = offset + 1
    if run:
        yield run

"""Which events that were moved to their graph's partition were taken: a move may happen again, its effect may not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adatkg_core.events import Source


class Origins:
    """Of each partition from which events of a graph were moved the highest offset that was taken.

    A partition's events are moved in its order and nothing is left out, so all that is not above it came before.
    """

    def __init__(self, taken: Iterable[Sequence[int]] = ()) -> None:
        """`taken` is what `pairs` gave."""
        self._taken = {int(partition): int(offset) for partition, offset in taken}

    def is_new(self, origin: Source | None) -> bool:
        """Whether no event with this origin was taken; one that was not moved always is new."""
        return origin is None or origin.offset > self._taken.get(origin.partition, -1)

    def take(self, origin: Source | None) -> bool:
        """Whether an event with this origin is new, and from now on it is not."""
        if not self.is_new(origin):
            return False
        if origin is not None:
            self._taken[origin.partition] = origin.offset
        return True

    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Partitions and offsets, as plain values."""
        return tuple(sorted(self._taken.items()))

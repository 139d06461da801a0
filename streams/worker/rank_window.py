"""MRR and hits over the last ranks."""

from __future__ import annotations

from collections import deque

HITS = (1, 3, 10)
_UNITS = 1 << 60  # a reciprocal rank is kept as so many parts of one, since whole numbers add up without drift


class RankWindow:
    """The last ranks and their sums, in whole numbers; None is a rank that nobody knows and counts as 0."""

    def __init__(self, size: int) -> None:
        self._ranks: deque[float | None] = deque()
        self._size, self._reciprocals, self._hits = size, 0, [0] * len(HITS)

    def add(self, rank: float | None) -> None:
        """One more; the oldest makes room."""
        self._ranks.append(rank)
        self._count(rank, 1)
        if len(self._ranks) > self._size:
            self._count(self._ranks.popleft(), -1)

    def scores(self) -> dict[str, float | int | None]:
        """Their mrr, hits and count; None while there are none."""
        count = len(self._ranks)
        sums = {"mrr": self._reciprocals / _UNITS, **dict(zip(map("hits@{}".format, HITS), self._hits, strict=True))}
        return {**{name: value / count if count else None for name, value in sums.items()}, "count": count}

    def _count(self, rank: float | None, sign: int) -> None:
        if rank is not None:
            self._reciprocals += sign * round(_UNITS / rank)
            for i, depth in enumerate(HITS):
                self._hits[i] += sign * (rank <= depth)

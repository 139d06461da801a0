"""MRR and hits over the last ranks."""

from __future__ import annotations

from collections import deque
from functools import lru_cache

HITS = (1, 3, 10)
_UNITS = 1 << 60  # a reciprocal rank is kept as so many parts of one, since whole numbers add up without drift


class RankWindow:
    """The last ranks and their sums, in whole numbers; None is a rank that nobody knows and counts as 0."""

    def __init__(self, size: int) -> None:
        self._worths: deque[tuple[int, ...]] = deque()
        self._size, self._sums = size, [0] * (1 + len(HITS))

    def add(self, rank: float | None) -> None:
        """One more; the oldest makes room."""
        worth, sums = _worth(rank), self._sums
        self._worths.append(worth)
        for i, more in enumerate(worth):
            sums[i] += more
        if len(self._worths) > self._size:
            for i, less in enumerate(self._worths.popleft()):
                sums[i] -= less

    def scores(self) -> dict[str, float | int | None]:
        """Their mrr, hits and count; None while there are none."""
        count, (reciprocals, *hits) = len(self._worths), self._sums
        sums = {"mrr": reciprocals / _UNITS, **dict(zip(map("hits@{}".format, HITS), hits, strict=True))}
        return {**{name: value / count if count else None for name, value in sums.items()}, "count": count}


@lru_cache(4_096)
def _worth(rank: float | None) -> tuple[int, ...]:
    """What a rank adds to the sums: parts of its reciprocal, and whether it is a hit at each depth."""
    if rank is None:
        return (0,) * (1 + len(HITS))
    return (round(_UNITS / rank), *(int(rank <= depth) for depth in HITS))

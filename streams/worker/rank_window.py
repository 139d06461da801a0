"""MRR and hits over the last ranks."""

from __future__ import annotations

from collections import deque
from functools import lru_cache

HITS = (1, 3, 10)
_UNITS = 1 << 60  # a reciprocal rank is kept as so many parts of one, since whole numbers add up without drift


class RankWindow:
    """The last ranks; None is one that nobody knows and counts as 0. Sums are kept in whole numbers, and brought up to
    date when somebody looks: far more ranks come than anybody looks at."""

    def __init__(self, size: int) -> None:
        self._size, self._sums = size, [0] * (1 + len(HITS))
        self._summed: deque[float | None] = deque()
        self._fresh: deque[float | None] = deque(maxlen=size)
        self.add = self._fresh.append  # one more; the oldest makes room

    def scores(self) -> dict[str, float | int | None]:
        """Their mrr, hits and count; None while there are none."""
        self._sum_up()
        count, (reciprocals, *hits) = len(self._summed), self._sums
        sums = {"mrr": reciprocals / _UNITS, **dict(zip(map("hits@{}".format, HITS), hits, strict=True))}
        return {**{name: value / count if count else None for name, value in sums.items()}, "count": count}

    def _sum_up(self) -> None:
        if len(self._fresh) == self._size:  # there may have been more, and all before them are gone
            self._summed.clear()
            self._sums = [0] * len(self._sums)
        for rank in self._fresh:
            self._summed.append(rank)
            self._count(rank, 1)
        self._fresh.clear()
        while len(self._summed) > self._size:
            self._count(self._summed.popleft(), -1)

    def _count(self, rank: float | None, sign: int) -> None:
        for i, more in enumerate(_worth(rank)):
            self._sums[i] += sign * more


@lru_cache(4_096)
def _worth(rank: float | None) -> tuple[int, ...]:
    """What a rank adds to the sums: parts of its reciprocal, and whether it is a hit at each depth."""
    if rank is None:
        return (0,) * (1 + len(HITS))
    return (round(_UNITS / rank), *(int(rank <= depth) for depth in HITS))

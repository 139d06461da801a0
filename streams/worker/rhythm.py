"""How long a stream usually takes until something of the same kind happens again."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict, deque

from adatkg_core.events import Fact

KINDS = 10_000  # of which the last time is remembered; the one that has been quiet for longest makes room
GAPS = 4_096  # the latest count
ENOUGH = 100  # gaps before they say anything
AT_FIRST = 14  # ticks, until there are enough: as far back as an entity's chain of facts reaches
SHARE = 0.75  # of the gaps are no longer than the horizon


class Rhythm:
    """The gaps, in ticks, between consecutive times at which an entity had facts of one relation on one side.

    They follow from the facts before in the log alone, in bounded memory, and nothing but the score reads them.
    """

    def __init__(self, kinds: int = KINDS, gaps: int = GAPS) -> None:
        self._most_kinds, self._most_gaps = kinds, gaps
        self._last: OrderedDict[tuple[bool, str, str], int] = OrderedDict()  # by side, relation and entity
        self._gaps: deque[int] = deque()
        self._ordered: list[int] = []  # the same gaps by their length

    @property
    def horizon(self) -> int:
        """Ticks within which the next fact of a kind usually comes: three of four gaps are no longer."""
        if len(self._ordered) < ENOUGH:
            return AT_FIRST
        return self._ordered[int(SHARE * len(self._ordered))]

    def saw(self, fact: Fact) -> None:
        """A fact of the log; one that is older than the last of its kind tells nothing."""
        for kind in ((True, fact.r, fact.s), (False, fact.r, fact.o)):
            last = self._last.get(kind)
            if last is None or fact.t > last:
                self._last[kind] = fact.t
                if last is not None:
                    self._add(fact.t - last)
            self._last.move_to_end(kind)
        while len(self._last) > self._most_kinds:
            self._last.popitem(last=False)

    def _add(self, gap: int) -> None:
        self._gaps.append(gap)
        insort(self._ordered, gap)
        if len(self._gaps) > self._most_gaps:
            del self._ordered[bisect_left(self._ordered, self._gaps.popleft())]

"""The score of a live stream: each query is marked when its answer comes as a fact, later in the same log."""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from adatkg_core.events import Fact, Prediction, Recurrent
from adatkg_core.messages import Question

SLICES = ("all", "cold_start", "warm")
HITS = (1, 3, 10)
NAMES_EACH = 200  # held for an outstanding query, on the average at most: lists are as long as those who ask like
_UNITS = 1 << 60  # a reciprocal rank is kept as so many parts of one, since whole numbers add up without drift
MARKS = 100  # told of the queries that one fact settles in one direction
_STALE = 64  # times that may be in the heap though nothing is asked about them any more

Scores = dict[str, dict[str, float | int | None]]  # of each slice: mrr, hits, and over how many
_Key = tuple[bool, str, str, int]  # whether the object is asked for, the relation, the entity given, the time


class Prequential:
    """MRR and hits over a sliding window of queries whose answer came later as a fact.

    A query counts once for each distinct answer that comes after it. The rank is the exact one if the query asked for
    it; else the place in the list, not counting answers that came since the query. An answer beyond the list counts as
    reciprocal rank 0 and no hit, so that the score is never flattered. An answer that the query excluded does not
    count: it was not asked for.

    Where an answer also says what the recurrency heuristic would have, that is marked by the same rules for the same
    queries; candidates that tie there share the mean of their places.
    """

    def __init__(self, window: int = 1_000, outstanding: int = 20_000) -> None:
        if min(window, outstanding) < 1:
            raise ValueError(f"window is {window}, outstanding {outstanding}: both must be at least 1")
        self.dropped = 0  # queries given up for lack of room
        self._limit = outstanding
        self._windows = {name: _Window(window) for name in SLICES}
        self._heuristic = {name: _Window(window) for name in SLICES}
        self._asked: OrderedDict[int, _Asked] = OrderedDict()  # by their moments, the oldest first
        self._groups: dict[_Key, _Group] = {}
        self._keys: dict[int, set[_Key]] = {}  # of the groups about each time
        self._times: list[int] = []  # heap of those times, and of some that nothing is asked about any more
        self._names = 0  # held by queries and groups
        self._moment = 0

    @property
    def outstanding(self) -> int:
        """How many queries may still be settled."""
        return len(self._asked)

    def answered(self, question: Question, prediction: Prediction, deep: Sequence[str], offset: int = 0) -> None:
        """A query was answered with this ranking, best first; `deep` goes further down than what was asked for.

        `offset` is the query's place in the log, by which its marks can be told apart. The query's time must be a tick:
        whoever asked for the next one has got it. The answers to a late query were known, so it is not scored.
        """
        if prediction.late:
            return
        query = question.query
        given = query.s if query.s is not None else query.o
        assert given is not None
        key = (query.s is not None, query.r, given, query.t)
        self._moment += 1
        unwanted = frozenset(query.exclude)
        listed = tuple(name for name in deep if name not in unwanted) if unwanted else tuple(deep)
        asked = _Asked(
            key, self._moment, offset, listed, unwanted, prediction.ranks, prediction.cold_start, prediction.recurrent
        )
        self._asked[asked.moment] = asked
        self._group(key).asked.append(asked)
        self._names += asked.names
        self._make_room()

    def happened(self, fact: Fact) -> list[Mark]:
        """A fact came; it settles the outstanding queries that it answers, in both directions, and says how they did.

        Of the queries about one thing only the latest are told apart; all of them count.
        """
        self._moment += 1
        marks = self._settle((True, fact.r, fact.s, fact.t), fact.o)
        marks += self._settle((False, fact.r, fact.o, fact.t), fact.s)
        self._make_room()
        return marks

    def passed(self, watermark: int) -> None:
        """Time has come this far: queries about times before it can no longer be settled and are dropped."""
        while self._times and self._times[0] < watermark:
            for key in tuple(self._keys.get(heapq.heappop(self._times), ())):
                for asked in self._groups[key].asked:
                    del self._asked[asked.moment]
                    self._names -= asked.names
                self._close(key)

    def scores(self) -> Scores:
        """Of each slice: mrr and hits of the last ones settled, and how many these are; None while there are none."""
        return {name: window.scores() for name, window in self._windows.items()}

    def heuristic_scores(self) -> Scores:
        """The same of the recurrency heuristic, over those queries to which it had something to say."""
        return {name: window.scores() for name, window in self._heuristic.items()}

    # -- private ----------------------------------------------------------------------------------------------

    def _settle(self, key: _Key, truth: str) -> list[Mark]:
        group = self._groups.get(key)
        if group is None:
            return []
        before = group.came.get(truth, 0)
        self._names += before == 0
        group.came[truth] = self._moment
        fresh = []
        for asked in reversed(group.asked):
            if asked.moment < before:
                break  # this one and all older ones are settled with this answer
            fresh.append(asked)
        marks: deque[Mark] = deque(maxlen=MARKS)
        for asked in reversed(fresh):
            if truth not in asked.unwanted or truth in asked.ranks:
                rank, simple = asked.ranks.get(truth) or asked.place(truth, group.came), asked.recurrent
                simple_rank = (
                    None if simple is None else simple.ranks.get(truth) or asked.simple_place(truth, group.came)
                )
                for name in ("all", "cold_start" if asked.cold_start else "warm"):
                    self._windows[name].add(rank)
                    if simple is not None:
                        self._heuristic[name].add(simple_rank)
                marks.append(Mark(asked.offset, truth, rank, simple_rank))
        return list(marks)

    def _group(self, key: _Key) -> _Group:
        if key not in self._groups:
            self._groups[key] = _Group()
            time = key[-1]
            if time not in self._keys:
                self._keys[time] = set()
                heapq.heappush(self._times, time)
                if len(self._times) > 2 * len(self._keys) + _STALE:
                    self._times = sorted(self._keys)
            self._keys[time].add(key)
        return self._groups[key]

    def _make_room(self) -> None:
        while len(self._asked) > self._limit or self._names > NAMES_EACH * self._limit:
            _, asked = self._asked.popitem(last=False)
            self._names -= asked.names
            self.dropped += 1
            group = self._groups[asked.key]
            group.asked.popleft()  # the oldest of all is the oldest of its group
            if not group.asked:
                self._close(asked.key)

    def _close(self, key: _Key) -> None:
        self._names -= len(self._groups.pop(key).came)
        keys = self._keys[key[-1]]
        keys.remove(key)
        if not keys:
            del self._keys[key[-1]]


@dataclass(frozen=True, slots=True)
class Mark:
    """How the answer to the query at `offset` did when this truth came; None: beyond the remembered list."""

    offset: int
    truth: str
    rank: float | None
    heuristic_rank: float | None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query that was answered: when, and what its answer said."""

    key: _Key
    moment: int
    offset: int
    listed: tuple[str, ...]
    unwanted: frozenset[str]
    ranks: dict[str, float]
    cold_start: bool
    recurrent: Recurrent | None

    @property
    def names(self) -> int:
        simple = 0 if self.recurrent is None else len(self.recurrent.names) + len(self.recurrent.ranks)
        return len(self.listed) + len(self.unwanted) + len(self.ranks) + simple

    def place(self, truth: str, came: dict[str, int]) -> int | None:
        """The answer's place in the list without those that came since the query; None beyond the list."""
        place = 1
        for name in self.listed:
            if name == truth:
                return place
            place += came.get(name, 0) < self.moment
        return None

    def simple_place(self, truth: str, came: dict[str, int]) -> float | None:
        """The same in the heuristic's list, where those that tie share the mean of their places."""
        assert self.recurrent is not None
        names, levels = self.recurrent.names, self.recurrent.levels
        if truth not in names:
            return None
        level = levels[names.index(truth)]
        above = tied = 0
        for name, height in zip(names, levels, strict=True):
            if height > level:
                break
            if name != truth and came.get(name, 0) < self.moment:
                above, tied = above + (height < level), tied + (height == level)
        return above + 1 + tied / 2


@dataclass(slots=True)
class _Group:
    """The queries that ask the same, and when the answers to them last came."""

    asked: deque[_Asked] = field(default_factory=deque)
    came: dict[str, int] = field(default_factory=dict)


class _Window:
    """The last ranks of a slice and their sums, in whole numbers."""

    def __init__(self, size: int) -> None:
        self._ranks: deque[float | None] = deque()
        self._size, self._reciprocals, self._hits = size, 0, [0] * len(HITS)

    def add(self, rank: float | None) -> None:
        self._ranks.append(rank)
        self._count(rank, 1)
        if len(self._ranks) > self._size:
            self._count(self._ranks.popleft(), -1)

    def scores(self) -> dict[str, float | int | None]:
        count = len(self._ranks)
        sums = {"mrr": self._reciprocals / _UNITS, **dict(zip(map("hits@{}".format, HITS), self._hits, strict=True))}
        return {**{name: value / count if count else None for name, value in sums.items()}, "count": count}

    def _count(self, rank: float | None, sign: int) -> None:
        if rank is not None:
            self._reciprocals += sign * round(_UNITS / rank)
            for i, depth in enumerate(HITS):
                self._hits[i] += sign * (rank <= depth)

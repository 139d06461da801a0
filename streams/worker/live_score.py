"""The score of a live stream: each query is scored when its answer comes as a fact, later in the same log."""

from __future__ import annotations

import heapq
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from adatkg_core.events import Fact, Ranking, Recurrent
from adatkg_core.messages import Question
from streams.settings import Horizon
from streams.worker.rank_window import RankWindow
from streams.worker.rhythm import Rhythm

SLICES = ("all", "cold_start", "warm")
NAMES_EACH = 200  # held for an outstanding query, on the average at most: lists are as long as those who ask like
AT_ONCE = 100  # told of the queries that one fact settles in one direction
_STALE = 64  # ends that may be in the heap though their queries are gone

Scores = dict[str, dict[str, float | int | None]]  # of each slice: mrr, hits, and over how many


class LiveScore:
    """MRR and hits over a sliding window of queries whose answer came later as a fact.

    A query about a time is scored by the facts of that time that come after it. One about the next time is scored by
    the next fact of its kind: the first one behind it in the log that has the given entity on the given side of the
    relation and an answer that it did not exclude, from the watermark W at which it was asked until W + horizon. Facts
    of W itself count where they come after the question: whoever asks at 14:20 what happens next means what happens at
    14:40, though both are of the same hour; the answer was made before and has seen nothing of it. All facts of the
    tick at which the first one came count, those of later ticks do not, and neither do late ones. A query to which
    nothing comes ends unsettled: it is not in the score, but its number is told.

    A query counts once for each distinct answer that comes after it. The rank is the exact one if the query asked for
    it; else the place in the list, not counting answers that came since the query. An answer beyond the list counts as
    reciprocal rank 0 and no hit, so that the score is never flattered. An answer that the query excluded does not
    count: it was not asked for.

    Where an answer also says what the recurrency heuristic would have, that is scored by the same rules for the same
    queries; candidates that tie there share the mean of their places.

    None of this is part of a graph's state: it begins anew with the worker, and no prediction depends on it.
    """

    def __init__(self, window: int = 1_000, outstanding: int = 20_000, horizon: Horizon = "auto") -> None:
        if min(window, outstanding) < 1:
            raise ValueError(f"window is {window}, outstanding {outstanding}: both must be at least 1")
        self.rhythm = Rhythm()  # of the device's thread, which reads it for each question
        self.lock = threading.Lock()  # for whoever moves the score on, or looks at it from another thread
        self.dropped = 0  # queries given up for lack of room
        self.unsettled = 0  # queries that ended without an answer that counts
        self._limit, self._horizon = outstanding, horizon
        self._windows = {name: RankWindow(window) for name in SLICES}
        self._heuristic = {name: RankWindow(window) for name in SLICES}
        self._asked: OrderedDict[int, _Asked] = OrderedDict()  # by their moments, the oldest first
        self._groups: dict[_Key, _Group] = {}
        self._ends: list[tuple[int, int]] = []  # heap of last ticks and moments, also of some that are gone
        self._names = 0  # held by queries and groups
        self._moment = 0
        self._reached = -inf  # the largest time heard of

    @property
    def outstanding(self) -> int:
        """How many queries may still be settled."""
        return len(self._asked)

    @property
    def horizon(self) -> int:
        """For how many ticks a query about the next time waits for a fact, if it is asked now."""
        return self.rhythm.horizon if self._horizon == "auto" else self._horizon

    def until(self, question: Question) -> int:
        """The last tick at which an answer may come to a question that is asked now."""
        return question.query.t - 1 + self.horizon if question.next else question.query.t

    def answered(
        self, question: Question, prediction: Ranking, deep: Sequence[str], offset: int = 0, until: int | None = None
    ) -> None:
        """A query was answered with this ranking, best first; `deep` goes further down than what was asked for.

        `offset` is the query's place in the log, by which its scores can be told apart; `until` is what was said when
        it was asked. The query's time must be a tick: whoever asked for the next one has got it. The answers to a late
        query were known, so it is not scored.
        """
        if prediction.late:
            return
        query = question.query
        given = query.s if query.s is not None else query.o
        assert given is not None
        if question.next:
            self._reached = max(self._reached, query.t - 1)
        unwanted = frozenset(query.exclude)
        listed = [name for name in deep if name not in unwanted] if unwanted else deep
        ranks, simple = prediction.ranks, prediction.recurrent
        names = len(listed) + len(unwanted) + len(ranks)
        names += 0 if simple is None else len(simple.names) + len(simple.ranks)
        asked = _Asked(
            _Key(query.s is not None, query.r, given, None if question.next else query.t),
            self.until(question) if until is None else until,
            offset,
            listed,
            unwanted,
            ranks,
            prediction.cold_start,
            simple,
            names,
        )
        self._add(asked)
        self._make_room()

    def happened(self, fact: Fact) -> list[ScoredAnswer]:
        """A fact came; it settles the outstanding queries that it answers, in both directions, and says how they did.

        Of the queries about one thing only the latest are told apart; all of them count.
        """
        scored = []
        for forward, given, truth in ((True, fact.s, fact.o), (False, fact.o, fact.s)):
            if fact.t >= self._reached:
                self._bind(_Key(forward, fact.r, given, None), fact.t, truth)
            scored += self._settle(_Key(forward, fact.r, given, fact.t), truth)
        self._make_room()
        return scored

    def passed(self, watermark: int) -> dict[int, bool]:
        """Time has come this far: queries whose last tick is before it can no longer be settled and end.

        Returns their places in the log, and whether an answer had come.
        """
        self._reached = max(self._reached, watermark)
        ended: dict[int, bool] = {}
        while self._ends and self._ends[0][0] < watermark:
            asked = self._asked.get(heapq.heappop(self._ends)[1])
            if asked is not None:
                self._remove(asked)
                self.unsettled += not asked.settled
                ended[asked.offset] = asked.settled
        return ended

    def scores(self) -> Scores:
        """Of each slice: mrr and hits of the last ones settled, and how many these are; None while there are none."""
        return {name: window.scores() for name, window in self._windows.items()}

    def heuristic_scores(self) -> Scores:
        """The same of the recurrency heuristic, over those queries to which it had something to say."""
        return {name: window.scores() for name, window in self._heuristic.items()}

    # -- private ----------------------------------------------------------------------------------------------

    def _bind(self, kind: _Key, time: int, truth: str) -> None:
        """From here on the queries about the next of a kind that want this answer are about this time.

        They count as asked just now: what of this time came since they were really asked, they had excluded.
        """
        if (group := self._groups.get(kind)) is None:
            return
        for asked in self._fresh(group, truth):
            if asked.wants(truth):
                self._remove(asked)
                asked.key, asked.until = kind._replace(time=time), time
                self._add(asked)

    def _settle(self, key: _Key, truth: str) -> list[ScoredAnswer]:
        if (group := self._groups.get(key)) is None:
            return []
        scored: deque[ScoredAnswer] = deque(maxlen=AT_ONCE)
        came = group.came
        for asked in self._fresh(group, truth):
            if asked.wants(truth):
                asked.settled = True
                rank, simple = asked.ranks.get(truth) or asked.place(truth, came), asked.recurrent
                simple_rank = None if simple is None else simple.ranks.get(truth) or asked.simple_place(truth, came)
                for name in ("all", "cold_start" if asked.cold_start else "warm"):
                    self._windows[name].add(rank)
                    if simple is not None:
                        self._heuristic[name].add(simple_rank)
                scored.append(ScoredAnswer(asked.offset, truth, rank, simple_rank))
        return list(scored)

    def _fresh(self, group: _Group, truth: str) -> list[_Asked]:
        """The queries of a group to which this answer has not come before, the oldest first; now it has."""
        self._moment += 1
        before = group.came.get(truth, 0)
        self._names += before == 0
        group.came[truth] = self._moment
        fresh = []
        for asked in reversed(group.asked.values()):
            if asked.moment < before:
                break  # this one and all older ones have met this answer
            fresh.append(asked)
        return fresh[::-1]

    def _add(self, asked: _Asked) -> None:
        self._moment += 1
        asked.moment = self._moment
        self._asked[asked.moment] = asked
        if (group := self._groups.get(asked.key)) is None:
            group = self._groups[asked.key] = _Group()
        group.asked[asked.moment] = asked
        self._names += asked.names
        heapq.heappush(self._ends, (asked.until, asked.moment))
        if len(self._ends) > 2 * len(self._asked) + _STALE:
            self._ends = sorted((one.until, one.moment) for one in self._asked.values())

    def _remove(self, asked: _Asked) -> None:
        del self._asked[asked.moment]
        self._names -= asked.names
        group = self._groups[asked.key]
        del group.asked[asked.moment]
        if not group.asked:
            self._names -= len(group.came)
            del self._groups[asked.key]

    def _make_room(self) -> None:
        while len(self._asked) > self._limit or self._names > NAMES_EACH * self._limit:
            self._remove(next(iter(self._asked.values())))
            self.dropped += 1


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """How the answer to the query at `offset` did when this truth came; None: beyond the remembered list."""

    offset: int
    truth: str
    rank: float | None
    heuristic_rank: float | None


class _Key(NamedTuple):
    """What is asked: for the object or not, of which relation and given entity, at which time; None: the next."""

    forward: bool
    relation: str
    given: str
    time: int | None


@dataclass(slots=True)
class _Asked:
    """A query that was answered: until when it waits, and what its answer said."""

    key: _Key
    until: int
    offset: int
    listed: Sequence[str]
    unwanted: frozenset[str]
    ranks: dict[str, float]
    cold_start: bool
    recurrent: Recurrent | None
    names: int  # in all of these
    moment: int = 0
    settled: bool = False

    def wants(self, truth: str) -> bool:
        """Whether this answer counts: it was not excluded, or its rank was asked for all the same."""
        return truth not in self.unwanted or truth in self.ranks

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

    asked: OrderedDict[int, _Asked] = field(default_factory=OrderedDict)  # by their moments
    came: dict[str, int] = field(default_factory=dict)

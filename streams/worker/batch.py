"""Events of one graph that are processed together, with the same result as one by one."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Protocol

from adatkg_core.clock import Clock
from adatkg_core.engine import Engine
from adatkg_core.events import Fact, ModelEvent, Ranking, Tick
from adatkg_core.messages import Question, Reason, Unusable, decode_event, encode_prediction
from adatkg_core.storage import Bundle
from streams.kafka import Origins
from streams.worker.arrival import Arrival
from streams.worker.live_score import LiveScore, ScoredAnswer
from streams.worker.query_limits import QueryLimits
from streams.worker.replica import Replica

DEPTH = 50  # how far down a ranking is remembered, to be scored when the answer comes
SCORED = 2_000  # answers of a batch that are reported


@dataclass(frozen=True, slots=True)
class Answered:
    """A prediction, ready to be sent."""

    arrival: Arrival
    body: bytes
    question: Question  # its time is a tick: whoever asked for the next one has got it
    prediction: Ranking
    until: int  # the last tick at which its truth may come
    made: float  # when, by time.monotonic

    @property
    def latency(self) -> float:
        """Seconds from the query's arrival at this worker until its prediction was ready to be sent."""
        return self.made - self.arrival.arrived


@dataclass(frozen=True, slots=True)
class Rejected:
    """An event that could not be processed, and why."""

    arrival: Arrival
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Switch:
    """A model event from which on another version answers."""

    event: ModelEvent
    arrival: Arrival

    @property
    def offset(self) -> int:
        """Where it stands."""
        return self.arrival.source.offset


@dataclass
class BatchResult:
    """What came of a batch of one graph: answers and rejections in log order, counts of events by kind, and scores.

    Scored are earlier answers too, as their truths came; when very many come at once the latest are here. `ended` are
    queries to which no truth can come any more, by offset, with whether one had come. Both are here once `keep_score`
    was called.
    """

    graph: str  # empty where the key names none
    version: str | None = None  # of the bundle that answers; None where the graph has none here
    clock: Clock | None = None
    answered: list[Answered] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    scored: Sequence[ScoredAnswer] = ()
    ended: dict[int, bool] = field(default_factory=dict)
    switch: Switch | None = None  # the batch ends before it; what follows is for the version that it names
    swapped: float | None = None  # another version answers from here on: seconds since it was wished for
    wish_met: bool = False  # a worker's own model event stood here: the store may wish for another version since
    moved: Sequence[Arrival] = ()  # to their graph's partition, for they stand in another one
    scoring: Callable[[], tuple[Sequence[ScoredAnswer], dict[int, bool]]] | None = None  # still to be done

    def keep_score(self) -> None:
        """Have answers scored by the facts that follow them: once, in the order of the batches, on any one thread."""
        if self.scoring is not None:
            scoring, self.scoring = self.scoring, None
            self.scored, self.ended = scoring()


class Answering(Protocol):
    """What a batch reads of its graph, and the engine and the score that it moves on."""

    name: str
    bundle: Bundle
    engine: Engine
    replica: Replica
    score: LiveScore
    heuristic: bool
    known_through: int | None
    origins: Origins
    limits: QueryLimits


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that waits for its answer, and until when its truth may come."""

    arrival: Arrival
    question: Question  # its time is a tick
    until: int


class Batch:
    """What is still to be done: facts to observe, then questions to answer as of the watermark.

    Between two moves of the watermark W, queries about W or before do not see the facts of W, so they may wait for
    one another; a query about a later time is answered before the next fact is taken in.
    """

    def __init__(self, graph: Answering, *, silent: bool) -> None:
        """Silent: only the state follows, since others have answered for it."""
        self._graph, self._engine, self._silent = graph, graph.engine, silent
        self._admission = graph.engine.admission(graph.bundle.clock)
        self._facts: list[Fact] = []
        self._asked: list[_Asked] = []
        self._sees_pending = False  # some question looks beyond the watermark: no further fact may go before it
        self._in_order: list[Fact | Tick | _Asked] = []  # of the log, for the score
        self._answered: dict[int, Answered] = {}
        self._rejected: dict[int, Rejected] = {}
        self._counts: Counter[str] = Counter()
        self._wish_met = False

    def add(self, arrival: Arrival) -> Switch | None:
        """The next event of the log; one that is of no use is rejected, and the rest goes on.

        Returned is a model event that another version answers from, which is not taken yet.
        """
        if not self._graph.origins.is_new(arrival.origin):
            self._counts["repeated"] += 1
            return None
        switch = self._add(arrival)
        if switch is None:
            self._graph.origins.take(arrival.origin)
        return switch

    def _add(self, arrival: Arrival) -> Switch | None:
        try:
            event = decode_event(arrival.value, self._graph.bundle.clock)
            if isinstance(event, Question):
                self._add_question(arrival, event)
            elif isinstance(event, Fact):
                self._add_fact(arrival, event)
            elif isinstance(event, Tick):
                self._add_tick(event)
            elif event.replaces(self._graph.bundle.version):
                return Switch(event, arrival)
            else:
                self._counts["model"] += 1
                self._wish_met |= event.after is not None
        except Unusable as problem:
            self._reject(arrival, problem.code, problem.detail)
        return None

    def finish(self, switch: Switch | None = None) -> BatchResult:
        """Do what is left, and say what came of it all; `switch` is where the batch ended early."""
        self._flush()
        return BatchResult(
            self._graph.name,
            self._graph.bundle.version,
            self._graph.bundle.clock,
            [self._answered[offset] for offset in sorted(self._answered)],
            [self._rejected[offset] for offset in sorted(self._rejected)],
            self._counts,
            switch=switch,
            wish_met=self._wish_met,
            scoring=None if self._silent else self._keep_score,
        )

    def _add_fact(self, arrival: Arrival, fact: Fact) -> None:
        """A fact waits for its like, unless a question stands before it that must not see it."""
        if self._graph.known_through is not None and fact.t <= self._graph.known_through:
            self._counts["known"] += 1
            self._graph.score.rhythm.saw(fact)
            return
        if objection := self._admission.object_to_fact(fact):
            self._reject(arrival, *objection)
            return
        if arrival.again in (Reason.UNKNOWN_RELATION, Reason.TOO_MANY_ENTITIES):
            # This bundle knows the relation or has room, so its state took the fact in at its first place in the log.
            self._counts["known"] += 1
            return
        if self._sees_pending or (self._asked and self._admission.moves(fact.t)):
            self._flush()
        self._counts["fact"] += 1
        self._graph.score.rhythm.saw(fact)
        if self._admission.is_late(fact.t):
            self._counts["late"] += 1
        self._facts.append(fact)
        self._in_order.append(fact)
        self._admission.take_fact(fact)

    def _add_tick(self, tick: Tick) -> None:
        """Time passes, unless it has already."""
        if objection := self._admission.object_to_time(tick.t):
            raise Unusable(*objection)
        self._counts["tick"] += 1
        if self._admission.moves(tick.t):
            self._flush()
            self._engine.advance(tick.t)
            self._in_order.append(tick)
            self._admission.take(tick.t)

    def _add_question(self, arrival: Arrival, question: Question) -> None:
        """A question waits for its like until the watermark moves, or until a fact that it must not see."""
        if self._silent or not self._graph.replica.answers(question.id):
            return
        self._graph.limits.require(question)
        self._counts["query"] += 1
        if question.next:
            reached = self._admission.watermark
            following = 0 if reached is None else reached + 1
            question = replace(question, query=replace(question.query, t=following))
        self._sees_pending |= self._admission.moves(question.query.t)
        asked = _Asked(arrival, question, self._graph.score.until(question))
        self._asked.append(asked)
        self._in_order.append(asked)

    def _reject(self, arrival: Arrival, code: str, detail: str) -> None:
        """Of several replicas one says so."""
        if self._graph.replica.leads and not self._silent:
            self._rejected[arrival.source.offset] = Rejected(arrival, code, detail)

    def _flush(self) -> None:
        """Observe the facts, then answer the questions."""
        if self._facts:
            self._engine.observe_admitted(self._facts)
            self._facts = []
        if self._asked:
            queries = [asked.question.query for asked in self._asked]
            answers = self._engine.predict(queries, depth=DEPTH, heuristic=self._graph.heuristic)
            for asked, answer in zip(self._asked, answers, strict=True):
                if isinstance(answer, Ranking):
                    self._answer(asked, answer)
                else:
                    offset = asked.arrival.source.offset
                    self._rejected[offset] = Rejected(asked.arrival, answer.code, answer.reason)
            self._asked, self._sees_pending = [], False

    def _answer(self, asked: _Asked, ranking: Ranking) -> None:
        arrival, question, bundle = asked.arrival, asked.question, self._graph.bundle
        body = encode_prediction(ranking, question, self._graph.name, bundle.version, arrival.source, bundle.clock)
        made = Answered(arrival, body, question, ranking, asked.until, time.monotonic())
        self._answered[arrival.source.offset] = made

    def _keep_score(self) -> tuple[Sequence[ScoredAnswer], dict[int, bool]]:
        """Score answers by the facts that follow them, in the order of the log; which were scored, and which ended."""
        scored: deque[ScoredAnswer] = deque(maxlen=SCORED)
        ended: dict[int, bool] = {}
        score, passed = self._graph.score, -inf
        with score.lock:
            for event in self._in_order:
                if isinstance(event, _Asked):
                    offset = event.arrival.source.offset
                    if (made := self._answered.get(offset)) is not None:
                        score.answered(made.question, made.prediction, made.prediction.deep, offset, made.until)
                else:
                    if event.t > passed:
                        passed = event.t
                        ended |= score.passed(passed)
                    if isinstance(event, Fact):
                        scored += score.happened(event)
        return scored, ended

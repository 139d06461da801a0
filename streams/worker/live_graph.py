"""One graph of the stream: its engine, fed with what the log brings, in the log's order."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from adatkg_core.engine import Engine
from adatkg_core.events import Fact, Ranking, Source, Tick
from adatkg_core.messages import Question, Reason, Unusable, decode_event, encode_prediction
from adatkg_core.model import keeps_counts
from adatkg_core.storage import Bundle, Saved
from adatkg_core.text import TextEncoder
from streams.dead_letters import UNCHANGED
from streams.kafka import Record
from streams.settings import StreamSettings
from streams.worker.live_score import Prequential, ScoredAnswer
from streams.worker.replica import Share

DEPTH = 50  # how far down a ranking is remembered, to be marked when the answer comes
MARKS = 2_000  # of a batch that are told


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event as the log has it."""

    source: Source
    arrived: float  # at this worker, by time.monotonic
    key: bytes | None
    value: bytes | None
    again: str | None = None  # put back unchanged: the reason for which it was refused before


def arrival_of(record: Record) -> Arrival:
    """A record of the log as an event."""
    source = Source(record.partition, record.offset)
    return Arrival(source, time.monotonic(), record.key, record.value, record.header(UNCHANGED))


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


@dataclass
class Outcome:
    """What came of a batch: answers and rejections, each in log order, counts of the rest by kind, marks and ends.

    The marks are of earlier answers too, as their truths came; when very many come at once the latest are here. The
    ends are of queries to which no truth can come any more, by offset, with whether one had come.
    """

    answered: list[Answered] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    scored: Sequence[ScoredAnswer] = ()
    ended: dict[int, bool] = field(default_factory=dict)


class Graph:
    """Applies events to the engine and answers queries, as if one by one, in batches.

    Between two moves of the watermark W, queries about W or before do not see the facts of W, so they may wait for
    one another; a query about a later time is answered before the next fact is taken in.
    """

    def __init__(
        self,
        name: str,
        bundle: Bundle,
        encoder: TextEncoder,
        settings: StreamSettings,
        share: Share,
        saved: Saved | None = None,
    ) -> None:
        """From what was saved, or from nothing."""
        snapshot = saved.snapshot if saved else None
        self.name, self.bundle, self.share = name, bundle, share
        self.engine: Engine = bundle.engine(encoder, late=settings.late, max_jump=settings.max_jump, snapshot=snapshot)
        self.known_through = saved.known_through if saved else None
        self.score = Prequential(horizon=settings.horizon)
        self.heuristic = settings.heuristic and keeps_counts(self.engine.state)

    @property
    def version(self) -> str:
        """The bundle that answers."""
        return self.bundle.version

    def capture(self, offset: int, log: str) -> Saved:
        """A copy of everything, as of before the event at `offset` of this stretch of log."""
        return Saved(self.engine.snapshot(), self.name, self.version, offset, self.known_through, log)

    def apply(self, arrivals: Sequence[Arrival], *, silent: bool = False) -> Outcome:
        """Take in events in log order. Silent: only the state follows, since others have answered for it."""
        batch = _Batch(self, silent)
        for arrival in arrivals:
            try:
                event = decode_event(arrival.value, self.bundle.clock)
                if isinstance(event, Question):
                    batch.question(arrival, event)
                elif isinstance(event, Fact):
                    batch.fact(arrival, event)
                else:
                    batch.tick(event)
            except Unusable as problem:
                batch.reject(arrival, problem.code, problem.detail)
        batch.flush()
        return batch.outcome()


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that waits for its answer, and until when its truth may come."""

    arrival: Arrival
    question: Question  # its time is a tick
    until: int


class _Batch:
    """What of a batch is still to be done: facts to observe, then questions to answer as of the watermark."""

    def __init__(self, graph: Graph, silent: bool) -> None:
        self._graph, self._engine, self._silent = graph, graph.engine, silent
        self._admission = graph.engine.admission(graph.bundle.clock)
        self._facts: list[Fact] = []
        self._asked: list[_Asked] = []
        self._sees_pending = False  # some question looks beyond the watermark: no further fact may go before it
        self._told: list[Fact | Tick | _Asked] = []  # in log order, for the score
        self._answered: dict[int, Answered] = {}
        self._rejected: dict[int, Rejected] = {}
        self._counts: Counter[str] = Counter()
        self._marks: deque[ScoredAnswer] = deque(maxlen=MARKS)
        self._ended: dict[int, bool] = {}

    def fact(self, arrival: Arrival, fact: Fact) -> None:
        """A fact waits for its like, unless a question stands before it that must not see it."""
        if self._graph.known_through is not None and fact.t <= self._graph.known_through:
            self._counts["known"] += 1
            self._graph.score.rhythm.saw(fact)
            return
        if objection := self._admission.object_to_fact(fact):
            self.reject(arrival, *objection)
            return
        if arrival.again == Reason.UNKNOWN_RELATION:
            # The bundle knows the relation, so its state took the fact in at its first place in the log.
            self._counts["known"] += 1
            return
        if self._sees_pending or (self._asked and self._admission.moves(fact.t)):
            self.flush()
        self._counts["fact"] += 1
        self._graph.score.rhythm.saw(fact)
        self._counts["late"] += self._admission.is_late(fact.t)
        self._facts.append(fact)
        self._told.append(fact)
        self._admission.take(fact.t)

    def tick(self, tick: Tick) -> None:
        """Time passes, unless it has already."""
        if objection := self._admission.object_to_time(tick.t):
            raise Unusable(*objection)
        self._counts["tick"] += 1
        if self._admission.moves(tick.t):
            self.flush()
            self._engine.advance(tick.t)
            self._told.append(tick)
            self._admission.take(tick.t)

    def question(self, arrival: Arrival, question: Question) -> None:
        """A question waits for its like until the watermark moves, or until a fact that it must not see."""
        if self._silent or not self._graph.share.answers(question.id):
            return
        self._counts["query"] += 1
        if question.next:
            reached = self._admission.watermark
            following = 0 if reached is None else reached + 1
            question = replace(question, query=replace(question.query, t=following))
        self._sees_pending |= self._admission.moves(question.query.t)
        asked = _Asked(arrival, question, self._graph.score.until(question))
        self._asked.append(asked)
        self._told.append(asked)

    def reject(self, arrival: Arrival, code: str, detail: str) -> None:
        """The event is of no use; the rest goes on. Of several replicas one says so."""
        if self._graph.share.leads and not self._silent:
            self._refuse(arrival, code, detail)

    def flush(self) -> None:
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
                    self._refuse(asked.arrival, answer.code, answer.reason)
            self._asked, self._sees_pending = [], False

    def outcome(self) -> Outcome:
        """What came of it, in log order."""
        if not self._silent:
            self._keep_score()
        answered = [self._answered[offset] for offset in sorted(self._answered)]
        rejected = [self._rejected[offset] for offset in sorted(self._rejected)]
        return Outcome(answered, rejected, self._counts, self._marks, self._ended)

    def _keep_score(self) -> None:
        """Mark answers by the facts that follow them, in the order of the log."""
        score = self._graph.score
        for told in self._told:
            if isinstance(told, _Asked):
                offset = told.arrival.source.offset
                if (made := self._answered.get(offset)) is not None:
                    score.answered(made.question, made.prediction, made.prediction.deep, offset, made.until)
            else:
                self._ended |= score.passed(told.t)
                if isinstance(told, Fact):
                    self._marks += score.happened(told)

    def _answer(self, asked: _Asked, prediction: Ranking) -> None:
        arrival, question, graph = asked.arrival, asked.question, self._graph
        body = encode_prediction(prediction, question, graph.name, graph.version, arrival.source, graph.bundle.clock)
        made = Answered(arrival, body, question, prediction, asked.until, time.monotonic())
        self._answered[arrival.source.offset] = made

    def _refuse(self, arrival: Arrival, code: str, detail: str) -> None:
        self._rejected[arrival.source.offset] = Rejected(arrival, code, detail)

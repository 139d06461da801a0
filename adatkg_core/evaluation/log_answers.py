"""What a log says by itself: every query answered offline, by the version that the log names where the query stands.

Written for checks, so the plain way: event by event, and each version takes the log in from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from adatkg_core.constants import MAX_JUMP, LatePolicy
from adatkg_core.errors import InputError
from adatkg_core.events import Fact, ModelEvent, Ranking, Source, Tick
from adatkg_core.messages import (
    Prediction,
    Question,
    Reason,
    Unusable,
    decode_event,
    decode_prediction,
    encode_prediction,
)
from adatkg_core.storage import Bundle, ModelStore, named_bundle

AT_ONCE = 512  # questions


class LoggedEvent(NamedTuple):
    """An event of one graph and where it stands; `again` is why it was refused before it was put back unchanged.

    `origin` is where it stood before a worker moved it to this partition.
    """

    source: Source
    value: bytes | None
    again: str | None = None
    origin: Source | None = None


def answer_log(
    store: ModelStore,
    graph: str,
    events: Iterable[LoggedEvent],
    *,
    late: LatePolicy = "apply",
    max_jump: int = MAX_JUMP,
) -> Iterator[Prediction]:
    """The predictions that a worker makes of a graph's log, which is given whole and in order.

    What a worker dead-letters is passed over, but for queries that ask for more than its settings allow. `late` and
    `max_jump` are those of the worker.
    """
    first = store.first(graph)
    if first is None:
        raise InputError(f"{store.url}: graph {graph} has no model; train one with --models and --graph")
    present = _OfOneVersion(store, graph, store.bundle(graph, first), late, max_jump)
    past: list[LoggedEvent] = []
    questions: list[tuple[Source, Question]] = []  # whose answers are the same here as where they stand
    moved: dict[int, int] = {}  # by the partition in which they stood: the last event that was moved here
    for one in events:
        if one.origin is not None:
            if one.origin.offset <= moved.get(one.origin.partition, -1):
                continue  # moved again
            moved[one.origin.partition] = one.origin.offset
        event = present.decode(one)
        if isinstance(event, Question):
            questions.append((one.source, present.timed(event)))
            continue
        if len(questions) >= AT_ONCE or not present.leaves_alone(event, questions):
            yield from present.answer(questions)
            questions = []
        if isinstance(event, ModelEvent) and event.replaces(present.bundle.version):
            try:
                bundle = named_bundle(store, graph, event.version, present.bundle)
            except Unusable:
                continue
            present = _OfOneVersion(store, graph, bundle, late, max_jump)
            for earlier in past:
                present.take(earlier)
        else:
            present.take(one)
            past.append(one)
    yield from present.answer(questions)


class _OfOneVersion:
    """An engine with one bundle, fed from the beginning of a log."""

    def __init__(self, store: ModelStore, graph: str, bundle: Bundle, late: LatePolicy, max_jump: int) -> None:
        saved = store.state(graph, bundle.version)
        from_files = saved if saved is not None and not saved.log else None
        snapshot = None if from_files is None else from_files.snapshot
        self.bundle, self._graph = bundle, graph
        self._engine = bundle.engine(late=late, max_jump=max_jump, snapshot=snapshot)
        self._known_through = None if from_files is None else from_files.known_through

    def decode(self, one: LoggedEvent) -> Fact | Tick | ModelEvent | Question | None:
        """The event, by this version's clock; None for what cannot be read."""
        try:
            return decode_event(one.value, self.bundle.clock)
        except Unusable:
            return None

    def take(self, one: LoggedEvent) -> None:
        """Take in a fact or the passing of time."""
        event, engine = self.decode(one), self._engine
        if isinstance(event, Fact):
            known = self._known_through is not None and event.t <= self._known_through
            if not known and one.again != Reason.UNKNOWN_RELATION:  # that one was taken in at its first place
                engine.observe([event])
        elif isinstance(event, Tick) and engine.admission().object_to_time(event.t) is None:
            engine.advance(event.t)

    def leaves_alone(
        self, event: Fact | Tick | ModelEvent | None, questions: Sequence[tuple[Source, Question]]
    ) -> bool:
        """Whether questions may be answered behind this event too: only later reads see a fact of the watermark."""
        reached = self._engine.watermark
        if event is None or not questions:
            return True
        if not isinstance(event, Fact) or reached is None:
            return False
        return event.t <= reached and all(question.query.t <= reached for _, question in questions)

    def answer(self, questions: Sequence[tuple[Source, Question]]) -> Iterator[Prediction]:
        """The answers as of here."""
        answers = self._engine.predict([question.query for _, question in questions])
        for (source, question), answer in zip(questions, answers, strict=True):
            if isinstance(answer, Ranking):
                version, clock = self.bundle.version, self.bundle.clock
                yield decode_prediction(encode_prediction(answer, question, self._graph, version, source, clock))

    def timed(self, question: Question) -> Question:
        """The question, about the tick that it means here."""
        if not question.next:
            return question
        following = 0 if self._engine.watermark is None else self._engine.watermark + 1
        return replace(question, query=replace(question.query, t=following))

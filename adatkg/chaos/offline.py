"""What the engine says to a log, event by event, without Kafka, batches, restarts or swaps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from adatkg_core.engine import Engine, Snapshot
from adatkg_core.events import Fact, Query, Ranking, Refusal
from adatkg_core.storage import Bundle, Saved

ALL = 10_000  # candidates: more than the graphs here have, so that every score is known


@dataclass(frozen=True)
class Event:
    """An event of one graph in the log; without a body it is nothing that can be used."""

    offset: int
    body: dict[str, Any] | None
    timestamp: float = 0.0  # seconds, by the broker's clock

    @property
    def kind(self) -> str:
        """Of event; garbage where it has no body."""
        return "garbage" if self.body is None else str(self.body["kind"])


@dataclass(frozen=True)
class Followed:
    """What came of a log: answers to the queries asked for, what was refused, and the state at the end."""

    answers: dict[int, Ranking]  # by offset
    refused: set[int]  # offsets
    snapshot: Snapshot


def follow(bundle: Bundle, start: Saved | None, events: Sequence[Event], asked: Collection[int], end: int) -> Followed:
    """Take in the events below the offset `end`, from the state that came with the bundle or from nothing, and answer
    the queries at the offsets `asked`."""
    return _Follower(bundle, start, asked).run([event for event in events if event.offset < end])


class _Follower:
    def __init__(self, bundle: Bundle, start: Saved | None, asked: Collection[int]) -> None:
        self._engine: Engine = bundle.engine(snapshot=start.snapshot if start else None)
        self._from = start.offset if start else 0
        self._known_through = start.known_through if start else None
        self._asked = asked
        self._facts: list[tuple[int, Fact]] = []
        self._queries: list[tuple[int, Query]] = []
        self._answers: dict[int, Ranking] = {}
        self._refused: set[int] = set()

    def run(self, events: Sequence[Event]) -> Followed:
        for event in events:
            if event.offset < self._from or event.body is None:
                continue
            if event.kind == "query":
                if event.offset in self._asked:
                    self._observe()
                    self._queries.append((event.offset, self._query(event.body)))
                continue
            self._answer()
            if event.kind == "fact":
                self._fact(event.offset, event.body)
            elif event.kind == "tick":
                self._observe()
                self._tick(event.offset, event.body["t"])
        self._answer()
        self._observe()
        return Followed(self._answers, self._refused, self._engine.snapshot())

    def _fact(self, offset: int, body: dict[str, Any]) -> None:
        if self._known_through is None or body["t"] > self._known_through:
            self._facts.append((offset, Fact(body["s"], body["r"], body["o"], body["t"])))

    def _tick(self, offset: int, t: int) -> None:
        if self._engine.admission().object_to_time(t):
            self._refused.add(offset)
        else:
            self._engine.advance(t)

    def _query(self, body: dict[str, Any]) -> Query:
        t, reached = body["t"], self._engine.watermark
        if t == "next":
            t = 0 if reached is None else reached + 1
        rank_of = tuple(dict.fromkeys(body.get("rank_of", ())))
        exclude = tuple(body.get("exclude", ()))
        return Query(body["r"], t, s=body.get("s"), o=body.get("o"), k=ALL, rank_of=rank_of, exclude=exclude)

    def _observe(self) -> None:
        """Facts are taken in before whatever follows them is looked at."""
        if self._facts:
            observed = self._engine.observe([fact for _, fact in self._facts])
            self._refused |= {self._facts[one.index][0] for one in observed.refused}
            self._facts = []

    def _answer(self) -> None:
        """Questions with nothing but questions between them see the same state."""
        if not self._queries:
            return
        answers = self._engine.predict([query for _, query in self._queries])
        for (offset, _), answer in zip(self._queries, answers, strict=True):
            if isinstance(answer, Refusal):
                self._refused.add(offset)
            else:
                self._answers[offset] = answer
        self._queries = []

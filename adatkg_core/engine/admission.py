"""What of a log is taken in: known relations, entities while there is room, times in reach, lateness by policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adatkg_core.clock import Clock, readable
from adatkg_core.constants import LAST_TIME, LatePolicy
from adatkg_core.events import Fact, Query, Refusal
from adatkg_core.messages import Reason
from adatkg_core.state import Catalog, Relations

Objection = tuple[Reason, str]  # and a sentence


@dataclass(frozen=True)
class Observed:
    """What became of the facts given: how many were taken in, how many of these late, and which were refused."""

    applied: int
    late: int
    refused: tuple[Refusal, ...]


class EntityLimit:
    """How many entities a graph may have: a name beyond that is refused, those that are there stay.

    A name counts from the moment it is let in, so it does not matter when the catalog gets a row for it.
    """

    def __init__(self, catalog: Catalog, most: int) -> None:
        self._catalog, self.most = catalog, most
        self._fresh: set[str] = set()  # let in; some of them may have got their rows since

    def object_to(self, fact: Fact) -> Objection | None:
        """Why a fact's names cannot be taken in; None when they can."""
        fresh = {name for name in (fact.s, fact.o) if name not in self._catalog and name not in self._fresh}
        if not fresh or self._has_room(len(fresh)):
            return None
        names = " and ".join(sorted(map(repr, fresh)))
        return Reason.TOO_MANY_ENTITIES, f"{names} would be new, but the graph may have {self.most} entities at most"

    def take(self, fact: Fact) -> None:
        """The names of a fact are in."""
        for name in (fact.s, fact.o):
            if name not in self._catalog:
                self._fresh.add(name)

    def _has_room(self, count: int) -> bool:
        if len(self._catalog) + len(self._fresh) + count > self.most:
            self._fresh = {name for name in self._fresh if name not in self._catalog}
        return len(self._catalog) + len(self._fresh) + count <= self.most


@dataclass
class Admission:
    """Decides about the events of a log one after the other; each that is taken moves the watermark for the next.

    Without `relations` every relation will do, and without `entities` any number of them. A clock gives the times in
    the sentences.
    """

    watermark: int | None
    late: LatePolicy
    max_jump: int
    relations: Relations | None = None
    clock: Clock | None = None
    entities: EntityLimit | None = None

    def object_to_fact(self, fact: Fact) -> Objection | None:
        """Why a fact cannot be taken in now; None when it can."""
        if self.relations is not None and fact.r not in self.relations:
            return object_to_relation(fact.r, self.relations)
        objection = self.object_to_time(fact.t)
        if objection is None and self.late == "refuse" and self.is_late(fact.t):
            when, reached = readable(self.clock, fact.t), self._reached()
            return Reason.LATE, f"late: time {when} is before the watermark {reached}"
        if objection is None and self.entities is not None:
            return self.entities.object_to(fact)
        return objection

    def object_to_time(self, time: int) -> Objection | None:
        """Why the watermark cannot move to this time; one wrong date must not make all that follows late."""
        if objection := object_to_tick(time):
            return objection
        if self.watermark is not None and time - self.watermark > self.max_jump:
            when, reached = readable(self.clock, time), self._reached()
            return Reason.FAR_FUTURE, f"time {when} is more than {self.max_jump} ticks ahead of {reached}"
        return None

    def is_late(self, time: int) -> bool:
        """Whether this time is before the watermark."""
        return self.watermark is not None and time < self.watermark

    def moves(self, time: int) -> bool:
        """Whether an event of this time would move the watermark."""
        return self.watermark is None or time > self.watermark

    def take(self, time: int) -> int:
        """An event of this time is taken; returns the time as of which it counts, the watermark's when it is late."""
        self.watermark = time if self.watermark is None else max(self.watermark, time)
        return self.watermark

    def take_fact(self, fact: Fact) -> int:
        """A fact is taken, with its names; returns the time as of which it counts."""
        if self.entities is not None:
            self.entities.take(fact)
        return self.take(fact.t)

    def sort_out(self, facts: Sequence[Fact]) -> tuple[list[Fact], Observed]:
        """Those of the facts, in log order, that are taken, and what is to be said of all of them."""
        admitted, late, refused = [], 0, []
        for i, fact in enumerate(facts):
            if objection := self.object_to_fact(fact):
                refused.append(Refusal(i, *objection))
                continue
            late += self.is_late(fact.t)
            self.take_fact(fact)
            admitted.append(fact)
        return admitted, Observed(len(admitted), late, tuple(refused))

    def _reached(self) -> str:
        assert self.watermark is not None
        return readable(self.clock, self.watermark)


def object_to_relation(name: str, relations: Relations) -> Objection:
    """What is said of a relation that is not among the known ones."""
    near = " or ".join(map(repr, relations.nearest(name)))
    hint = f"; did you mean {near}?" if near else ""
    return Reason.UNKNOWN_RELATION, f"unknown relation {name!r}: the present model does not know it{hint}"


def object_to_tick(time: int) -> Objection | None:
    """Why this number cannot be a time at all."""
    if abs(time) > LAST_TIME:
        return Reason.BAD_TIME, f"time {time} is out of range: a tick has 32 bits"
    return None


def object_to_query(query: Query, relations: Relations) -> Objection | None:
    """Why a query cannot be answered; None when it can."""
    if query.r not in relations:
        return object_to_relation(query.r, relations)
    if (query.s is None) == (query.o is None):
        return Reason.BAD_VALUE, "a query gives exactly one of s and o"
    if query.k < 0:
        return Reason.BAD_VALUE, f"k is {query.k}: ask for at least 0 candidates"
    return object_to_tick(query.t)

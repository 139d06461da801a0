"""What goes into the engine and what comes out, by name. Times are whole ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct


class Fact(Struct, frozen=True, gc=False):  # made by the thousand for each batch: five times as fast as a dataclass
    """Something that happened: subject, relation, object, time."""

    s: str
    r: str
    o: str
    t: int


@dataclass(frozen=True, slots=True)
class Query:
    """Whom will `s` `r` at `t`? With `s` missing and `o` given, who will `r` `o`?"""

    r: str
    t: int
    s: str | None = None
    o: str | None = None
    k: int = 10
    rank_of: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class Answer(Struct, frozen=True, gc=False):  # made by the ten thousand for each batch
    """One candidate of a ranked list."""

    entity: str
    score: float
    probability: float


class Recurrent(Struct, frozen=True):
    """What the recurrency heuristic says to the same query, read from the same state.

    `names` are its best candidates; `levels` numbers their scores, since those that tie have no order among them.
    """

    names: Sequence[str]
    levels: bytes
    ranks: dict[str, float]


class Ranking(Struct, frozen=True):
    """The ranked answers to a query and what they rest on."""

    top: tuple[Answer, ...]
    as_of: int
    late: bool
    cold_start: bool
    gate: float
    interactions: int
    ranks: dict[str, float] = {}
    memory_norm: float = 0.0  # length of what is remembered of the entity asked about
    deep: Sequence[str] = ()  # the names in `top` and those that follow, as far as was asked for
    recurrent: Recurrent | None = None  # only where it was asked for and the state keeps the counts


@dataclass(frozen=True, slots=True)
class Refusal:
    """An event that cannot be processed: its place in the batch, why in one word, and why in a sentence."""

    index: int
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passes."""

    t: int


@dataclass(frozen=True, slots=True)
class ModelEvent:
    """From here on this version answers; with `after` only if that one has answered up to here."""

    version: str
    after: str | None = None

    def replaces(self, present: str) -> bool:
        """Whether another version than the present one answers behind this event."""
        return self.version != present and self.after in (None, present)


@dataclass(frozen=True)
class Source:
    """Where in the log an event stands."""

    partition: int
    offset: int

    @property
    def id(self) -> str:
        """How a prediction made from this event is called, however often it is made."""
        return f"{self.partition}-{self.offset}"

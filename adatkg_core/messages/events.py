"""Events of the stream: each kind is declared once, and what checks it and its JSON Schema follow from that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import orjson
from msgspec import Meta, Struct

from adatkg_core.clock import Clock
from adatkg_core.constants import LAST_TIME
from adatkg_core.events import Fact, ModelEvent, Query, Tick
from adatkg_core.messages.explanation import explain_event, parse_object
from adatkg_core.messages.fields import (
    VERSION,
    IsoTime,
    Name,
    TickNumber,
    Version,
    are_plainly_names,
    require_graph,
    require_name,
    shown,
)
from adatkg_core.messages.reasons import Reason, Unusable

MAX_BYTES = 1 << 20  # of an event; one larger is no fact and no question
MAX_EXCLUDED = 100_000  # names in exclude
MAX_RANKED = 1_000  # names in rank_of: each is ranked against all candidates
MAX_K = 10_000
DEFAULT_K = 10
NEXT = "next"  # as a query's time: the one after the watermark


# -- what an event is -----------------------------------------------------------------------------------------


# A field that is not declared does no harm, but the decoder would not look at its bytes: such an event is read again,
# slowly and to its last byte.
class _Message(Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    v: Version


class FactMessage(_Message, frozen=True, tag="fact", gc=False):
    """Something that happened: subject, relation, object, time."""

    s: Annotated[Name, Meta(description="who acts")]
    r: Annotated[Name, Meta(description="what is done; a relation that the model knows")]
    o: Annotated[Name, Meta(description="to whom")]
    t: Annotated[
        TickNumber | IsoTime, Meta(description="when: a tick, or an ISO time, which is floored to the graph's tick")
    ]


class QueryMessage(_Message, frozen=True, tag="query", kw_only=True):
    """Whom will s r at t? Or, with o in place of s: who will r o?"""

    id: Annotated[Name, Meta(description="how the asker calls it; the prediction repeats it")]
    s: Annotated[Name | None, Meta(description="who acts; left out when that is asked for")] = None
    r: Annotated[Name, Meta(description="what is done")]
    o: Annotated[Name | None, Meta(description="to whom; left out when that is asked for")] = None
    t: Annotated[
        TickNumber | IsoTime,
        Meta(description="about when: a tick, an ISO time, or `next`, the tick after the watermark"),
    ]
    k: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_K, extra_json_schema={"default": DEFAULT_K})] | None,
        Meta(description="how many answers"),
    ] = None
    rank_of: Annotated[
        Annotated[list[Name], Meta(max_length=MAX_RANKED)] | None,
        Meta(description="entities whose exact ranks are wanted; it does not touch the scores"),
    ] = None
    exclude: Annotated[
        Annotated[list[Name], Meta(max_length=MAX_EXCLUDED)] | None,
        Meta(description="entities that are left out of answers and ranks: other answers known to be true"),
    ] = None


class TickMessage(_Message, frozen=True, tag="tick", gc=False):
    """Time passes, even where nothing happens."""

    t: Annotated[TickNumber | IsoTime, Meta(description="the time that has come")]


class ModelMessage(_Message, frozen=True, tag="model", gc=False):
    """From here on this version answers."""

    version: Annotated[Name, Meta(description="of the bundle in the model store")]
    after: Annotated[
        Name | None,
        Meta(description="the version before it: if another has answered up to here, nothing changes"),
    ] = None


EventMessage = FactMessage | QueryMessage | TickMessage | ModelMessage
EVENTS: dict[str, type[EventMessage]] = {
    "fact": FactMessage,
    "query": QueryMessage,
    "tick": TickMessage,
    "model": ModelMessage,
}


@dataclass(frozen=True, slots=True)
class Question:
    """A query from the stream: how it calls itself, and its fields as they were asked."""

    id: str
    query: Query
    asked: dict[str, Any]
    next: bool  # the query's time is whatever follows the watermark


Event = Fact | Tick | ModelEvent | Question

# -- from bytes -----------------------------------------------------------------------------------------------

_decode = msgspec.json.Decoder(EventMessage).decode
_ASKED = tuple(key for key in QueryMessage.__struct_fields__ if key != "v")  # what a prediction repeats


def decode_event(data: bytes | None, clock: Clock | None) -> Event:
    """The event that these bytes are; ISO times become ticks of the graph's clock. Raises Unusable."""
    if not data:
        raise Unusable(Reason.NOT_JSON, "the message is empty: send a JSON object")
    if len(data) > MAX_BYTES:
        raise Unusable(Reason.TOO_LARGE, f"the message has {len(data)} bytes: an event has at most {MAX_BYTES}")
    try:
        message = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        message = _decode_slowly(data)
    if type(message) is FactMessage:
        s, r, o, t = message.s, message.r, message.o, message.t
        # Written out, since most events are facts.
        if not (s + r + o).isprintable() or s.isspace() or r.isspace() or o.isspace():
            for key, name in (("s", s), ("r", r), ("o", o)):
                require_name(key, name)
        return Fact(s, r, o, t if type(t) is int else _tick(t, clock))
    if type(message) is TickMessage:
        return Tick(_tick(message.t, clock))
    if type(message) is ModelMessage:
        require_name("version", message.version)
        if message.after is not None:
            require_name("after", message.after)
        return ModelEvent(message.version, message.after)
    return _question(message, clock)


def check_event(data: bytes | None) -> None:
    """Raises Unusable for what no graph could use; which tick an ISO time is, is left to the graph's clock."""
    decode_event(data, Clock())


def decode_graph(key: bytes | None) -> str:
    """The graph that a message's key names. Raises Unusable."""
    if not key:
        raise Unusable(Reason.NO_GRAPH, "the message has no key: its key names the graph")
    try:
        return require_graph("the key", key.decode())
    except UnicodeDecodeError as error:
        raise Unusable(Reason.NO_GRAPH, "the key is not UTF-8: it names the graph") from error
    except Unusable as problem:
        raise Unusable(Reason.NO_GRAPH, problem.detail) from problem


def _decode_slowly(data: bytes) -> EventMessage:
    """The event that the decoder has refused; most often the explanation of what is wrong with it."""
    values = parse_object(data)
    fields = explain_event(values, EVENTS)
    return EVENTS[values["kind"]](**fields)


def _question(message: QueryMessage, clock: Clock | None) -> Question:
    asked = {key: value for key in _ASKED if (value := getattr(message, key)) is not None}
    rank_of, exclude = message.rank_of or (), message.exclude or ()
    given = [name for name in (message.id, message.s, message.r, message.o) if name is not None]
    if not are_plainly_names([*given, *rank_of, *exclude]):
        explain_event({**asked, "v": VERSION, "kind": "query"}, EVENTS)
    if (message.s is None) == (message.o is None):
        code = Reason.MISSING_FIELD if message.s is None else Reason.BAD_VALUE
        raise Unusable(code, "a query gives exactly one of s and o: the other is what it asks for")
    follows = message.t == NEXT
    query = Query(
        r=message.r,
        t=0 if follows else _tick(message.t, clock),
        s=message.s,
        o=message.o,
        k=DEFAULT_K if message.k is None else message.k,
        rank_of=tuple(dict.fromkeys(rank_of)),
        exclude=tuple(exclude),
    )
    return Question(message.id, query, asked, follows)


def _tick(time: int | str, clock: Clock | None) -> int:
    if isinstance(time, int):
        return time
    if clock is None:
        raise Unusable(Reason.BAD_TIME, f"t is {shown(time)}, but this graph has no calendar: send whole ticks")
    try:
        tick = clock.tick(time)
    except ValueError as error:
        raise Unusable(Reason.BAD_TIME, f"t is {shown(time)}: neither a whole tick nor an ISO time") from error
    if abs(tick) > LAST_TIME:
        raise Unusable(Reason.BAD_TIME, f"t is {shown(time)}: tick {tick} does not fit into 32 bits")
    return tick


# -- to bytes -------------------------------------------------------------------------------------------------


def encode_fact(s: str, r: str, o: str, t: int | str) -> bytes:
    """A fact as bytes."""
    return orjson.dumps({"v": VERSION, "kind": "fact", "s": s, "r": r, "o": o, "t": t})


def encode_tick(t: int | str) -> bytes:
    """The passing of time as bytes."""
    return orjson.dumps({"v": VERSION, "kind": "tick", "t": t})


def encode_model(version: str, after: str | None = None) -> bytes:
    """The change to another version as bytes; with `after` only from that one."""
    message = {"v": VERSION, "kind": "model", "version": version}
    return orjson.dumps(message if after is None else message | {"after": after})


def encode_query(
    id: str,
    r: str,
    t: int | str,
    *,
    s: str | None = None,
    o: str | None = None,
    k: int = DEFAULT_K,
    rank_of: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> bytes:
    """A query as bytes; the side that is asked for stays out, `t` may be NEXT."""
    message: dict[str, Any] = {"v": VERSION, "kind": "query", "id": id}
    if s is not None:
        message["s"] = s
    message["r"] = r
    if o is not None:
        message["o"] = o
    message |= {"t": t, "k": k}
    if rank_of:
        message["rank_of"] = rank_of
    if exclude:
        message["exclude"] = exclude
    return orjson.dumps(message)

"""The messages of the stream: the one place that turns events and predictions into bytes and back.

Each kind of message is a table of fields. The table both checks what arrives and becomes the JSON Schema that
consumers in other languages read, so the two cannot drift apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from adatkg_core.clock import Clock, iso_of
from adatkg_core.constants import LAST_TIME
from adatkg_core.events import Fact, Query, Ranking, Source, Tick
from adatkg_core.messages.shapes import mismatch

VERSION = 1
MAX_BYTES = 1 << 20  # of an event; one larger is no fact and no question
MAX_NAME = 1_000  # characters
MAX_EXCLUDED = 100_000  # names in exclude
MAX_RANKED = 1_000  # names in rank_of: each is ranked against all candidates
MAX_K = 10_000
NEXT = "next"  # as a query's time: the one after the watermark

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Unusable(Exception):
    """A message that cannot be processed: a code that can be counted and a sentence that can be acted on."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail


@dataclass(frozen=True, slots=True)
class Question:
    """A query from the stream: how it calls itself, and its fields as they were asked."""

    id: str
    query: Query
    asked: dict[str, Any]
    next: bool  # the query's time is whatever follows the watermark


Event = Fact | Tick | Question


# -- fields ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """What a field may hold: `check` returns the value or raises Unusable, `schema` says the same in JSON Schema."""

    schema: dict[str, Any]
    check: Callable[[str, Any], Any]
    required: bool = True


def _name(key: str, value: Any) -> str:
    if type(value) is not str:
        raise Unusable("wrong-type", f"{key} is {_shown(value)}: it must be a string")
    if not value.strip():
        raise Unusable("bad-name", f"{key} is empty: give a name")
    if len(value) > MAX_NAME:
        raise Unusable("bad-name", f"{key} has {len(value)} characters: at most {MAX_NAME}")
    if _CONTROL.search(value):
        raise Unusable("bad-name", f"{key} is {_shown(value)}: it holds control characters")
    return value


def _names(most: int) -> Field:
    def check(key: str, value: Any) -> list[str]:
        if type(value) is not list:
            raise Unusable("wrong-type", f"{key} is {_shown(value)}: it must be a list of names")
        if len(value) > most:
            raise Unusable("bad-value", f"{key} has {len(value)} names: at most {most}")
        return [_name(key, item) for item in value]

    return Field({"type": "array", "items": _NAME_SCHEMA, "maxItems": most}, check, required=False)


def _time(key: str, value: Any) -> int | str:
    if type(value) is int:
        if abs(value) > LAST_TIME:
            raise Unusable("bad-time", f"{key} is {value}: a tick has 32 bits")
        return value
    if type(value) is not str:
        raise Unusable("wrong-type", f"{key} is {_shown(value)}: it must be a whole tick or an ISO time")
    return value


def _count(key: str, value: Any) -> int:
    if type(value) is not int:
        raise Unusable("wrong-type", f"{key} is {_shown(value)}: it must be a whole number")
    if not 0 <= value <= MAX_K:
        raise Unusable("bad-value", f"{key} is {value}: it must be from 0 to {MAX_K}")
    return value


# Two patterns without anchors, because `$` means different things in different languages. The characters that count as
# blank are spelled out for the same reason.
_NAME_SCHEMA = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_NAME,
    "pattern": r"[^ \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]",
    "not": {"pattern": r"[\u0000-\u001f\u007f-\u009f]"},
}
_TICK_SCHEMA = {"type": "integer", "minimum": -LAST_TIME, "maximum": LAST_TIME}
_ISO_SCHEMA = {"type": "string", "description": "an ISO 8601 time, floored to the graph's tick"}
NAME = Field(_NAME_SCHEMA, _name)
TIME = Field({"anyOf": [_TICK_SCHEMA, _ISO_SCHEMA]}, _time)
QUERY_TIME = Field({"anyOf": [_TICK_SCHEMA, _ISO_SCHEMA, {"const": NEXT}]}, _time)
COUNT = Field({"type": "integer", "minimum": 0, "maximum": MAX_K, "default": 10}, _count, required=False)
SOME_NAME = Field(_NAME_SCHEMA, _name, required=False)

EVENTS: dict[str, dict[str, Field]] = {
    "fact": {"s": NAME, "r": NAME, "o": NAME, "t": TIME},
    "query": {
        "id": NAME,
        "s": SOME_NAME,
        "r": NAME,
        "o": SOME_NAME,
        "t": QUERY_TIME,
        "k": COUNT,
        "rank_of": _names(MAX_RANKED),
        "exclude": _names(MAX_EXCLUDED),
    },
    "tick": {"t": TIME},
}

# -- events ---------------------------------------------------------------------------------------------------


def decode_event(data: bytes | None, clock: Clock | None) -> Event:
    """The event that these bytes are; ISO times become ticks of the graph's clock. Raises Unusable."""
    if not data:
        raise Unusable("not-json", "the message is empty: send a JSON object")
    if len(data) > MAX_BYTES:
        raise Unusable("too-large", f"the message has {len(data)} bytes: an event has at most {MAX_BYTES}")
    values = _parsed(data)
    version = values.get("v")
    if version != VERSION or type(version) is not int:
        if "v" not in values:
            raise Unusable("missing-field", f"v is missing: this is version {VERSION} of the messages")
        raise Unusable("unknown-version", f"v is {_shown(version)}: this program reads version {VERSION}")
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in EVENTS:
        code = "missing-field" if "kind" not in values else "unknown-kind"
        raise Unusable(code, f"kind is {_shown(kind)}: it must be {', '.join(EVENTS)}")
    found: dict[str, Any] = {}
    for key, field in EVENTS[kind].items():
        value = values.get(key)
        if value is not None:
            found[key] = field.check(key, value)
        elif field.required:
            raise Unusable("missing-field", f"{key} is missing: a {kind} has {_listed(kind)}")
    if kind == "fact":
        return Fact(found["s"], found["r"], found["o"], _tick(found["t"], clock))
    if kind == "tick":
        return Tick(_tick(found["t"], clock))
    return _question(found, clock)


def decode_graph(key: bytes | None) -> str:
    """The graph that a message's key names. Raises Unusable."""
    if not key:
        raise Unusable("no-graph", "the message has no key: its key names the graph")
    try:
        return _name("the key", key.decode())
    except UnicodeDecodeError as error:
        raise Unusable("no-graph", "the key is not UTF-8: it names the graph") from error
    except Unusable as problem:
        raise Unusable("no-graph", problem.detail) from problem


def check_event(data: bytes | None) -> None:
    """Raises Unusable for what no graph could use; which tick an ISO time is, is left to the graph's clock."""
    decode_event(data, Clock())


def encode_fact(s: str, r: str, o: str, t: int | str) -> bytes:
    """A fact as bytes."""
    return orjson.dumps({"v": VERSION, "kind": "fact", "s": s, "r": r, "o": o, "t": t})


def encode_tick(t: int | str) -> bytes:
    """The passing of time as bytes."""
    return orjson.dumps({"v": VERSION, "kind": "tick", "t": t})


def encode_query(
    id: str,
    r: str,
    t: int | str,
    *,
    s: str | None = None,
    o: str | None = None,
    k: int = 10,
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


# -- predictions ----------------------------------------------------------------------------------------------


def encode_prediction(
    prediction: Ranking, question: Question, graph: str, model: str, source: Source, clock: Clock | None
) -> bytes:
    """The answer to a question as bytes; the same answer from the same source gives the same bytes.

    The question's query holds the tick that was asked about, also where the question said NEXT.
    """
    return orjson.dumps(
        {
            "v": VERSION,
            "id": source.id,
            "graph": graph,
            "query": question.asked,
            "top": [
                {"entity": one.entity, "score": round(one.score, 6), "probability": round(one.probability, 9)}
                for one in prediction.top
            ],
            "ranks": prediction.ranks,
            "tick": question.query.t,
            "time": iso_of(clock, question.query.t),
            "as_of": prediction.as_of,
            "as_of_time": iso_of(clock, prediction.as_of),
            "late": prediction.late,
            "model": model,
            "cold_start": prediction.cold_start,
            "gate": round(prediction.gate, 6),
            "interactions": prediction.interactions,
            "source": {"partition": source.partition, "offset": source.offset},
        }
    )


def decode_prediction(data: bytes | None) -> dict[str, Any]:
    """A prediction's fields, by the names that `PREDICTION` documents. Raises Unusable."""
    return decode_by(PREDICTION, data, "prediction", PREDICTION_LATER)


def decode_by(
    table: dict[str, dict[str, Any]], data: bytes | None, what: str, optional: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """The fields of a message that must be as this table of schemas says. Raises Unusable."""
    if not data:
        raise Unusable("not-json", f"the message is empty: this is no {what}")
    values = _parsed(data)
    version = values.get("v")
    if version != VERSION or type(version) is not int:
        raise Unusable("unknown-version", f"v is {_shown(version)}: this program reads version {VERSION}")
    if missing := [key for key in table if key not in values and key not in optional]:
        raise Unusable("missing-field", f"{missing[0]} is missing: this is no {what}")
    for key, schema in table.items():
        if key in values and (problem := mismatch(values[key], schema, key)):
            raise Unusable("wrong-type", f"{problem}: this is no {what}")
    return values


_ANSWER_SCHEMA = {
    "type": "object",
    "properties": {"entity": {"type": "string"}, "score": {"type": "number"}, "probability": {"type": "number"}},
    "required": ["entity", "score", "probability"],
}
_ASKED_SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "r": {"type": "string"}, "t": {"type": ["integer", "string"]}},
    "required": ["id", "r", "t"],
}
_CALENDAR_SCHEMA = {"type": ["string", "null"]}
_SOURCE_SCHEMA = {
    "type": "object",
    "properties": {"partition": {"type": "integer"}, "offset": {"type": "integer"}},
    "required": ["partition", "offset"],
}

PREDICTION: dict[str, dict[str, Any]] = {
    "id": {"type": "string", "description": "made from the source: a repeated prediction has the same"},
    "graph": {"type": "string"},
    "query": {**_ASKED_SCHEMA, "description": "the query as asked"},
    "top": {"type": "array", "items": _ANSWER_SCHEMA, "description": "best first, without what was excluded"},
    "ranks": {"type": "object", "additionalProperties": {"type": "number"}, "description": "of rank_of, filtered"},
    "tick": {**_TICK_SCHEMA, "description": "the tick asked about, also where the query said `next` or an ISO time"},
    "time": {**_CALENDAR_SCHEMA, "description": "when that tick begins; null where the graph has no calendar"},
    "as_of": {**_TICK_SCHEMA, "description": "the answer rests on facts with time below this"},
    "as_of_time": {**_CALENDAR_SCHEMA, "description": "when that tick begins; null where the graph has no calendar"},
    "late": {"type": "boolean", "description": "the query's time was before the watermark"},
    "model": {"type": "string", "description": "version of the bundle that made it"},
    "cold_start": {"type": "boolean", "description": "the entity asked about has no memory yet"},
    "gate": {"type": "number", "description": "how far memory is mixed in, 0 for a newcomer"},
    "interactions": {"type": "integer", "description": "facts seen of the entity asked about"},
    "source": {**_SOURCE_SCHEMA, "description": "where the query stands in the events' log"},
}
PREDICTION_LATER = frozenset(("tick", "time", "as_of_time"))  # logs may hold predictions written before 0.2.0

# -- private --------------------------------------------------------------------------------------------------


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        values = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        try:
            data.decode()
        except UnicodeDecodeError:
            raise Unusable("not-utf8", "the message is not UTF-8: send JSON in UTF-8") from error
        raise Unusable("not-json", f"the message is not JSON ({error}): send a JSON object") from error
    if type(values) is not dict:
        raise Unusable("wrong-type", f"the message is {_shown(values)}: it must be a JSON object")
    return values


def _tick(time: int | str, clock: Clock | None) -> int:
    if isinstance(time, int):
        return time
    if clock is None:
        raise Unusable("bad-time", f"t is {_shown(time)}, but this graph has no calendar: send whole ticks")
    try:
        tick = clock.tick(time)
    except ValueError as error:
        raise Unusable("bad-time", f"t is {_shown(time)}: neither a whole tick nor an ISO time") from error
    if abs(tick) > LAST_TIME:
        raise Unusable("bad-time", f"t is {_shown(time)}: tick {tick} does not fit into 32 bits")
    return tick


def _question(found: dict[str, Any], clock: Clock | None) -> Question:
    if ("s" in found) == ("o" in found):
        code = "missing-field" if "s" not in found else "bad-value"
        raise Unusable(code, "a query gives exactly one of s and o: the other is what it asks for")
    follows = found["t"] == NEXT
    query = Query(
        r=found["r"],
        t=0 if follows else _tick(found["t"], clock),
        s=found.get("s"),
        o=found.get("o"),
        k=found.get("k", 10),
        rank_of=tuple(dict.fromkeys(found.get("rank_of", ()))),
        exclude=tuple(found.get("exclude", ())),
    )
    return Question(found["id"], query, found, follows)


def _listed(kind: str) -> str:
    return ", ".join(key for key, field in EVENTS[kind].items() if field.required)


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):  # may be nested deeper than Python can follow
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

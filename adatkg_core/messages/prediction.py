"""The answer to a query, declared once: what is written, what is read, and its JSON Schema."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec
import orjson
from msgspec import UNSET, Meta, Struct, UnsetType, field

from adatkg_core.clock import Clock, iso_of
from adatkg_core.events import Answer, Ranking, Source
from adatkg_core.messages.events import Question
from adatkg_core.messages.explanation import explain, parse_object, require_version
from adatkg_core.messages.fields import VERSION, TickNumber
from adatkg_core.messages.reasons import Reason, Unusable

_encode = msgspec.json.Encoder().encode
_OPENING = b'{"v":%d,' % VERSION


class Asked(TypedDict):
    """A query as it was asked; what it left out is not here."""

    id: str
    r: str
    t: int | str
    s: NotRequired[Any]
    o: NotRequired[Any]
    k: NotRequired[Any]
    rank_of: NotRequired[Any]
    exclude: NotRequired[Any]


class Prediction(Struct, frozen=True, kw_only=True, dict=True):
    """The answer to a query: the best candidates and what they rest on.

    `time` and `as_of_time` are ISO times in the graph's calendar, None where it has none. A message written before
    0.2.0 says neither them nor its tick.
    """

    id: Annotated[str, Meta(description="made from the source: a repeated prediction has the same")]
    graph: str
    query: Annotated[Asked, Meta(description="the query as asked")]
    top: Annotated[tuple[Answer, ...], Meta(description="best first, without what was excluded")]
    ranks: Annotated[dict[str, float], Meta(description="of rank_of, filtered")]
    said_tick: Annotated[
        TickNumber | UnsetType,
        Meta(description="the tick asked about, also where the query said `next` or an ISO time"),
    ] = field(name="tick", default=UNSET)
    time: Annotated[str | None, Meta(description="when that tick begins; null where the graph has no calendar")] = None
    as_of: Annotated[TickNumber, Meta(description="the answer rests on facts with time below this")]
    as_of_time: Annotated[
        str | None, Meta(description="when that tick begins; null where the graph has no calendar")
    ] = None
    late: Annotated[bool, Meta(description="the query's time was before the watermark")]
    model: Annotated[str, Meta(description="version of the bundle that made it")]
    cold_start: Annotated[
        bool, Meta(description="the entity asked about has no memory yet, or no interactions where none is kept")
    ]
    gate: Annotated[float, Meta(description="how far memory is mixed in, 0 for a newcomer")]
    interactions: Annotated[int, Meta(description="facts seen of the entity asked about")]
    source: Annotated[Source, Meta(description="where the query stands in the events' log")]

    @property
    def tick(self) -> int | None:
        """The time asked about; None where neither the message nor its query says a tick."""
        if isinstance(self.said_tick, UnsetType):
            asked = self.query["t"]
            return asked if isinstance(asked, int) else None
        return self.said_tick

    @cached_property
    def raw(self) -> dict[str, Any]:
        """The message as it came, also with what this version does not know; of one that was changed, its fields."""
        return {"v": VERSION, **orjson.loads(msgspec.json.encode(self))}


def decode_prediction(data: bytes | None) -> Prediction:
    """The prediction that these bytes are. Raises Unusable."""
    if not data:
        raise Unusable(Reason.NOT_JSON, "the message is empty: this is no prediction")
    values = parse_object(data)
    require_version(values)
    try:
        prediction = msgspec.convert(values, Prediction)
    except msgspec.ValidationError as error:
        raise explain(values, Prediction, "prediction") from error
    prediction.__dict__["raw"] = values  # where a cached property keeps its value
    return prediction


def encode_prediction(
    prediction: Ranking, question: Question, graph: str, model: str, source: Source, clock: Clock | None
) -> bytes:
    """The answer to a question as bytes; the same answer from the same source gives the same bytes.

    The question's query holds the tick that was asked about, also where the question said NEXT.
    """
    message = Prediction(
        id=source.id,
        graph=graph,
        query=question.asked,  # type: ignore[arg-type]
        top=_shown(prediction.top),
        ranks=prediction.ranks,
        said_tick=question.query.t,
        time=iso_of(clock, question.query.t),
        as_of=prediction.as_of,
        as_of_time=iso_of(clock, prediction.as_of),
        late=prediction.late,
        model=model,
        cold_start=prediction.cold_start,
        gate=round(prediction.gate, 6),
        interactions=prediction.interactions,
        source=source,
    )
    return _OPENING + _encode(message)[1:]


def _shown(answers: tuple[Answer, ...]) -> tuple[Answer, ...]:
    """To so many digits as a message has; thrice as fast as `round` is with a number of digits."""
    try:
        return tuple(
            [Answer(one.entity, round(one.score * 1e6) / 1e6, round(one.probability * 1e9) / 1e9) for one in answers]
        )
    except (OverflowError, ValueError):  # no number, which is said as null
        return answers

"""A prediction as a program reads it, and which of them have been read already."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from adatkg_core.events import Answer, Source
from adatkg_core.messages import decode_prediction

# A worker that was killed answers again what came after its last snapshot, so repeats follow their originals within
# one snapshot's worth of queries. More ids than that per partition of the events need not be remembered.
REMEMBERED = 100_000


@dataclass(frozen=True)
class Prediction:
    """The answer to a query: the best candidates and what they rest on. `raw` is the message as it came.

    `tick` is the time asked about, and `time` and `as_of_time` are ISO times in the graph's calendar, None where it has
    none. A message written before 0.2.0 says neither of them: then `tick` is known only if the query gave one.
    """

    id: str
    graph: str
    query: dict[str, Any]
    top: tuple[Answer, ...]
    ranks: dict[str, float]
    tick: int | None
    time: str | None
    as_of: int
    as_of_time: str | None
    late: bool
    model: str
    cold_start: bool
    gate: float
    interactions: int
    source: Source
    raw: dict[str, Any] = field(repr=False, compare=False)


def decode_forecast(data: bytes | None) -> Prediction:
    """The forecast that these bytes are. Raises Unusable."""
    raw = decode_prediction(data)
    asked = raw["query"]["t"]
    return Prediction(
        id=raw["id"],
        graph=raw["graph"],
        query=raw["query"],
        top=tuple(Answer(one["entity"], one["score"], one["probability"]) for one in raw["top"]),
        ranks=raw["ranks"],
        tick=raw.get("tick", asked if isinstance(asked, int) else None),
        time=raw.get("time"),
        as_of=raw["as_of"],
        as_of_time=raw.get("as_of_time"),
        late=raw["late"],
        model=raw["model"],
        cold_start=raw["cold_start"],
        gate=raw["gate"],
        interactions=raw["interactions"],
        source=Source(raw["source"]["partition"], raw["source"]["offset"]),
        raw=raw,
    )


class Seen:
    """The ids of the latest forecasts, for each partition of the events apart: a busy one does not push others out."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._ids: defaultdict[int, dict[str, None]] = defaultdict(dict)  # a dict keeps the order of its keys

    def repeats(self, forecast: Prediction) -> bool:
        """Whether this forecast was here before; from now on it was."""
        ids = self._ids[forecast.source.partition]
        if forecast.id in ids:
            return True
        ids[forecast.id] = None
        if len(ids) > self._remembered:
            del ids[next(iter(ids))]
        return False

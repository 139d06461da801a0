"""How the memory of entities grew and how well it served, from the answers that were given anyway."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adatkg_core.clock import Clock, iso_of
from streams.worker import Answered, ScoredAnswer

POINTS = 200  # of one entity
ALL_POINTS = 100_000  # of all; the entities nobody asked about for longest make room
OPEN = 20_000  # answers whose truth may still come


@dataclass(slots=True)
class Point:
    """An entity when it was asked about; questions at the same time with the same past and version share one."""

    time: int
    interactions: int
    gate: float
    memory_norm: float
    version: str  # of the model that answered
    reciprocals: float = 0.0
    truths: int = 0


class EntityHistory:
    """A ring of points for each entity that was asked about lately."""

    def __init__(self, points: int = POINTS, all_points: int = ALL_POINTS, open: int = OPEN) -> None:
        self._each, self._limit, self._most_open = points, all_points, open
        self._rings: OrderedDict[tuple[str, str], deque[Point]] = OrderedDict()  # by graph and entity
        self._open: OrderedDict[tuple[str, int], Point] = OrderedDict()  # by graph and offset
        self._points = 0

    @property
    def points(self) -> int:
        """How many are held."""
        return self._points

    def answered(self, graph: str, answers: Sequence[Answered], version: str) -> None:
        """Queries were answered by this version, in log order."""
        for one in answers:
            query, prediction = one.question.query, one.prediction
            entity = query.s if query.s is not None else query.o
            assert entity is not None
            ring = self._rings.get((graph, entity))
            if ring is None:
                ring = self._rings[graph, entity] = deque()
            else:
                self._rings.move_to_end((graph, entity))
            last = ring[-1] if ring else None
            now = (prediction.as_of, prediction.interactions, version)
            if last is None or (last.time, last.interactions, last.version) != now:
                gate, norm = prediction.gate, prediction.memory_norm
                last = Point(prediction.as_of, prediction.interactions, gate, norm, version)
                ring.append(last)
                self._points += 1
                if len(ring) > self._each:
                    ring.popleft()
                    self._points -= 1
            if not prediction.late:
                self._open[graph, one.arrival.source.offset] = last
        while len(self._open) > self._most_open:
            self._open.popitem(last=False)
        while self._points > self._limit:
            self._points -= len(self._rings.popitem(last=False)[1])

    def scored(self, graph: str, scored: Sequence[ScoredAnswer]) -> None:
        """Truths came."""
        for one in scored:
            point = self._open.get((graph, one.offset))
            if point is not None:
                point.truths += 1
                point.reciprocals += 0.0 if one.rank is None else 1 / one.rank

    def trace(self, graph: str, entity: str, clock: Clock | None) -> list[dict[str, Any]]:
        """What is held of an entity, the oldest first; its reciprocal rank is the mean over the truths that came."""
        return [
            {
                "t": point.time,
                "t_iso": iso_of(clock, point.time),
                "interactions": point.interactions,
                "model": point.version,
                "gate": round(point.gate, 6),
                "memory_norm": round(point.memory_norm, 6),
                "reciprocal_rank": round(point.reciprocals / point.truths, 6) if point.truths else None,
            }
            for point in self._rings.get((graph, entity), ())
        ]

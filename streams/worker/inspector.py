"""What there is to see of the graphs, for pages and metrics."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from adatkg_core.clock import Clock, iso_of
from adatkg_core.engine import EntityProfile, profile_entity
from streams.worker.device import DeviceThread
from streams.worker.graph_host import GraphHost
from streams.worker.live_graph import LiveGraph
from streams.worker.live_score import Scores


@dataclass(frozen=True)
class GraphStatus:
    """What there is to see of a graph: bytes of its state, entities, watermark, who answers and how well.

    `heuristic` are the scores of the recurrency heuristic for the same queries; None where no counts are kept. Queries
    about the next time wait for their truth for `horizon` ticks; `unsettled` ones have ended without a truth.
    """

    size: int
    entities: int
    relations: int
    watermark: int | None
    watermark_iso: str | None
    version: str
    scores: Scores
    heuristic: Scores | None
    horizon: int
    unsettled: int


class Inspector:
    """Looks at the graphs on the device's thread, in turn with the batches."""

    def __init__(self, host: GraphHost, device: DeviceThread) -> None:
        self._host, self._device = host, device

    async def status(self) -> dict[str, GraphStatus]:
        """Of each graph."""
        return (await self.timed_status())[0]

    async def timed_status(self) -> tuple[dict[str, GraphStatus], float]:
        """The same, and how many seconds of the device's thread it took."""

        def look() -> tuple[dict[str, GraphStatus], float]:
            began = time.perf_counter()
            found = {hosted.graph.name: _status_of(hosted.graph) for hosted in self._host.hosted()}
            return found, time.perf_counter() - began

        return await self._device.run(look)

    async def names(self, graph: str) -> tuple[Sequence[str], Sequence[str]] | None:
        """A graph's entities and relations, None where it is not here; the first grows, and may be read meanwhile."""

        def look() -> tuple[Sequence[str], Sequence[str]] | None:
            found = self._host.find(graph)
            return None if found is None else (found.graph.engine.catalog.names, found.graph.bundle.relations)

        return await self._device.run(look)

    async def entity(self, graph: str, name: str) -> tuple[EntityProfile, Clock | None] | None:
        """What is known of an entity, and its graph's clock; None where the graph is not here."""

        def look() -> tuple[EntityProfile, Clock | None] | None:
            found = self._host.find(graph)
            return None if found is None else (profile_entity(found.graph.engine, name), found.graph.bundle.clock)

        return await self._device.run(look)


def _status_of(graph: LiveGraph) -> GraphStatus:
    engine, score = graph.engine, graph.score
    with score.lock:
        scores, heuristic = score.scores(), score.heuristic_scores() if graph.heuristic else None
    return GraphStatus(
        size=sum(tensor.nbytes for tensor in engine.state.tensors.values()),
        entities=len(engine.catalog),
        relations=len(engine.relations),
        watermark=engine.watermark,
        watermark_iso=iso_of(graph.bundle.clock, engine.watermark),
        version=graph.version,
        scores=scores,
        heuristic=heuristic,
        horizon=score.horizon,
        unsettled=score.unsettled,
    )

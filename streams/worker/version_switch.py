"""The steps by which a graph comes to another version, each between two batches on the thread that has the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adatkg_core.messages import Unusable
from adatkg_core.storage import Bundle
from streams.kafka import Record
from streams.worker.arrival import arrival_of
from streams.worker.batch import BatchResult, Switch
from streams.worker.graph_host import GraphHost
from streams.worker.hosted_graph import HostedGraph
from streams.worker.incoming_graph import READ, SLICE, IncomingGraph, OffsetRange
from streams.worker.live_graph import LiveGraph


@dataclass(frozen=True)
class Standing:
    """Where a graph stands, and which versions of it are here."""

    partition: int
    offset: int
    log_id: str
    present: Bundle
    incoming: IncomingGraph | None
    switch: Switch | None  # the model event at which it stands
    is_ready: bool  # the version that this names stands right before it
    behind: bool  # it does not take in what is delivered


class VersionSwitch:
    """Moves graphs on; one that has left this worker is passed over, since another worker cares for it now."""

    def __init__(self, host: GraphHost, batch_events: int) -> None:
        self._host, self._batch = host, batch_events

    def names(self) -> list[str]:
        """The graphs that are here."""
        return [hosted.graph.name for hosted in self._host.hosted()]

    def expect_model(self, name: str) -> Standing | None:
        """Where a graph stands; where it is not loaded, None, and its model is looked for at its next event."""
        self._host.expect_model(name)
        return self.standing(name)

    def standing(self, name: str) -> Standing | None:
        """Where a graph stands; None where it is not here."""
        hosted = self._host.find(name)
        if hosted is None:
            return None
        offset, log_id = self._host.position(hosted), self._host.log_id(hosted)
        return Standing(
            hosted.partition,
            offset,
            log_id,
            hosted.graph.bundle,
            hosted.incoming,
            hosted.switch,
            hosted.is_ready(),
            hosted.behind,
        )

    # -- a version beside the present one ---------------------------------------------------------------------

    def put_beside(self, graph: LiveGraph, offset: int) -> IncomingGraph | None:
        """Put a graph that stands at `offset` beside the present one, in place of any other there."""
        hosted = self._host.find(graph.name)
        if hosted is None:
            return None
        hosted.incoming = IncomingGraph(graph, hosted.partition, offset, self._batch)
        return hosted.incoming

    def next_range(self, incoming: IncomingGraph) -> OffsetRange | None:
        """Which part of the log it takes in next; None once it follows, or when nobody waits for it any more."""
        hosted = self._beside(incoming)
        if hosted is None or incoming.follows:
            return None
        if hosted.switch is not None and hosted.switch.event.version != incoming.version:
            return None
        return incoming.next_range(self._host.position(hosted))

    def advance(self, incoming: IncomingGraph, offsets: OffsetRange, records: Sequence[Record]) -> None:
        """Let it take in a slice of the log."""
        if self._beside(incoming) is None:
            return
        try:
            incoming.apply(offsets, records)
        except Exception:
            self.dismiss(incoming)  # it may have taken half of something
            raise

    def dismiss(self, incoming: IncomingGraph) -> None:
        """It is not wanted after all; the present version goes on."""
        hosted = self._beside(incoming)
        if hosted is not None:
            hosted.incoming = None

    # -- at a model event -------------------------------------------------------------------------------------

    def take_over(self, name: str) -> list[BatchResult]:
        """The version that the event names answers from there on, if it is still ready."""
        hosted = self._host.find(name)
        return [hosted.take_over()] if hosted is not None and hosted.is_ready() else []

    def refuse(self, name: str, problem: Unusable) -> list[BatchResult]:
        """The present version goes on behind the event, which becomes a dead letter."""
        hosted = self._host.find(name)
        return [hosted.refuse(problem)] if hosted is not None and hosted.switch is not None else []

    def missed(self, name: str) -> OffsetRange | None:
        """What a graph that may go on has to read from the log next; None once it takes in what is delivered again."""
        hosted = self._host.find(name)
        if hosted is None or not hosted.behind or hosted.switch is not None:
            return None
        end = self._host.delivered(hosted)
        if hosted.offset >= end:
            self._host.level(hosted)
            return None
        if hosted.offset < hosted.answered_below:
            end = min(end, hosted.answered_below)
        return OffsetRange(hosted.partition, hosted.offset, min(end, hosted.offset + READ * SLICE * self._batch))

    def read_on(self, name: str, offsets: OffsetRange, records: Sequence[Record]) -> list[BatchResult]:
        """Take in what was missed, and answer it; what stands behind a model event that is not ready is left out."""
        hosted = self._host.find(name)
        if hosted is None or hosted.switch is not None or hosted.offset != offsets.start:
            return []
        unanswered = hosted.unanswered
        try:
            return hosted.read_on([arrival_of(record) for record in records], offsets.end)
        except Exception as error:
            self._host.failed(hosted, unanswered, error)
            return []

    def held_up(self, name: str, error: Exception, again_in: float) -> None:
        """Getting a version ready has failed, and is tried again; where a graph waits for it that is an incident."""
        self._host.held_up(name, error, again_in)

    def _beside(self, incoming: IncomingGraph) -> HostedGraph | None:
        hosted = self._host.find(incoming.graph.name)
        return hosted if hosted is not None and hosted.incoming is incoming else None

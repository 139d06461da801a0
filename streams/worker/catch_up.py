"""The one reader of what graphs have missed: offsets that were delivered before they were here, or to others."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import structlog

from adatkg_core.errors import AdatkgError
from adatkg_core.runtime import Retry
from adatkg_core.storage import LastEvent
from streams.kafka import Connection, EventLog, LogReader, Record, Topics, event_log, open_log
from streams.worker.arrival import Arrival, arrival_of
from streams.worker.hosted_graph import HostedGraph
from streams.worker.incident import IncidentKind, Incidents
from streams.worker.live_graph import LiveGraph
from streams.worker.state_check import StateCheck

AT_ONCE = 4_096  # events applied together
log = structlog.get_logger()


class CatchUp:
    """Reads the log beside the consumer group. For the thread that has the device, unless it says otherwise."""

    def __init__(
        self, connection: Connection, topics: Topics, retry: Retry, incidents: Incidents | None = None
    ) -> None:
        self._connection, self._topics, self._retry = connection, topics, retry
        self.incidents = incidents or Incidents()
        self._log: EventLog | None = None
        self._watching: LogReader | None = None  # kept open, because it may be asked with every batch

    @property
    def known(self) -> EventLog | None:
        """The events' topic, if it was looked up already. For any thread."""
        return self._log

    @property
    def log(self) -> EventLog:
        """The events' topic, looked up once. For any thread."""
        if self._log is None:
            self._log = self._retry.run(lambda: event_log(self._connection, self._topics), self._topics.events)
        return self._log

    def open(self) -> AbstractContextManager[LogReader]:
        """A reader of the log, for whichever thread opens it."""
        return open_log(self._connection, self._topics.events)

    def bounds(self, partition: int) -> tuple[int, int]:
        """The first offset that is still kept, and the one that the next event will get. For any thread."""
        with self.open() as reader:
            return reader.bounds(partition)

    def check(self, partition: int) -> StateCheck:
        """What states are compared with, as the log is now. For any thread."""
        first, end = self.bounds(partition)
        return StateCheck(self.log.log_id(partition), first, end, partial(self.holds, partition))

    def holds(self, partition: int, last: LastEvent) -> bool:
        """Whether this event stands in the log where it stood. For any thread."""
        with self.open() as reader:
            found = reader.read(partition, last.offset, last.offset + 1)
            return any(arrival_of(record).as_last() == last for record in found)

    def first_kept(self, partition: int) -> int:
        """The first offset that is still kept."""
        if self._watching is None:
            self._watching = LogReader(self._connection, self._topics.events)
        try:
            return self._watching.bounds(partition)[0]
        except AdatkgError:
            self._watching.close()
            self._watching = None
            raise

    def bring(self, graphs: Sequence[HostedGraph], end: int) -> None:
        """Bring graphs of one partition to the state right before `end`; their answers were given before.

        One that comes to a model event on the way may stay there.
        """
        partition, start = graphs[0].partition, min(hosted.offset for hosted in graphs)
        if start >= end:
            return
        began = time.perf_counter()
        with self.open() as reader:
            applied = self._follow(reader, graphs, start, end)
        seconds = round(time.perf_counter() - began, 3)
        log.info("caught_up", partition=partition, start=start, end=end, applied=applied, seconds=seconds)

    def unseen(self, partition: int, graphs: Sequence[HostedGraph], start: int, end: int) -> list[Arrival]:
        """The events between two offsets that were not delivered, of all graphs; waits for brokers that are away.

        What of it is gone is an incident of each of these graphs.
        """
        began = time.perf_counter()

        def read() -> list[Arrival]:
            with self.open() as reader:
                return [arrival_of(record) for record in self.records(reader, partition, graphs, start, end)]

        found = self._retry.run(read, f"partition {partition}")
        seconds = round(time.perf_counter() - began, 3)
        log.warning("read_undelivered", partition=partition, start=start, end=end, events=len(found), seconds=seconds)
        return found

    def checked(self, partition: int, arrivals: Sequence[Arrival]) -> Sequence[Arrival]:
        """Offsets that a delivery skips hold no event, unless the log lost them before they were read."""
        skipping = [arrival for arrival in arrivals if arrival.begins < arrival.source.offset]
        if not skipping:
            return arrivals
        first = self._retry.run(lambda: self.first_kept(partition), f"partition {partition}")
        return [replace(one, follows=None) if one.begins < first else one for one in arrivals]

    def hosted(self, graph: LiveGraph, partition: int, offset: int, check: StateCheck) -> HostedGraph:
        """A graph just loaded that stands at `offset`; what the log lacks is told."""
        hosted = HostedGraph(graph, partition, offset, offset)
        self.lost(hosted, offset, check.first)
        hosted.offset = max(offset, check.first)
        if check.refused:
            self.cut(hosted, check)
        return hosted

    def records(
        self, reader: LogReader, partition: int, graphs: Sequence[HostedGraph], start: int, end: int
    ) -> Iterator[Record]:
        """What a partition has between two offsets; what is gone of it is an incident of each graph that needed it.

        For the thread that has the reader.
        """
        needed = [(hosted, hosted.offset) for hosted in graphs]
        first = reader.bounds(partition)[0]
        gaps = []  # few are losses: markers of transactions leave gaps too
        if first > start:
            gaps.append((start, min(first, end)))
            start = min(first, end)
        expected = start
        for record in reader.read(partition, start, end):
            if record.offset > expected:
                gaps.append((expected, record.offset))
            expected = record.offset + 1
            yield record
        gaps.append((expected, end))
        if any(begin < following for begin, following in gaps):  # perhaps it was cut while it was read
            first = reader.bounds(partition)[0]
        for hosted, offset in needed:
            for begin, following in gaps:
                self.lost(hosted, max(begin, offset), min(following, first))

    def lost(self, hosted: HostedGraph, start: int, end: int) -> None:
        """Offsets that a graph needed are no longer in the log; nothing happens where there are none."""
        if start < end:
            detail = (
                f"partition {hosted.partition}: offsets {start} to {end - 1} are no longer in the log, by retention or "
                "deletion; facts among them are missing in the state, queries among them stay unanswered: keep the "
                "topic for ever, and train or replay anew where the facts matter"
            )
            self.incidents.report(hosted.graph.name, IncidentKind.RECORDS_LOST, detail)

    def cut(self, hosted: HostedGraph, check: StateCheck) -> None:
        """States of a graph were refused because the log has lost events that are in them."""
        detail = (
            f"partition {hosted.partition}: the log, which now ends at {check.end}, has lost events of the state at "
            f"offset {check.refused[0][0]}, as by an unclean election or a disk that was put back; the graph begins "
            f"again at {hosted.offset} and answers what stands there now"
        )
        self.incidents.report(hosted.graph.name, IncidentKind.RECORDS_LOST, detail)

    def _follow(self, reader: LogReader, graphs: Sequence[HostedGraph], start: int, end: int) -> int:
        """Apply what the log has of each graph; returns how many events that were."""
        by_key = {hosted.graph.name.encode(): hosted for hosted in graphs}
        waiting: dict[bytes, list[Arrival]] = {key: [] for key in by_key}
        applied = 0
        for record in self.records(reader, graphs[0].partition, graphs, start, end):
            if record.key in by_key and record.offset >= by_key[record.key].offset:
                waiting[record.key].append(arrival_of(record))
                if len(waiting[record.key]) >= AT_ONCE:
                    applied += self._apply(by_key[record.key], waiting[record.key])
        for key, hosted in by_key.items():
            if waiting[key]:
                applied += self._apply(hosted, waiting[key])
            if not hosted.behind:
                hosted.offset = max(hosted.offset, end)
        return applied

    def _apply(self, hosted: HostedGraph, waiting: list[Arrival]) -> int:
        """Apply what waits, so that nothing does; returns how many events that were."""
        hosted.apply(waiting, silent=True)
        count = len(waiting)
        waiting.clear()
        if self._retry.ended:
            raise AdatkgError(f"partition {hosted.partition}: the worker ends while it catches up at {hosted.offset}")
        return count

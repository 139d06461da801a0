"""Looks now and then whether the log is still the one that was read, and how far it reaches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NoReturn

import structlog
from kafka.errors import KafkaError

from adatkg_core.errors import AdatkgError
from streams.kafka import Connection, EventLog, LogReader, Topics, event_log, open_log
from streams.worker.incident import IncidentKind, Incidents

EVERY = 10.0  # seconds; what comes meanwhile is read again after the new start
log = structlog.get_logger()


class LogRemade(AdatkgError):
    """The log is not the one that was read; whoever runs the worker starts it anew."""


@dataclass(frozen=True)
class _Look:
    log: EventLog
    bounds: dict[int, tuple[int, int]]  # by partition


class LogWatch:
    """Compares the topic's id and the ends of our partitions with what was read of them."""

    def __init__(
        self,
        connection: Connection,
        topics: Topics,
        incidents: Incidents,
        reached: Callable[[], dict[int, int | None]],
        abandon: Callable[[dict[int, int]], Awaitable[None]],
    ) -> None:
        """`reached` says of each of our partitions which offset should come next, as far as that is known.

        `abandon` stops what takes events in, and says from where each partition is to be read after a new start.
        """
        self._connection, self._topics, self._incidents = connection, topics, incidents
        self._reached, self._abandon = reached, abandon
        self._seen: EventLog | None = None
        self._bounds: dict[int, tuple[int, int]] = {}
        self._thread = ThreadPoolExecutor(1, "log-watch")
        self._reader: LogReader | None = None  # of that thread; kept, because opening one is work
        self._closing = ExitStack()

    def first(self, partition: int) -> int | None:
        """The first offset that is kept, as far as that is known."""
        return self._bounds[partition][0] if partition in self._bounds else None

    def end(self, partition: int) -> int | None:
        """The offset that the next event of a partition will get, as it was a moment ago and as far as it is known."""
        return self._bounds[partition][1] if partition in self._bounds else None

    async def run(self) -> None:
        """Look until cancelled; raises once the log is another one."""
        try:
            while True:
                await self.look()
                await asyncio.sleep(EVERY)
        finally:
            self._thread.submit(self._closing.close)
            self._thread.shutdown(wait=False)

    async def look(self) -> None:
        """Look once; brokers that are away, or a topic that is, tell nothing."""
        reached = self._reached()
        try:
            look = await asyncio.get_running_loop().run_in_executor(self._thread, self._look, list(reached))
        except AdatkgError as error:
            log.warning("log_not_seen", problem=str(error), again_in=EVERY)
            return
        self._bounds = look.bounds
        before, self._seen = self._seen, look.log
        if before is not None and look.log.id != before.id:
            problem = f"the topic was made anew: its id was {before.id} and is {look.log.id}"
            await self._start_anew(problem, {number: first for number, (first, _) in look.bounds.items()})
        cut = {number: end for number, (_, end) in look.bounds.items() if end < (reached[number] or 0)}
        if cut:
            problem = ", ".join(f"partition {n} was read up to {reached[n]} and now ends at {cut[n]}" for n in cut)
            await self._start_anew(problem, cut)

    async def _start_anew(self, problem: str, offsets: dict[int, int]) -> NoReturn:
        detail = f"{self._topics.events}: {problem}; the worker takes nothing more and starts anew from what is there"
        self._incidents.report("", IncidentKind.LOG_REMADE, detail)
        await self._abandon(offsets)
        raise LogRemade(detail)

    def _look(self, partitions: Iterable[int]) -> _Look:
        found = event_log(self._connection, self._topics)
        if self._reader is None:
            self._reader = self._closing.enter_context(open_log(self._connection, self._topics.events))
        try:
            ours = [number for number in partitions if number < found.partitions]
            return _Look(found, {number: self._reader.bounds(number) for number in ours})
        except KafkaError as error:
            self._reader = None
            self._closing.close()
            raise AdatkgError(f"{self._topics.events}: its ends cannot be asked for ({error!r})") from error

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
from streams.kafka import Connection, EventLog, LogReader, Topics, find_topics, open_log
from streams.worker.incident import IncidentKind, Incidents

EVERY = 10.0  # seconds; what comes meanwhile is read again after the new start
log = structlog.get_logger()


class LogRemade(AdatkgError):
    """The log is not the one that was read; whoever runs the worker starts it anew."""


@dataclass(frozen=True)
class _Look:
    log: EventLog
    bounds: dict[int, tuple[int, int]]  # by partition
    models: EventLog | None = None  # the announcements' topic, unless it is not there now


async def _ignore() -> None:
    """Where nobody hears announcements."""


class LogWatch:
    """Compares the topic's id and the ends of our partitions with what was read of them.

    It also sees whether the announcements' topic was made anew, upon which `on_models_remade` is called.
    """

    def __init__(
        self,
        connection: Connection,
        topics: Topics,
        incidents: Incidents,
        reached: Callable[[], dict[int, int | None]],
        abandon: Callable[[dict[int, int]], Awaitable[None]],
        known: Callable[[], EventLog | None] = lambda: None,
    ) -> None:
        """`reached` says of each of our partitions which offset should come next, as far as that is known.

        `known` is the log that was looked up to be read, if it was. `abandon` stops what takes events in, and notes
        from where on partitions that were cut are to be read after a new start.
        """
        self._connection, self._topics, self._incidents = connection, topics, incidents
        self._reached, self._abandon, self._known = reached, abandon, known
        self.on_models_remade: Callable[[], Awaitable[object]] = _ignore
        self._seen: EventLog | None = None
        self._models: EventLog | None = None
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

    async def look(self) -> bool:
        """Look once, and say whether the log was seen: brokers that are away, or a topic that is, tell nothing.

        Raises where the log is another one.
        """
        reached = self._reached()
        try:
            look = await asyncio.get_running_loop().run_in_executor(self._thread, self._look, list(reached))
        except AdatkgError as error:
            log.warning("log_not_seen", problem=str(error), again_in=EVERY)
            return False
        self._bounds = look.bounds
        before, self._seen = self._known() or self._seen, look.log
        if before is not None and look.log.id != before.id:
            problem = f"the topic was made anew: its id was {before.id} and is {look.log.id}"
            await self._start_anew(problem, {})  # what is committed names the log before, and does not count for this
        cut = {number: end for number, (_, end) in look.bounds.items() if end < (reached[number] or 0)}
        if cut:
            problem = ", ".join(f"partition {n} was read up to {reached[n]} and now ends at {cut[n]}" for n in cut)
            await self._start_anew(problem, cut)
        await self._compare_models(look.models)
        return True

    async def _compare_models(self, seen: EventLog | None) -> None:
        before, self._models = self._models, seen or self._models
        if before is not None and self._models != before:
            log.warning("announcements_remade", topic=self._topics.models)
            await self.on_models_remade()

    async def _start_anew(self, problem: str, offsets: dict[int, int]) -> NoReturn:
        detail = f"{self._topics.events}: {problem}; the worker takes nothing more and starts anew from what is there"
        self._incidents.report("", IncidentKind.LOG_REMADE, detail)
        await self._abandon(offsets)
        raise LogRemade(detail)

    def _look(self, partitions: Iterable[int]) -> _Look:
        topics = find_topics(self._connection, self._topics.events, self._topics.models)
        if (found := topics.get(self._topics.events)) is None:
            raise AdatkgError(f"{self._topics.events}: there is no such topic now")
        if self._reader is None:
            self._reader = self._closing.enter_context(open_log(self._connection, self._topics.events))
        try:
            ours = [number for number in partitions if number < found.partitions]
            bounds = {number: self._reader.bounds(number) for number in ours}
            return _Look(found, bounds, topics.get(self._topics.models))
        except KafkaError as error:
            self._reader = None
            self._closing.close()
            raise AdatkgError(f"{self._topics.events}: its ends cannot be asked for ({error!r})") from error

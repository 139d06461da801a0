"""Hot swap: prepares versions that shall answer, says so in the graph's log, and has them ready where the log says so.

Which version answers a query is a function of the log: the one that the last model event before it names. Reading files
and the log, and putting a graph together, happens on a thread of its own. The device's thread gets slices of at most
two batches, in turn with live batches, so a swap under way delays no prediction by more than that.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any, ParamSpec, TypeVar

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from adatkg_core.errors import InputError
from adatkg_core.messages import Announcement, Unusable, decode_announcement, encode_model
from adatkg_core.runtime import Retry
from streams.kafka import Connection, LogReader, Record, Topics, append_event, open_log
from streams.worker.graph_host import GraphHost
from streams.worker.incoming_graph import SLICE, IncomingGraph, OffsetRange
from streams.worker.live_graph import LiveGraph
from streams.worker.loader import Loader
from streams.worker.metrics import Metrics
from streams.worker.version_switch import Standing, VersionSwitch
from streams.worker.worker import Worker

IDLE = 0.1  # seconds between looks whether it is this graph's turn to prepare a version
RETRY = 2.0  # seconds before what failed is tried again; each time twice as long
LONGEST_RETRY = 60.0
STOP_WITHIN = 5.0  # seconds for a read of files or the log that is under way; after it nobody waits for its result
P = ParamSpec("P")
T = TypeVar("T")
log = structlog.get_logger()


class ModelSwap:
    """Follows announcements and what graphs come to in their logs; each graph is cared for by a task of its own."""

    def __init__(
        self,
        connection: Connection,
        topics: Topics,
        loader: Loader,
        host: GraphHost,
        worker: Worker,
        metrics: Metrics,
        batch_events: int,
    ) -> None:
        self._connection, self._topics, self._loader = connection, topics, loader
        self._worker, self._device, self._metrics = worker, worker.device, metrics
        self._switch, self._slice = VersionSwitch(host, batch_events), SLICE * batch_events
        self._files = ThreadPoolExecutor(1, "bundles")
        self._changed: deque[str] = deque()  # graphs that the device's thread has told of
        self._wake = asyncio.Event()
        self._wanted: dict[str, Announcement | None] = {}  # graphs to look at, with what was announced
        self._caring: dict[str, asyncio.Task[None]] = {}
        self._preparing: str | None = None  # one version at a time, for each is a second graph in memory
        self._stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: asyncio.Task[Any] | None = None
        self._consumer: AIOKafkaConsumer | None = None  # of announcements
        host.on_change = self._on_change

    async def run(self) -> None:
        """Hear and act until stopped."""
        self._running, self._loop = asyncio.current_task(), asyncio.get_running_loop()
        looking = asyncio.create_task(self._look())
        try:
            retry = Retry("announcements_away", KafkaError, RETRY, level="warning")
            while not self._stopped:
                await retry.run_async(self._listen, self._topics.models)
        finally:
            looking.cancel()

    def hear(self, data: bytes | None) -> asyncio.Task[None] | None:
        """Act on an announcement; the task ends once the log names its version, or it is refused, or was overtaken."""
        try:
            announcement = decode_announcement(data)
        except Unusable as problem:
            log.warning("announcement_unusable", problem=problem.detail)
            return None
        return self._care(announcement.graph, announcement) if announcement.status == "present" else None

    def look_again(self) -> list[asyncio.Task[None]]:
        """Care for the graphs that have come to something since this was last asked."""
        return [self._care(self._changed.popleft(), None) for _ in range(len(self._changed))]

    async def hear_anew(self) -> list[asyncio.Task[None]]:
        """The announcements' topic was made anew: it is heard from its beginning.

        What was announced before may be gone unheard, so the store is asked about every graph that is here.
        """
        if self._consumer is not None:
            self._consumer.seek(TopicPartition(self._topics.models, 0), 0)
        return [self._care(name, None) for name in await self._device.run(self._switch.names)]

    async def stop(self) -> None:
        """Hear no more and give up what is under way, while the device's thread is still there for it."""
        self._stopped = True
        tasks = [task for task in (self._running, *self._caring.values()) if task is not None and not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_WITHIN)
        self._files.shutdown(wait=False, cancel_futures=True)

    # -- what there is to do ----------------------------------------------------------------------------------

    async def _look(self) -> None:
        """What graphs come to on the device's thread."""
        while True:
            self.look_again()
            await self._wake.wait()
            self._wake.clear()

    async def _listen(self) -> None:
        """Every worker hears every announcement, from the first that is kept."""
        consumer = AIOKafkaConsumer(**self._connection.client(), auto_offset_reset="earliest")
        try:
            await consumer.start()
            consumer.assign([TopicPartition(self._topics.models, 0)])
            self._consumer = consumer
            async for record in consumer:
                self.hear(record.value)
        finally:
            self._consumer = None
            await consumer.stop()

    def _on_change(self, name: str) -> None:
        """Called on the device's thread."""
        self._changed.append(name)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake.set)

    def _care(self, name: str, announcement: Announcement | None) -> asyncio.Task[None]:
        self._wanted[name] = announcement or self._wanted.get(name)
        if name not in self._caring:
            self._caring[name] = asyncio.create_task(self._attend(name))
        return self._caring[name]

    async def _attend(self, name: str) -> None:
        """Until there is nothing left to do for a graph; what fails is tried again, with growing pauses."""
        try:
            await self._do_wanted(name)
        finally:
            del self._caring[name]  # at once: who wants something from now on starts another task

    async def _do_wanted(self, name: str) -> None:
        pause = RETRY
        while name in self._wanted:
            announcement = self._wanted.pop(name)
            reader = _GraphLog(self._connection, self._topics.events, name.encode())
            try:
                await self._go_on(name, reader)
                await self._prepare(name, announcement, reader)
                pause = RETRY
            except Exception as error:
                log.error("swap_failed", graph=name, problem=str(error) or repr(error), again_in=pause)
                await self._device.run(self._switch.held_up, name, error, pause)
                self._wanted[name] = announcement or self._wanted.get(name)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_RETRY)
            finally:
                await self._in_files(reader.close)

    # -- at a model event -------------------------------------------------------------------------------------

    async def _go_on(self, name: str, reader: _GraphLog) -> None:
        """Where a graph stands at a model event, get the version ready and go on behind it; others go on meanwhile."""
        while (standing := await self._step(self._switch.standing, name)) is not None and standing.behind:
            if standing.switch is None:
                done = await self._read_on(name, reader)
            elif standing.is_ready:
                done = await self._worker.process_beside(partial(self._switch.take_over, name))
            else:
                done = await self._get_ready(name, standing, standing.switch.event.version, reader)
            if not done:
                return  # the worker ends

    async def _get_ready(self, name: str, standing: Standing, version: str, reader: _GraphLog) -> bool:
        incoming = standing.incoming
        if incoming is None or incoming.version != version or incoming.offset > standing.offset:
            log.info("not_ready", graph=name, version=version, present=standing.present.version, offset=standing.offset)
            named = partial(self._loader.named, name, version, standing.present, standing.log_id, standing.offset)
            try:
                incoming = await self._put_beside(*await self._in_files(named))
            except Unusable as problem:
                return await self._worker.process_beside(partial(self._switch.refuse, name, problem))
        if incoming is not None:
            await self._bring(incoming, reader)
        return True

    async def _read_on(self, name: str, reader: _GraphLog) -> bool:
        """What was delivered while the graph stood there is read from the log, and answered."""
        while (offsets := await self._step(self._switch.missed, name)) is not None:
            records = await self._in_files(reader.read, offsets)
            for part in offsets.cut(self._slice):
                some = [record for record in records if part.start <= record.offset < part.end]
                if not await self._worker.process_beside(partial(self._switch.read_on, name, part, some)):
                    return False
        return True

    # -- a version that the store wishes for ------------------------------------------------------------------

    async def _prepare(self, name: str, announcement: Announcement | None, reader: _GraphLog) -> None:
        """Where the store says that another version should answer, bring it beside the present one and say so."""
        standing = await self._device.run(self._switch.expect_model, name)
        if standing is None:
            return  # a graph that is not here is looked at when it comes
        version = await self._in_files(self._loader.present_version, name)
        if version is None or version == standing.present.version:
            return
        while self._preparing is not None and name not in self._wanted:
            await asyncio.sleep(IDLE)
        if self._preparing is not None:
            self._wanted[name] = announcement or self._wanted.get(name)
            return
        self._preparing = name
        try:
            if announcement is None or announcement.version != version:
                announcement = await self._in_files(self._loader.wish, name, version)
            incoming = await self._candidate(announcement, standing, reader)
            if incoming is not None and not incoming.announced:
                await self._bring(incoming, reader)
                await self._announce(incoming, standing)
        except InputError as error:
            self._metrics.refusals.labels(name).inc()
            present = standing.present.version
            log.error("model_refused", graph=name, version=version, present=present, problem=str(error))
        finally:
            self._preparing = None

    async def _candidate(self, wished: Announcement, standing: Standing, reader: _GraphLog) -> IncomingGraph | None:
        if standing.incoming is not None and standing.incoming.version == wished.version:
            return standing.incoming
        log.info("swap_begins", graph=wished.graph, version=wished.version, present=standing.present.version)
        end = await self._in_files(reader.end, standing.partition)
        candidate = partial(self._loader.candidate, wished, standing.present, standing.log_id, end)
        return await self._put_beside(*await self._in_files(candidate))

    async def _announce(self, incoming: IncomingGraph, standing: Standing) -> None:
        """Write the model event, unless the graph has come to another meanwhile; it takes effect where it stands."""
        name, before = incoming.graph.name, standing.present.version
        now = await self._device.run(self._switch.standing, name)
        if now is None or now.incoming is not incoming or now.switch is not None or not incoming.follows:
            return
        if await self._in_files(self._loader.present_version, name) != incoming.version:
            await self._device.run(self._switch.dismiss, incoming)
            self._wanted.setdefault(name, None)
            return
        event = encode_model(incoming.version, after=before)
        offset = await self._in_files(append_event, self._connection, self._topics, name, event)
        incoming.announced = True
        log.info(
            "model_event_written",
            graph=name,
            version=incoming.version,
            after=before,
            offset=offset,
            seconds=round(time.perf_counter() - incoming.began, 3),
            longest_step=round(incoming.longest_step, 4),
        )

    # -- both -------------------------------------------------------------------------------------------------

    async def _put_beside(self, graph: LiveGraph, offset: int) -> IncomingGraph | None:
        moving, moved = self._loader.move(graph), object()
        while await self._step(next, moving, moved) is not moved:
            pass
        return await self._step(self._switch.put_beside, graph, offset)

    async def _bring(self, incoming: IncomingGraph, reader: _GraphLog) -> None:
        """Let an incoming graph take the log in until it follows the present one, or nobody waits for it any more."""
        while (offsets := await self._step(self._switch.next_range, incoming)) is not None:
            records = [] if offsets.is_empty else await self._in_files(reader.read, offsets)
            for part in offsets.cut(self._slice):
                some = [record for record in records if part.start <= record.offset < part.end]
                took = await self._timed(partial(self._switch.advance, incoming, part, some))
                incoming.longest_step = max(incoming.longest_step, took)

    async def _step(self, work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Something of the swap on the device's thread, between two live batches."""
        result: list[T] = []
        await self._timed(lambda: result.append(work(*arguments, **options)))
        return result[0]

    async def _timed(self, work: Callable[[], None]) -> float:
        """The same; how long it had the device."""

        def timed() -> float:
            began = time.perf_counter()
            work()
            return time.perf_counter() - began

        took = await self._device.run(timed)
        self._metrics.swap_step.observe(took)
        return took

    async def _in_files(self, work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._files, lambda: work(*arguments, **options))


class _GraphLog:
    """A graph's records in its partition; the log is opened when it is first read. For the thread that reads files."""

    def __init__(self, connection: Connection, topic: str, key: bytes) -> None:
        self._open, self._key = partial(open_log, connection, topic), key
        self._closing = ExitStack()
        self._reader: LogReader | None = None

    def read(self, offsets: OffsetRange) -> list[Record]:
        """The graph's records in a range."""
        found = self._opened().read(offsets.partition, offsets.start, offsets.end)
        return [record for record in found if record.key == self._key]

    def end(self, partition: int) -> int:
        """The offset that the next event will get."""
        return self._opened().bounds(partition)[1]

    def close(self) -> None:
        """Take leave of the broker, if it was asked."""
        self._closing.close()

    def _opened(self) -> LogReader:
        if self._reader is None:
            self._reader = self._closing.enter_context(self._open())
        return self._reader

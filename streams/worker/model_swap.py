"""Hot swap: hears of new bundles, loads them beside the present ones, and lets them catch up and take over.

Reading files and the log, and putting the new graph together, happens on a thread of its own. The device's thread gets
slices of at most a batch, in turn with live batches, so a swap under way delays no prediction by more than one batch.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, ParamSpec, TypeVar

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from adatkg_core.errors import AdatkgError
from adatkg_core.messages import Announcement, Unusable, decode_announcement
from adatkg_core.runtime import Retry
from adatkg_core.storage import Bundle
from streams.kafka import Connection, LogReader, Record, Topics, open_log
from streams.worker.device import DeviceThread
from streams.worker.graph_host import GraphHost
from streams.worker.incoming_graph import IncomingGraph, OffsetRange
from streams.worker.live_graph import LiveGraph
from streams.worker.loader import Loader
from streams.worker.metrics import Metrics

IDLE = 0.1  # seconds between looks while a bundle whose state is ahead waits for a worker that lags
RETRY = 2.0  # seconds before the announcements are read again after brokers were away
STOP_WITHIN = 5.0  # seconds for a read of files or the log that is under way; after it nobody waits for its result
P = ParamSpec("P")
T = TypeVar("T")
log = structlog.get_logger()


class ModelSwap:
    """Follows the announcements; one swap at a time."""

    def __init__(
        self,
        connection: Connection,
        topics: Topics,
        loader: Loader,
        host: GraphHost,
        device: DeviceThread,
        metrics: Metrics,
        batch_events: int,
    ) -> None:
        self._connection, self._topics = connection, topics
        self._loader, self._host, self._device, self._metrics = loader, host, device, metrics
        self._batch_events = batch_events
        self._files = ThreadPoolExecutor(1, "bundles")
        self._longest = 0.0  # seconds that a step of the present swap has had the device
        self._stopped = False
        self._running: asyncio.Task[Any] | None = None

    async def run(self) -> None:
        """Hear and act until stopped; every worker hears every announcement, from the first that is kept."""
        self._running = asyncio.current_task()
        retry = Retry("announcements_away", KafkaError, RETRY, level="warning")
        while not self._stopped:
            await retry.run_async(self._follow, self._topics.models)

    async def hear(self, data: bytes | None) -> None:
        """Act on an announcement; returns once what it names answers, or is refused, or does not matter here."""
        try:
            announcement = decode_announcement(data)
        except Unusable as problem:
            log.warning("announcement_unusable", problem=problem.detail)
            return
        if announcement.status != "present":
            return
        graph, version = announcement.graph, announcement.version
        present = await self._device.run(self._present, graph)
        if present is None or present.version == version:
            return  # a graph that is not here is loaded with its present bundle when it comes
        began, self._longest = time.perf_counter(), 0.0
        try:
            if await self._in_files(self._loader.present_version, graph) != version:
                return  # an old announcement, since overtaken
            log.info("swap_begins", graph=graph, version=version, present=present.version)
            await self._swap(announcement, present)
        except AdatkgError as error:
            self._metrics.refusals.labels(graph).inc()
            log.error("model_refused", graph=graph, version=version, present=present.version, problem=str(error))
            await self._device.run(self._dismiss, graph)
            return
        answering = await self._device.run(self._present, graph)
        if answering is not None and answering.version == version:
            took = time.perf_counter() - began
            self._metrics.swaps.labels(graph).inc()
            self._metrics.swap_seconds.observe(took)
            longest = round(self._longest, 4)
            log.info("swapped", graph=graph, version=version, seconds=round(took, 3), longest_step=longest)

    async def stop(self) -> None:
        """Hear no more and give up a swap that is under way, while the device's thread is still there for it."""
        self._stopped = True
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await asyncio.wait([self._running], timeout=STOP_WITHIN)
        self._files.shutdown(wait=False, cancel_futures=True)

    async def _follow(self) -> None:
        consumer = AIOKafkaConsumer(**self._connection.client(), auto_offset_reset="earliest")
        try:
            await consumer.start()
            consumer.assign([TopicPartition(self._topics.models, 0)])
            async for record in consumer:
                await self.hear(record.value)
        finally:
            await consumer.stop()

    async def _swap(self, announcement: Announcement, present: Bundle) -> None:
        graph, offset = await self._in_files(self._loader.candidate, announcement, present)
        moving, moved = self._loader.move(graph), object()
        while await self._step(next, moving, moved) is not moved:
            pass
        offsets = await self._step(self._prepare, graph, offset)
        closing, idle = ExitStack(), False
        try:
            reader = await self._in_files(closing.enter_context, open_log(self._connection, self._topics.events))
            while offsets is not None:
                records: list[Record] = []
                if not offsets.is_empty:
                    records = await self._in_files(_of_graph, reader, offsets, graph.name.encode())
                elif idle:
                    await asyncio.sleep(IDLE)
                following = await self._step(self._advance, graph.name, offsets, records)
                offsets, idle = following, following == offsets
        finally:
            await self._in_files(closing.close)

    # -- on the device's thread -------------------------------------------------------------------------------

    def _present(self, name: str) -> Bundle | None:
        """What answers for a graph; where it is not loaded, None, and its model is looked for at its next event."""
        self._host.expect_model(name)
        hosted = self._host.find(name)
        return None if hosted is None else hosted.graph.bundle

    def _prepare(self, graph: LiveGraph, offset: int) -> OffsetRange | None:
        """Put a graph that stands at `offset` beside the present one; says which part of the log it wants first.

        None where the graph is not here.
        """
        hosted = self._host.find(graph.name)
        if hosted is None:
            return None
        hosted.incoming = IncomingGraph(graph, hosted.partition, offset, self._batch_events)
        return hosted.incoming.next_range(self._host.position(hosted))

    def _advance(self, name: str, offsets: OffsetRange, records: Sequence[Record]) -> OffsetRange | None:
        """Let the incoming graph take in a part of the log; None once it has taken over, or the graph has left."""
        hosted = self._host.find(name)
        if hosted is None or hosted.incoming is None:
            return None
        incoming = hosted.incoming
        incoming.apply(offsets, records)
        present = self._host.position(hosted)
        if incoming.is_level(present):
            hosted.take_over(incoming)
            return None
        return incoming.next_range(present)

    def _dismiss(self, name: str) -> None:
        """No swap after all; the present bundle goes on."""
        hosted = self._host.find(name)
        if hosted is not None:
            hosted.incoming = None

    # -- threads ----------------------------------------------------------------------------------------------

    async def _step(self, work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Something of the swap on the device's thread, between two live batches, and how long it had the device."""

        def timed() -> tuple[T, float]:
            began = time.perf_counter()
            return work(*arguments, **options), time.perf_counter() - began

        result, took = await self._device.run(timed)
        self._metrics.swap_step.observe(took)
        self._longest = max(self._longest, took)
        return result

    async def _in_files(self, work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._files, lambda: work(*arguments, **options))


def _of_graph(reader: LogReader, offsets: OffsetRange, key: bytes) -> list[Record]:
    return [record for record in reader.read(offsets.partition, offsets.start, offsets.end) if record.key == key]

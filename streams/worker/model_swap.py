"""Hot swap: hears of new bundles, loads them beside the present ones, and lets them catch up and take over.

Reading files and the log, and putting the new graph together, happens on a thread of its own. The device's thread gets
slices of at most a batch, in turn with live batches, so a swap under way delays no prediction by more than one batch.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from adatkg_core.errors import AdatkgError
from adatkg_core.messages import Announcement, Unusable, decode_announcement
from adatkg_core.storage import Bundle
from streams.kafka import Connection, LogReader, Record, Topics, open_log
from streams.worker.graph_host import Host
from streams.worker.incoming_graph import Stretch
from streams.worker.metrics import Metrics

IDLE = 0.1  # seconds between looks while a bundle whose state is ahead waits for a worker that lags
RETRY = 2.0  # seconds before the announcements are read again after brokers were away
OnDevice = Callable[..., Awaitable[Any]]
log = structlog.get_logger()


class Swapper:
    """Follows the announcements; one swap at a time."""

    def __init__(
        self, connection: Connection, topics: Topics, host: Host, on_device: OnDevice, metrics: Metrics
    ) -> None:
        self._connection, self._topics = connection, topics
        self._host, self._on_device, self._metrics = host, on_device, metrics
        self._files = ThreadPoolExecutor(1, "bundles")
        self._longest = 0.0  # seconds that a step of the present swap has had the device

    async def run(self) -> None:
        """Hear and act until cancelled; every worker hears every announcement, from the first that is kept."""
        while True:
            consumer = AIOKafkaConsumer(**self._connection.client(), auto_offset_reset="earliest")
            try:
                await consumer.start()
                consumer.assign([TopicPartition(self._topics.models, 0)])
                async for record in consumer:
                    await self._hear(record.value)
            except KafkaError as error:
                log.warning("announcements_away", problem=repr(error), again_in=RETRY)
                await asyncio.sleep(RETRY)
            finally:
                await consumer.stop()

    def close(self) -> None:
        """End the thread."""
        self._files.shutdown(wait=False, cancel_futures=True)

    async def _hear(self, data: bytes | None) -> None:
        try:
            announcement = decode_announcement(data)
        except Unusable as problem:
            log.warning("announcement_unusable", problem=problem.detail)
            return
        if announcement.status != "present":
            return
        graph, version = announcement.graph, announcement.version
        present: Bundle | None = await self._on_device(self._host.seated, graph)
        if present is None or present.version == version:
            return  # a graph that is not here is loaded with its present bundle when it comes
        began, self._longest = time.perf_counter(), 0.0
        try:
            if await self._in_files(self._host.loader.present_version, graph) != version:
                return  # an old announcement, since overtaken
            log.info("swap_begins", graph=graph, version=version, present=present.version)
            await self._swap(announcement, present)
        except AdatkgError as error:
            self._metrics.refusals.labels(graph).inc()
            log.error("model_refused", graph=graph, version=version, present=present.version, problem=str(error))
            await self._on_device(self._host.dismiss, graph)
            return
        seated: Bundle | None = await self._on_device(self._host.seated, graph)
        if seated is not None and seated.version == version:
            took = time.perf_counter() - began
            self._metrics.swaps.labels(graph).inc()
            self._metrics.swap_seconds.observe(took)
            longest = round(self._longest, 4)
            log.info("swapped", graph=graph, version=version, seconds=round(took, 3), longest_step=longest)

    async def _swap(self, announcement: Announcement, present: Bundle) -> None:
        graph, offset = await self._in_files(self._host.loader.beside, announcement, present)
        moving = self._host.loader.move(graph)
        while await self._step(next, moving, self) is not self:
            pass
        stretch: Stretch | None = await self._step(self._host.prepare, graph, offset)
        closing, idle = ExitStack(), False
        try:
            reader = await self._in_files(closing.enter_context, open_log(self._connection, self._topics.events))
            while stretch is not None:
                records: list[Record] = []
                if stretch.start < stretch.end:
                    records = await self._in_files(_of_graph, reader, stretch, graph.name.encode())
                elif idle:
                    await asyncio.sleep(IDLE)
                following = await self._step(self._host.advance, graph.name, stretch, records)
                stretch, idle = following, following == stretch
        finally:
            await self._in_files(closing.close)

    async def _step(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Something of the swap on the device's thread, between two live batches, and how long it had the device."""

        def timed() -> tuple[Any, float]:
            began = time.perf_counter()
            return work(*arguments), time.perf_counter() - began

        result, took = await self._on_device(timed)
        self._metrics.swap_step.observe(took)
        self._longest = max(self._longest, took)
        return result

    async def _in_files(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._files, work, *arguments)


def _of_graph(reader: LogReader, stretch: Stretch, key: bytes) -> list[Record]:
    return [record for record in reader.read(stretch.partition, stretch.start, stretch.end) if record.key == key]

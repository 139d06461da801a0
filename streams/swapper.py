"""Hot swap: hears of new bundles, loads them beside the present ones, and lets them catch up and take over.

Reading files and the log happens on a thread of its own. The device's thread gets slices of at most a batch, in turn
with live batches, so a swap under way delays no prediction by more than one batch.
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

from adatkg_core.announcements import Announcement, decode_announcement
from adatkg_core.bundle import Bundle
from adatkg_core.errors import AdatkgError
from adatkg_core.messages import Unusable
from adatkg_core.model_store import ModelStore
from adatkg_core.snapshots import Saved
from streams.connection import Connection
from streams.host import Host
from streams.log import LogReader, Record, open_log
from streams.metrics import Metrics
from streams.successor import Stretch
from streams.topics import Topics

IDLE = 0.1  # seconds between looks while a bundle whose state is ahead waits for a worker that lags
RETRY = 2.0  # seconds before the announcements are read again after brokers were away
OnDevice = Callable[..., Awaitable[Any]]
log = structlog.get_logger()


class Swapper:
    """Follows the announcements; one swap at a time."""

    def __init__(
        self,
        connection: Connection,
        topics: Topics,
        models: str,
        device: str,
        host: Host,
        on_device: OnDevice,
        metrics: Metrics,
    ) -> None:
        self._connection, self._topics, self._device = connection, topics, device
        self._models, self._host, self._on_device, self._metrics = ModelStore(models), host, on_device, metrics
        self._files = ThreadPoolExecutor(1, "bundles")

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
        seated = await self._on_device(self._host.seated, graph)
        if seated is None or seated == version:
            return  # a graph that is not here is loaded with its present bundle when it comes
        began = time.perf_counter()
        try:
            if await self._in_files(self._models.present, graph) != version:
                return  # an old announcement, since overtaken
            log.info("swap_begins", graph=graph, version=version, present=seated)
            await self._swap(announcement)
        except AdatkgError as error:
            self._metrics.refusals.labels(graph).inc()
            log.error("model_refused", graph=graph, version=version, present=seated, problem=str(error))
            await self._on_device(self._host.dismiss, graph)
            return
        seated = await self._on_device(self._host.seated, graph)
        if seated == version:
            took = time.perf_counter() - began
            self._metrics.swaps.labels(graph).inc()
            self._metrics.swap_seconds.observe(took)
            log.info("swapped", graph=graph, version=version, seconds=round(took, 3))

    async def _swap(self, announcement: Announcement) -> None:
        graph = announcement.graph
        bundle, saved = await self._in_files(self._load, graph, announcement.version)
        stretch: Stretch | None = await self._on_device(self._host.prepare, graph, bundle, saved, announcement)
        closing, idle = ExitStack(), False
        try:
            reader = await self._in_files(closing.enter_context, open_log(self._connection, self._topics.events))
            while stretch is not None:
                records: list[Record] = []
                if stretch.start < stretch.end:
                    records = await self._in_files(_of_graph, reader, stretch, graph.encode())
                elif idle:
                    await asyncio.sleep(IDLE)
                following = await self._on_device(self._host.advance, graph, stretch, records)
                stretch, idle = following, following == stretch
        finally:
            await self._in_files(closing.close)

    def _load(self, graph: str, version: str) -> tuple[Bundle, Saved | None]:
        return self._models.bundle(graph, version, self._device), self._models.state(graph, version, self._device)

    async def _in_files(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._files, work, *arguments)


def _of_graph(reader: LogReader, stretch: Stretch, key: bytes) -> list[Record]:
    return [record for record in reader.read(stretch.partition, stretch.start, stretch.end) if record.key == key]

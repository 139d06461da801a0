"""How what was taken in becomes durable, so that a kill at any moment loses nothing."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import structlog

from streams.settings import StreamSettings
from streams.worker.device import DeviceThread
from streams.worker.graph_host import Capture, GraphHost
from streams.worker.intake import Delivery
from streams.worker.loader import Loader
from streams.worker.metrics import Metrics
from streams.worker.publisher import Publisher

RETRY = 5.0  # seconds before a snapshot that failed is tried again
HELD = 10  # times what a snapshot covers: so much may wait for one before no more is taken in
log = structlog.get_logger()


class Checkpointer:
    """Holds deliveries until a snapshot covers them, and acknowledges them then."""

    def __init__(
        self,
        settings: StreamSettings,
        device: DeviceThread,
        host: GraphHost,
        loader: Loader,
        publisher: Publisher,
        metrics: Metrics,
    ) -> None:
        self._settings, self._device, self._host = settings, device, host
        self._loader, self._publisher, self._metrics = loader, publisher, metrics
        self._disk = ThreadPoolExecutor(1, "disk")
        self._held: dict[int, deque[Delivery]] = {}  # processed, not acknowledged, per partition
        self._since = 0  # events since the last snapshot
        self._oldest: float | None = None  # when the first event came that the last snapshot lacks
        self._not_before = 0.0  # when a snapshot may be tried again after one that failed
        self._turn = asyncio.Lock()  # held by the snapshot that is under way
        self._background: asyncio.Task[None] | None = None
        self.broken = False  # a batch failed halfway: what is in memory must never be saved

    # -- what waits -------------------------------------------------------------------------------------------

    @contextmanager
    def hold(self, deliveries: Sequence[Delivery]) -> Iterator[None]:
        """Around the processing of a batch, from the device to the publisher; then its events wait for a snapshot.

        Where it fails halfway nothing is saved any more: the next start begins before the batch.
        """
        try:
            yield
        except BaseException:
            self.broken = True
            raise
        for delivery in deliveries:
            delivery.message.value = None  # held until a snapshot covers it, but no longer read
            self._held.setdefault(delivery.message.partition, deque()).append(delivery)
        self._since += len(deliveries)
        if self._oldest is None:
            self._oldest = time.monotonic()
            self._metrics.durable_up_to(self._oldest)

    def keep_only(self, partitions: Collection[int]) -> None:
        """Forget what others acknowledge now."""
        self._held = {number: held for number, held in self._held.items() if number in partitions}

    @property
    def holds_too_much(self) -> bool:
        """Snapshots fail while events come in: better to wait than to fill the memory."""
        return sum(map(len, self._held.values())) > HELD * self._settings.snapshot_events

    # -- snapshots --------------------------------------------------------------------------------------------

    @property
    def due(self) -> bool:
        """Whether enough is new, or for long enough, and no snapshot is under way or has failed just now."""
        now = time.monotonic()
        late = self._oldest is not None and now - self._oldest >= self._settings.snapshot_seconds
        enough = self._since >= self._settings.snapshot_events
        return (late or enough) and now >= self._not_before and not self._turn.locked()

    def start(self) -> None:
        """Settle beside the batches that follow."""
        if self._background is None or self._background.done():
            self._background = asyncio.create_task(self.settle())

    async def settle(self) -> None:
        """Make everything that was taken in durable and acknowledge it; what fails is tried again later."""
        async with self._turn:
            since, oldest = self._since, self._oldest
            try:
                await self._save()
            except Exception as error:
                self._metrics.snapshot_failures.inc()
                log.error("snapshot_failed", problem=str(error), again_in=RETRY)
                self._since, self._oldest = max(since, self._since), oldest
                self._not_before = time.monotonic() + RETRY
                await asyncio.sleep(RETRY if self.holds_too_much else 0)

    async def _save(self) -> None:
        """What was taken in becomes durable, in this order, so that a kill between two steps loses nothing:

        1. the states are copied on the device's thread, between two batches;
        2. all predictions and dead letters so far are durable at the brokers;
        3. the copies are written to the store;
        4. the events below them are acknowledged, and Faust commits their offsets.
        """
        began = time.perf_counter()
        async with self._device.turn:
            if self.broken:
                log.error("not_saved", problem="a batch failed halfway; the next start begins before it")
                return
            self._since, self._oldest = 0, None
            capture = await self._device.run(self._host.capture)
        await self._publisher.flush()
        await asyncio.get_running_loop().run_in_executor(self._disk, self._write, capture)
        await self._device.run(self._host.saved, capture)
        acknowledged = self._acknowledge(capture.positions)
        self._metrics.durable_up_to(self._oldest)
        took = time.perf_counter() - began
        self._metrics.snapshot.observe(took)
        log.info("snapshot", graphs=len(capture.states), acknowledged=acknowledged, seconds=round(took, 3))

    def _write(self, capture: Capture) -> None:
        """Touches no device, so batches go on meanwhile."""
        for saved in capture.states:
            self._loader.save(saved)

    def _acknowledge(self, positions: dict[int, int]) -> int:
        """What lies below these offsets need not come again; returns how many events that were."""
        acknowledged = 0
        for number, offset in positions.items():
            held = self._held.get(number, deque())
            while held and held[0].message.offset < offset:
                held.popleft().ack()
                acknowledged += 1
        return acknowledged

    def close(self) -> None:
        """End the thread that writes."""
        self._disk.shutdown(wait=False, cancel_futures=True)

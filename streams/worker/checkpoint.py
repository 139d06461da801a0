"""How what was taken in becomes durable, so that a kill at any moment loses nothing."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import structlog

from adatkg_core.errors import AdatkgError
from streams.settings import StreamSettings
from streams.worker.capture import Capture
from streams.worker.device import DeviceThread
from streams.worker.graph_host import GraphHost
from streams.worker.incident import IncidentKind, Incidents
from streams.worker.intake import Delivery
from streams.worker.loader import Loader
from streams.worker.metrics import Metrics
from streams.worker.publisher import Publisher

RETRY = 5.0  # seconds before a snapshot that failed is tried again
Commit = Callable[[int, int], Awaitable[None]]  # of a partition: what lies below an offset need not come again
HELD = 10  # times what a snapshot covers: so much may wait for one before no more is taken in
log = structlog.get_logger()


async def _commit_nothing(partition: int, offset: int) -> None:
    """Where nobody delivers anything."""


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
        incidents: Incidents | None = None,
        commit: Commit = _commit_nothing,
    ) -> None:
        """`commit` is asked for where acknowledging is not enough: events in between were let go of."""
        self._settings, self._device, self._host = settings, device, host
        self._loader, self._publisher, self._metrics = loader, publisher, metrics
        self._disk = ThreadPoolExecutor(1, "disk")
        self._incidents, self._commit = incidents or Incidents(), commit
        self._held: dict[int, deque[Delivery]] = {}  # processed, not acknowledged, per partition
        self._let_go: dict[int, int] = {}  # partitions in which events were let go of: what is acknowledged of them
        self._since = 0  # events since the last snapshot
        self._oldest: float | None = None  # when the first event came that the last snapshot lacks
        self._saving: float | None = None  # the same of the snapshot that is under way
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
            self._show_age()

    def keep_only(self, partitions: Collection[int]) -> None:
        """Forget what others acknowledge now."""
        self._held = {number: held for number, held in self._held.items() if number in partitions}
        self._let_go = {number: offset for number, offset in self._let_go.items() if number in partitions}

    def give_up(self) -> None:
        """Nothing is saved or acknowledged any more: what is in memory is of no log that there is."""
        self.broken = True

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
        """Make everything that was taken in durable and acknowledge it; what fails or is cancelled is tried again."""
        async with self._turn:
            since, oldest = self._since, self._oldest
            try:
                await self._save()
            except BaseException as error:
                self._since, self._oldest = max(since, self._since), oldest or self._oldest
                if not isinstance(error, Exception):
                    raise
                self._metrics.snapshot_failures.inc()
                log.error("snapshot_failed", problem=str(error), again_in=RETRY)
                self._not_before = time.monotonic() + RETRY
                await asyncio.sleep(RETRY if self.holds_too_much else 0)
            finally:
                self._saving = None
                self._show_age()

    async def _save(self) -> None:
        """What was taken in becomes durable, in this order, so that a kill between two steps loses nothing:

        1. the states are copied as they are between two batches, in small steps on the device's thread;
        2. all predictions and dead letters so far are durable at the brokers;
        3. the copies are written to the store;
        4. the events below them are acknowledged, and Faust commits their offsets.
        """
        began = time.perf_counter()
        async with self._device.turn:
            if self.broken:
                log.error(
                    "not_saved",
                    problem="a batch failed halfway, or the log was made anew; the next start begins before it",
                )
                return
            self._since, self._oldest, self._saving = 0, None, self._oldest
            capture = await self._device.run(self._host.capture)
        await self._device.run_through(capture.copy())
        await self._publisher.flush()
        failed = await asyncio.get_running_loop().run_in_executor(self._disk, self._write, capture)
        if failed and len(failed) == len(capture.states):
            raise next(iter(failed.values()))
        saved, waiting = self._without(capture, failed)
        await self._device.run(self._host.saved, saved)
        acknowledged = await self._acknowledge(saved.positions, waiting)
        if failed:
            raise next(iter(failed.values()))
        took = time.perf_counter() - began
        self._metrics.snapshot.observe(took)
        log.info("snapshot", graphs=len(capture.states), acknowledged=acknowledged, seconds=round(took, 3))

    def _write(self, capture: Capture) -> dict[int, AdatkgError]:
        """Write the states, each for itself; which could not be written. Touches no device, so batches go on."""
        failed = {}
        for i, state in enumerate(capture.states):
            try:
                self._loader.save(state.saved())
            except AdatkgError as error:
                failed[i] = error
                self._incidents.report(state.graph, IncidentKind.SNAPSHOT_FAILED, str(error), RETRY)
            else:
                self._incidents.end(state.graph, IncidentKind.SNAPSHOT_FAILED)
        return failed

    def _without(self, capture: Capture, failed: Collection[int]) -> tuple[Capture, dict[int, int]]:
        """What is durable of a capture, and from which offsets on events of its partitions must come again."""
        waiting = dict(capture.waiting)
        for number in {capture.graphs[i].partition for i in failed}:
            if held := self._held.get(number):
                waiting[number] = min(waiting.get(number, held[0].message.offset), held[0].message.offset)
        kept = [i for i in range(len(capture.states)) if i not in failed]
        states, graphs = [capture.states[i] for i in kept], [capture.graphs[i] for i in kept]
        return Capture(tuple(states), capture.positions, tuple(graphs)), waiting

    async def _acknowledge(self, positions: dict[int, int], waiting: dict[int, int]) -> int:
        """What lies below these offsets need not come again, where nothing waits; returns how many events that were.

        What lies behind an event that waits is durable, but must not be committed. When it gets too much it is let go
        of, or it would fill the memory; once nothing waits any more the offset is committed outright.
        """
        acknowledged = 0
        for number, offset in positions.items():
            held = self._held.get(number, deque())
            below = min(offset, waiting.get(number, offset))
            if number in self._let_go and below > self._let_go[number]:
                await self._commit(number, below)
                del self._let_go[number]
            while held and held[0].message.offset < below:
                held.popleft().ack()
                acknowledged += 1
            if below < offset and self.holds_too_much:
                while held and held[0].message.offset < offset:
                    held.popleft()
                self._let_go.setdefault(number, below)
        return acknowledged

    def _show_age(self) -> None:
        """Until a snapshot has succeeded, the oldest event is the one that it would have covered."""
        self._metrics.durable_up_to(self._saving if self._saving is not None else self._oldest)

    def close(self) -> None:
        """End the thread that writes."""
        self._disk.shutdown(wait=False, cancel_futures=True)

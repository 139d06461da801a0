"""How what was taken in becomes durable, so that a kill at any moment loses nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import structlog

from adatkg_core.errors import AdatkgError
from streams.settings import StreamSettings
from streams.worker.capture import Capture
from streams.worker.device import DeviceThread
from streams.worker.graph_host import GraphHost
from streams.worker.incident import IncidentKind, Incidents
from streams.worker.loader import Loader
from streams.worker.metrics import Metrics
from streams.worker.publisher import Publisher

COMMIT_WITHIN = 10.0  # seconds; brokers that are away must not hold up the end of a worker for longer
RETRY = 5.0  # seconds before a snapshot that failed is tried again
Commit = Callable[[int, int], Awaitable[None]]  # of a partition: what lies below an offset need not come again
BEHIND = 10  # times what a snapshot covers: so much may be in none before no more is taken in
log = structlog.get_logger()


async def _commit_nothing(partition: int, offset: int) -> None:
    """Where nobody delivers anything."""


class Checkpointer:
    """Counts what was taken in until a snapshot covers it, and commits then up to where nothing is needed again."""

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
        """`commit` is told only of what is durable."""
        self._settings, self._device, self._host = settings, device, host
        self._loader, self._publisher, self._metrics = loader, publisher, metrics
        self._disk = ThreadPoolExecutor(1, "disk")
        self._incidents, self._commit = incidents or Incidents(), commit
        self._ours: frozenset[int] | None = None  # our partitions; None before any were assigned
        self._committed: dict[int, int] = {}  # by partition
        self._since = 0  # events since the last snapshot
        self._under_way = 0  # events that the snapshot covers which is being made
        self._oldest: float | None = None  # when the first event came that the last snapshot lacks
        self._saving: float | None = None  # the same of the snapshot that is under way
        self._not_before = 0.0  # when a snapshot may be tried again after one that failed
        self._turn = asyncio.Lock()  # held by the snapshot that is under way
        self._background: asyncio.Task[None] | None = None
        self.broken = False  # a batch failed halfway: what is in memory must never be saved

    # -- what waits -------------------------------------------------------------------------------------------

    @contextmanager
    def processing(self) -> Iterator[None]:
        """Around the processing of a batch, from the device to the publisher; then a snapshot has to cover it.

        Where it fails halfway nothing is saved any more: the next start begins before the batch.
        """
        try:
            yield
        except BaseException:
            self.broken = True
            raise
        if self._oldest is None:
            self._oldest = time.monotonic()
            self._show_age()

    def took(self, events: int) -> None:
        """So many events were processed."""
        self._since += events

    def keep_only(self, partitions: Collection[int]) -> None:
        """What others commit now is not committed here."""
        self._ours = frozenset(partitions)
        self._committed = {number: offset for number, offset in self._committed.items() if number in partitions}

    def give_up(self) -> None:
        """Nothing is saved or committed any more: what is in memory is of no log that there is."""
        self.broken = True

    @property
    def is_far_behind(self) -> bool:
        """Snapshots fail while events come in: better to wait than to have ever more to do again after a kill."""
        return self._since + self._under_way > BEHIND * self._settings.snapshot_events

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
        """Make everything that was taken in durable and commit it; what fails or is cancelled is tried again."""
        async with self._turn:
            oldest = self._oldest
            try:
                await self._save()
            except BaseException as error:
                self._since, self._under_way = self._since + self._under_way, 0
                self._oldest = oldest or self._oldest
                if not isinstance(error, Exception):
                    raise
                self._metrics.snapshot_failures.inc()
                log.error("snapshot_failed", problem=str(error), again_in=RETRY)
                self._not_before = time.monotonic() + RETRY
                await asyncio.sleep(RETRY if self.is_far_behind else 0)
            finally:
                self._saving, self._under_way = None, 0
                self._show_age()

    async def _save(self) -> None:
        """What was taken in becomes durable, in this order, so that a kill between two steps loses nothing:

        1. the states are copied as they are between two batches, in small steps on the device's thread;
        2. all predictions and dead letters so far are durable at the brokers;
        3. the copies are written to the store;
        4. the offsets are committed below which every event is in them.
        """
        began = time.perf_counter()
        async with self._device.turn:
            if self.broken:
                log.error(
                    "not_saved",
                    problem="a batch failed halfway, or the log was made anew; the next start begins before it",
                )
                return
            self._since, self._under_way = 0, self._since
            self._oldest, self._saving = None, self._oldest
            capture = await self._device.run(self._host.capture)
        await self._device.run_through(capture.copy())
        await self._publisher.flush()
        self._go_on_unless_given_up()
        failed = await asyncio.get_running_loop().run_in_executor(self._disk, self._write, capture)
        if failed and len(failed) == len(capture.states):
            raise next(iter(failed.values()))
        saved = self._without(capture, failed)
        await self._device.run(self._host.saved, saved)
        committed = await self._commit_durable(saved)
        if failed:
            raise next(iter(failed.values()))
        took = time.perf_counter() - began
        self._metrics.snapshot.observe(took)
        log.info("snapshot", graphs=len(capture.states), committed=committed, seconds=round(took, 3))

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
            finally:
                state.let_go()  # here, where nothing waits for it
        return failed

    def _without(self, capture: Capture, failed: Collection[int]) -> Capture:
        """What is durable of a capture: nothing is committed of a partition with a state that could not be saved."""
        places = {capture.graphs[i].partition for i in failed}
        positions = {number: offset for number, offset in capture.positions.items() if number not in places}
        kept = [i for i in range(len(capture.states)) if i not in failed]
        states, graphs = [capture.states[i] for i in kept], [capture.graphs[i] for i in kept]
        return Capture(tuple(states), positions, tuple(graphs), capture.waiting)

    async def _commit_durable(self, capture: Capture) -> dict[int, int]:
        """Below these offsets nothing need come again; what is behind something that waits must, durable or not."""
        committed = {}
        for number, offset in capture.positions.items():
            below = min(offset, capture.waiting.get(number, offset))
            ours = self._ours is None or number in self._ours
            if ours and below > self._committed.get(number, 0):
                self._go_on_unless_given_up()
                try:
                    await asyncio.wait_for(self._commit(number, below), COMMIT_WITHIN)
                except TimeoutError as error:
                    problem = f"partition {number}: offset {below} was not committed within {COMMIT_WITHIN:.0f} s"
                    raise AdatkgError(f"{problem}; check the brokers") from error
                self._committed[number] = committed[number] = below
        return committed

    def _go_on_unless_given_up(self) -> None:
        """The log may have been seen to be another one while a snapshot was made."""
        if self.broken:
            raise AdatkgError("a batch failed halfway, or the log was made anew, while the snapshot was made")

    def _show_age(self) -> None:
        """Until a snapshot has succeeded, the oldest event is the one that it would have covered."""
        self._metrics.durable_up_to(self._saving if self._saving is not None else self._oldest)

    def close(self) -> None:
        """End the thread that writes."""
        self._disk.shutdown(wait=False, cancel_futures=True)

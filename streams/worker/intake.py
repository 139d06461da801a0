"""Between Faust and the device: gathers events into batches, sends what comes of them, and acknowledges.

The event loop only moves messages. One thread touches the device; another writes snapshots.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import structlog

from adatkg_core.events import Source
from streams.dead_letters import UNCHANGED, dead_letter_headers
from streams.kafka import Message, Sender, Topics, header
from streams.settings import StreamSettings
from streams.worker.graph_host import Done, GraphStatus, Host
from streams.worker.live_graph import Arrival, Rejected
from streams.worker.metrics import Metrics

STOP_WITHIN = 30.0  # seconds for a last snapshot; without it the next start has more to catch up with, no more
RETRY = 5.0  # seconds before a snapshot that failed is tried again
HELD = 10  # times what a snapshot covers: so much may wait for one before no more is taken in
STALLED = 600.0  # seconds
log = structlog.get_logger()


class Delivery(Protocol):
    """An event as Faust delivers it."""

    message: Any

    def ack(self) -> bool:
        """It is done with and need not come again."""
        ...


class _Taken(NamedTuple):
    """A delivery, and when Faust handed it over, by time.monotonic."""

    delivery: Delivery
    arrived: float


class Pump:
    """Takes deliveries in, and owns every step until they are acknowledged."""

    def __init__(
        self,
        settings: StreamSettings,
        topics: Topics,
        host: Host,
        sender: Sender,
        metrics: Metrics,
        highwater: Callable[[int], int | None],
        watch: Callable[[Done], None] = lambda done: None,
    ) -> None:
        """`watch` hears what came of each batch; it must be quick."""
        self._settings, self._topics, self._host, self._sender, self._metrics = settings, topics, host, sender, metrics
        self._highwater, self._watch = highwater, watch
        self._device = ThreadPoolExecutor(1, "device")
        self._disk = ThreadPoolExecutor(1, "disk")
        self._queue: deque[_Taken] = deque()
        self._arrived, self._drained = asyncio.Event(), asyncio.Event()
        self._held: dict[int, deque[Delivery]] = {}  # taken in, not acknowledged, per partition
        self._since = 0  # events since the last snapshot
        self._oldest: float | None = None  # when the first event came that the last snapshot lacks
        self._not_before = 0.0  # when a snapshot may be tried again after one that failed
        self._owned: set[int] = set()  # our partitions
        self._changed = False  # since the last batch
        self._at: dict[int, int] = {}  # the offset that each of our partitions has come to
        self._broken = False  # a batch failed halfway: what is in memory must never be saved
        self._progress = time.monotonic()
        self._turn = asyncio.Lock()  # held while a batch is on the device
        self._snapshot_turn = asyncio.Lock()
        self._background: set[asyncio.Task[None]] = set()
        self._stopping = False
        self.ready = False  # partitions are assigned: events are taken in

    # -- deliveries -------------------------------------------------------------------------------------------

    async def put(self, delivery: Delivery) -> None:
        """Hand over one delivery; waits while enough for several batches is there already."""
        self._queue.append(_Taken(delivery, time.monotonic()))
        self._arrived.set()
        while len(self._queue) >= 4 * self._settings.batch_events and not self._stopping:
            self._drained.clear()
            await self._drained.wait()

    async def run(self) -> None:
        """Process batches until stopped."""
        while True:
            await self._something_to_do()
            async with self._turn:
                if self._stopping:  # the last snapshot may be made, and the threads ended
                    return
                if self._changed:
                    await self._let_go(self._owned)
                taken = [self._queue.popleft() for _ in range(min(len(self._queue), self._settings.batch_events))]
                batch = [one for one in taken if one.delivery.message.partition in self._owned]
                self._drained.set()
                if batch:
                    await self._process(batch)
            self._maybe_snapshot()
            while self._holds_too_much() and not self._stopping:
                await self.settle()

    def moved(self, partitions: Iterable[int]) -> None:
        """The partitions that are ours have changed; returns at once, for meanwhile no heartbeat tells that we live."""
        self._owned, self._changed = set(partitions), True
        self._queue = deque(one for one in self._queue if one.delivery.message.partition in self._owned)
        self._arrived.set()
        self.ready = not self._stopping

    async def settle(self) -> None:
        """Make everything that was taken in durable and acknowledge it; what fails is tried again later."""
        async with self._snapshot_turn:
            since, oldest = self._since, self._oldest
            try:
                await self._snapshot()
            except Exception as error:
                self._metrics.snapshot_failures.inc()
                log.error("snapshot_failed", problem=str(error), again_in=RETRY)
                self._since, self._oldest = max(since, self._since), oldest
                self._not_before = time.monotonic() + RETRY
                await asyncio.sleep(RETRY if self._holds_too_much() else 0)

    async def stop(self) -> None:
        """Finish the batch on the device, make everything durable, and end; a broker that is away is not waited for."""
        self._stopping, self.ready = True, False
        self._arrived.set()
        self._drained.set()
        try:
            async with asyncio.timeout(STOP_WITHIN):
                await self.settle()
        except TimeoutError:
            log.error("stopped_without_snapshot", within=STOP_WITHIN)
        self._host.give_up()

    @property
    def stalled(self) -> bool:
        """Whether there is something to do and nothing has been done for long."""
        return self._broken or (bool(self._queue) and time.monotonic() - self._progress > STALLED)

    def show_lag(self) -> None:
        """Tell the metrics how far behind the log each of our partitions is."""
        self._metrics.lag.clear()
        for number, lag in self.lags().items():
            self._metrics.lag.labels(str(number)).set(lag)

    def lags(self) -> dict[int, int]:
        """How many events of each of our partitions are not taken in yet, as far as that is known."""
        ends = {number: self._highwater(number) for number in self._at}
        return {number: max(0, end - self._at[number] - 1) for number, end in ends.items() if end is not None}

    @property
    def lag(self) -> int | None:
        """The same over all of our partitions; None while nothing is known."""
        lags = self.lags()
        return sum(lags.values()) if lags else None

    def close(self) -> None:
        """End the threads."""
        self._device.shutdown(wait=False, cancel_futures=True)
        self._disk.shutdown(wait=False, cancel_futures=True)

    # -- private ----------------------------------------------------------------------------------------------

    async def _something_to_do(self) -> None:
        """Returns with what came while the device was busy; from rest, with what comes within a short while."""
        if not self._queue:
            self._arrived.clear()
            await _within(self._arrived.wait(), 1.0)
            if self._queue and len(self._queue) < self._settings.batch_events:
                await asyncio.sleep(self._settings.batch_seconds)

    async def _let_go(self, keep: set[int]) -> None:
        self._changed = False
        await self.on_device(self._host.keep_only, keep)
        self._held = {number: held for number, held in self._held.items() if number in keep}
        self._at = {number: offset for number, offset in self._at.items() if number in keep}

    def _holds_too_much(self) -> bool:
        """Snapshots fail while events come in: better to wait than to fill the memory."""
        return sum(map(len, self._held.values())) > HELD * self._settings.snapshot_events

    async def _process(self, batch: list[_Taken]) -> None:
        arrivals = [_arrival(one) for one in batch]
        began = time.perf_counter()
        try:
            done = await self.on_device(self._host.process, arrivals)
        except BaseException:
            self._broken = True
            raise
        self._metrics.batch.observe(len(batch))
        self._metrics.apply.observe(time.perf_counter() - began)
        self._publish(done)
        for delivery, _ in batch:
            delivery.message.value = None  # held until a snapshot covers it, but no longer read
            self._held.setdefault(delivery.message.partition, deque()).append(delivery)
        self._since += len(batch)
        if self._oldest is None:
            self._oldest = time.monotonic()
            self._metrics.durable_up_to(self._oldest)
        self._progress = time.monotonic()
        self._at |= {one.source.partition: one.source.offset for one in arrivals}
        await self._sender.room()

    def _publish(self, done: Done) -> None:
        self._metrics.count(done.counts)
        if done.answered:
            self._sender.send(
                self._topics.predictions, [Message(one.arrival.key, one.body, []) for one in done.answered]
            )
        for one in done.answered:
            self._metrics.answer.observe(one.latency)
        for graph, number in done.answers.items():
            self._metrics.predictions.labels(graph).inc(number)
        for graph, told in done.graphs.items():
            self._metrics.unsettled.labels(graph).inc(len(told.ended) - sum(told.ended.values()))
        if done.rejected:
            self._sender.send(self._topics.deadletter, [self._dead_letter(graph, one) for graph, one in done.rejected])
        self._watch(done)

    def _dead_letter(self, graph: str, rejected: Rejected) -> Message:
        source = rejected.arrival.source
        self._metrics.dead_letters.labels(graph, rejected.code).inc()
        log.warning(
            "dead_letter",
            graph=graph,
            reason=rejected.code,
            detail=rejected.detail,
            partition=source.partition,
            offset=source.offset,
        )
        headers = dead_letter_headers(
            rejected.code, rejected.detail, self._topics.events, source.partition, source.offset, graph
        )
        return Message(rejected.arrival.key, rejected.arrival.value, headers)

    def _maybe_snapshot(self) -> None:
        late = self._oldest is not None and time.monotonic() - self._oldest >= self._settings.snapshot_seconds
        due = late or self._since >= self._settings.snapshot_events
        due = due and time.monotonic() >= self._not_before
        if due and not self._stopping and not self._snapshot_turn.locked():
            task = asyncio.create_task(self.settle())
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    async def _snapshot(self) -> None:
        """What was taken in becomes durable, in this order, so that a kill between two steps loses nothing:

        1. the states are copied on the device's thread, between two batches;
        2. all predictions and dead letters so far are durable at the brokers;
        3. the copies are written to the store;
        4. the events below them are acknowledged, and Faust commits their offsets.
        """
        began = time.perf_counter()
        async with self._turn:
            if self._broken:
                log.error("not_saved", problem="a batch failed halfway; the next start begins before it")
                return
            self._since, self._oldest = 0, None
            capture = await self.on_device(self._host.capture)
        await self._sender.flush()
        await asyncio.get_running_loop().run_in_executor(self._disk, self._host.save, capture)
        await self.on_device(self._host.saved, capture)
        acknowledged = 0
        for number, offset in capture.positions.items():
            held = self._held.get(number, deque())
            while held and held[0].message.offset < offset:
                held.popleft().ack()
                acknowledged += 1
        self._metrics.durable_up_to(self._oldest)
        took = time.perf_counter() - began
        self._metrics.snapshot.observe(took)
        log.info("snapshot", graphs=len(capture.states), acknowledged=acknowledged, seconds=round(took, 3))

    async def statuses(self) -> dict[str, GraphStatus]:
        """What there is to see of each graph."""
        statuses: dict[str, GraphStatus] = await self.on_device(self._host.statuses)
        return statuses

    async def on_device(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run something on the one thread that touches the device, in turn with the batches."""
        return await asyncio.get_running_loop().run_in_executor(self._device, work, *arguments)


def _arrival(taken: _Taken) -> Arrival:
    message = taken.delivery.message
    again = header(message.headers, UNCHANGED) or None if message.headers else None
    return Arrival(Source(message.partition, message.offset), taken.arrived, message.key, message.value, again)


async def _within(waiting: Awaitable[Any], seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(waiting, seconds)

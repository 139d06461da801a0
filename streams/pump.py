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
from typing import Any, Protocol

import structlog

from adatkg_core.messages import Source
from streams.deadletters import UNCHANGED, dead_letter_headers, header
from streams.graph import Arrival, Rejected
from streams.host import Done, Host, Look
from streams.metrics import Metrics
from streams.sender import Message, Sender
from streams.settings import StreamSettings
from streams.topics import Topics

STOP_WITHIN = 30.0  # seconds for a last snapshot; without it the next start has more to catch up with, no more
MEASURE_EVERY = 5.0  # seconds between looks at the sizes of states
log = structlog.get_logger()


class Delivery(Protocol):
    """An event as Faust delivers it."""

    message: Any

    def ack(self) -> bool:
        """It is done with and need not come again."""
        ...


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
    ) -> None:
        self._settings, self._topics, self._host, self._sender, self._metrics = settings, topics, host, sender, metrics
        self._highwater = highwater
        self._device = ThreadPoolExecutor(1, "device")
        self._disk = ThreadPoolExecutor(1, "disk")
        self._queue: deque[Delivery] = deque()
        self._arrived, self._drained = asyncio.Event(), asyncio.Event()
        self._held: dict[int, deque[Delivery]] = {}  # taken in, not acknowledged, per partition
        self._since = 0  # events since the last snapshot
        self._oldest: float | None = None  # when the first event came that the last snapshot lacks
        self._measured = 0.0
        self._turn = asyncio.Lock()  # held while a batch is on the device
        self._snapshot_turn = asyncio.Lock()
        self._background: set[asyncio.Task[None]] = set()
        self._stopping = False
        self.ready = False  # partitions are assigned: events are taken in

    # -- deliveries -------------------------------------------------------------------------------------------

    async def put(self, delivery: Delivery) -> None:
        """Hand over one delivery; waits while enough for several batches is there already."""
        self._queue.append(delivery)
        self._arrived.set()
        while len(self._queue) >= 4 * self._settings.batch_events and not self._stopping:
            self._drained.clear()
            await self._drained.wait()

    async def run(self) -> None:
        """Process batches until stopped."""
        while not self._stopping:
            batch = await self._next_batch()
            if batch:
                async with self._turn:
                    await self._process(batch)
            self._maybe_snapshot()

    async def moved(self, partitions: Iterable[int]) -> None:
        """The partitions that are ours have changed: whatever belongs to others is no longer our business."""
        keep = set(partitions)
        async with self._turn:
            self._queue = deque(one for one in self._queue if one.message.partition in keep)
            self._drained.set()
            await self.on_device(self._host.keep_only, keep)
            self._held = {number: held for number, held in self._held.items() if number in keep}
        self.ready = True

    async def settle(self) -> None:
        """Make everything that was taken in durable and acknowledge it."""
        async with self._snapshot_turn:
            await self._snapshot()

    async def stop(self) -> None:
        """Finish the batch on the device, make everything durable, and end."""
        self._stopping = True
        self._arrived.set()
        self._drained.set()
        async with self._turn:
            pass
        try:
            await asyncio.wait_for(self.settle(), STOP_WITHIN)
        except TimeoutError:
            log.error("stopped_without_snapshot", within=STOP_WITHIN)
        self._host.give_up()

    def close(self) -> None:
        """End the threads."""
        self._device.shutdown(wait=False, cancel_futures=True)
        self._disk.shutdown(wait=False, cancel_futures=True)

    # -- private ----------------------------------------------------------------------------------------------

    async def _next_batch(self) -> list[Delivery]:
        """Whatever came while the device was busy, up to a full batch; from rest, what comes within a short while."""
        if not self._queue:
            self._arrived.clear()
            await _within(self._arrived.wait(), 1.0)
            if self._queue and len(self._queue) < self._settings.batch_events:
                await asyncio.sleep(self._settings.batch_seconds)
        batch = [self._queue.popleft() for _ in range(min(len(self._queue), self._settings.batch_events))]
        self._drained.set()
        return batch

    async def _process(self, batch: list[Delivery]) -> None:
        arrivals = [_arrival(delivery.message) for delivery in batch]
        began = time.perf_counter()
        done = await self.on_device(self._host.process, arrivals)
        self._metrics.batch.observe(len(batch))
        self._metrics.apply.observe(time.perf_counter() - began)
        self._publish(done)
        for delivery in batch:
            delivery.message.value = None  # held until a snapshot covers it, but no longer read
            self._held.setdefault(delivery.message.partition, deque()).append(delivery)
        self._since += len(batch)
        if self._oldest is None:
            self._oldest = time.monotonic()
            self._metrics.durable_up_to(self._oldest)
        await self._measure(batch)
        await self._sender.room()

    def _publish(self, done: Done) -> None:
        self._metrics.count(done.counts)
        if done.answered:
            self._sender.send(
                self._topics.predictions, [Message(one.arrival.key, one.body, []) for one in done.answered]
            )
            now = time.time()
            for one in done.answered:
                self._metrics.answer.observe(max(0.0, now - one.arrival.timestamp))
        for graph, number in done.answers.items():
            self._metrics.predictions.labels(graph).inc(number)
        if done.rejected:
            self._sender.send(self._topics.deadletter, [self._dead_letter(graph, one) for graph, one in done.rejected])

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
            self._since, self._oldest = 0, None
            capture = await self.on_device(self._host.capture)
        await self._sender.flush()
        await asyncio.get_running_loop().run_in_executor(self._disk, self._host.save, capture)
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

    async def _measure(self, batch: list[Delivery]) -> None:
        for number, offset in {one.message.partition: one.message.offset for one in batch}.items():
            highwater = self._highwater(number)
            if highwater is not None:
                self._metrics.lag.labels(str(number)).set(max(0, highwater - offset - 1))
        if time.monotonic() - self._measured > MEASURE_EVERY:
            self._measured = time.monotonic()
            self._metrics.show(await self.looks())

    async def looks(self) -> dict[str, Look]:
        """What there is to see of each graph."""
        looks: dict[str, Look] = await self.on_device(self._host.looks)
        return looks

    async def on_device(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run something on the one thread that touches the device, in turn with the batches."""
        return await asyncio.get_running_loop().run_in_executor(self._device, work, *arguments)


def _arrival(message: Any) -> Arrival:
    again = header(message.headers, UNCHANGED) or None if message.headers else None
    return Arrival(Source(message.partition, message.offset), message.timestamp, message.key, message.value, again)


async def _within(waiting: Awaitable[Any], seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(waiting, seconds)

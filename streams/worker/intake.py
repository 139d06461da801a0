"""Where deliveries wait until they are processed: gathered into fair batches, bounded, and only of our partitions."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from adatkg_core.events import Source
from streams.settings import StreamSettings
from streams.worker.arrival import Arrival, arrival_from

BATCHES = 4  # of one partition may wait before no more of it is fetched
OVERFULL = 4  # times as much: what was fetched already may still come, but then whoever delivers has to wait
BATCH_BYTES = 128 << 10  # of the events of a batch, at most: a list of names costs more than a fact
IDLE = 1.0  # seconds without anything to do until the worker looks at what else is due


class Delivery(Protocol):
    """An event as Faust delivers it."""

    message: Any

    def ack(self) -> bool:
        """It is done with and need not come again."""
        ...


class Flow(Protocol):
    """Where the deliveries come from, as far as an intake asks it."""

    def highwater(self, partition: int) -> int | None:
        """Which offset the next event of a partition will get, as far as that is known."""
        ...

    def pause(self, partition: int) -> None:
        """Fetch no more of this partition; what was fetched may still come."""
        ...

    def resume(self, partition: int) -> None:
        """Fetch on."""
        ...


class Taken(NamedTuple):
    """A delivery, and the event that it brought."""

    delivery: Delivery
    arrival: Arrival


class Intake:
    """The queues between Faust and the device, one for each partition, and how far behind the log they are.

    Every partition with something to do has its share of every batch, so a flood in one delays the others by no more
    than the batch that is under way. Within a partition the order is that of the log.
    """

    def __init__(self, settings: StreamSettings, flow: Flow) -> None:
        self._size, self._gather_for = settings.batch_events, settings.batch_seconds
        self._flow = flow
        self._queues: dict[int, deque[Taken]] = {}  # by partition, those first that have waited longest for a turn
        self._paused: set[int] = set()
        self._delivered: dict[int, tuple[Any, int]] = {}  # by partition: the generation, and the offset that follows
        self._arrived, self._drained = asyncio.Event(), asyncio.Event()
        self._owned: set[int] = set()  # our partitions
        self._changed = False  # since they were last asked for
        self.in_doubt = False  # what was delivered may be of another log than before
        self._reached: dict[int, int] = {}  # the last offset processed of each of our partitions
        self.ready = False  # partitions are assigned: events are taken in
        self.closed = False

    # -- deliveries -------------------------------------------------------------------------------------------

    async def put(self, delivery: Delivery) -> None:
        """Hand over one delivery. Where enough of its partition waits no more is fetched; far beyond, this waits."""
        partition = delivery.message.partition
        queue = self._queues.setdefault(partition, deque())
        queue.append(Taken(delivery, self._arrival_of(delivery.message)))
        self._arrived.set()
        if len(queue) >= BATCHES * self._size:
            self._flow.pause(partition)
            self._paused.add(partition)
        most = OVERFULL * BATCHES * self._size
        while len(queue) >= most and queue is self._queues.get(partition) and not self.closed:
            self._drained.clear()
            await self._drained.wait()

    async def wait(self) -> None:
        """Returns with what came while the device was busy; from rest, with what comes within a short while."""
        if not self.is_waiting:
            self._arrived.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._arrived.wait(), IDLE)
            if 0 < sum(map(len, self._queues.values())) < self._size:
                await asyncio.sleep(self._gather_for)

    def next_batch(self) -> list[Taken]:
        """What is to be processed next, none of it of partitions that are no longer ours; perhaps nothing."""
        self._queues = {number: queue for number, queue in self._queues.items() if queue and number in self._owned}
        batch: list[Taken] = []
        room = BATCH_BYTES
        waiting = list(self._queues)
        while waiting and len(batch) < self._size and room > 0:
            share = max(1, (self._size - len(batch)) // len(waiting))
            bytes_each = room // len(waiting)
            for number in waiting[: self._size - len(batch)]:
                some = _share(self._queues[number], share, bytes_each)
                room -= sum(map(_bytes, some))
                batch += some
            waiting = [number for number in waiting if self._queues[number]]
        self._take_turns(batch)
        self._drained.set()
        return batch

    def processed(self, batch: Sequence[Taken]) -> None:
        """The device is done with a batch."""
        self._reached |= {one.arrival.source.partition: one.arrival.source.offset for one in batch}

    def close(self) -> None:
        """Nothing more is taken in, and nobody waits any longer."""
        self.closed, self.ready = True, False
        self._arrived.set()
        self._drained.set()

    @property
    def is_waiting(self) -> bool:
        """Whether there is something to do."""
        return any(self._queues.values())

    # -- partitions -------------------------------------------------------------------------------------------

    def assigned(self, partitions: Iterable[int]) -> None:
        """These are ours now; returns at once, for meanwhile no heartbeat tells that we live."""
        self._owned, self._changed = set(partitions), True
        self.in_doubt = True  # meanwhile the topic may have been made anew
        self._queues = {number: queue for number, queue in self._queues.items() if number in self._owned}
        self._delivered = {}
        self._paused &= self._queues.keys()
        self._arrived.set()
        self._drained.set()
        self.ready = not self.closed

    def new_assignment(self) -> set[int] | None:
        """Our partitions if they have changed since this was last asked, else None."""
        if not self._changed:
            return None
        self._changed = False
        self._reached = {number: offset for number, offset in self._reached.items() if number in self._owned}
        return self._owned

    def begin_at(self, partition: int, offset: int) -> None:
        """Where the first event of a partition is expected, so that the lag is known before it comes."""
        if partition in self._owned:
            self._reached.setdefault(partition, offset - 1)

    def reached(self) -> dict[int, int | None]:
        """Of each of our partitions, which offset should come next, as far as that is known."""
        ours = {number: self._reached.get(number) for number in self._owned}
        return {number: None if last is None else last + 1 for number, last in ours.items()}

    def lags(self) -> dict[int, int]:
        """How many events of each of our partitions are not taken in yet, as far as that is known."""
        ends = {number: self._flow.highwater(number) for number in self._reached}
        return {number: max(0, end - self._reached[number] - 1) for number, end in ends.items() if end is not None}

    def lag(self) -> int | None:
        """The same over all of our partitions; None while nothing is known."""
        lags = self.lags()
        return sum(lags.values()) if lags else None

    # -- private ----------------------------------------------------------------------------------------------

    def _arrival_of(self, message: Any) -> Arrival:
        """The event, and from where on the log has nothing before it that was not delivered."""
        source = Source(message.partition, message.offset)
        generation = getattr(message, "generation_id", None)
        before = self._delivered.get(source.partition)
        self._delivered[source.partition] = generation, source.offset + 1
        if before is not None and before[0] == generation and source.offset < before[1]:
            self.in_doubt = True  # a log that is shorter than what was read of it begins from its beginning
        # Within one assignment nothing is left out but what is no event: marks of transactions, and aborted ones.
        joined = before is not None and before[0] == generation and before[1] <= source.offset
        follows = before[1] if before is not None and joined else source.offset
        headers, sent = message.headers or (), round(1000 * (message.timestamp or 0))  # Faust has seconds
        return arrival_from(source, message.key, message.value, headers, time.monotonic(), follows, sent)

    def _take_turns(self, batch: Sequence[Taken]) -> None:
        """Whoever had a share stands behind those who had none; of what has drained more is fetched."""
        for number in {one.arrival.source.partition: None for one in batch}:
            self._queues[number] = self._queues.pop(number)
        self._resume({number for number in self._paused if len(self._queues.get(number, ())) < BATCHES * self._size})

    def _resume(self, partitions: set[int]) -> None:
        for number in partitions:
            self._flow.resume(number)
        self._paused -= partitions


def _bytes(one: Taken) -> int:
    return len(one.arrival.value or b"")


def _share(queue: deque[Taken], most: int, room: int) -> list[Taken]:
    """The first of a queue, at least one, with no more than `room` bytes where they are several."""
    some: list[Taken] = []
    while queue and len(some) < most and (not some or _bytes(queue[0]) <= room):
        room -= _bytes(queue[0])
        some.append(queue.popleft())
    return some

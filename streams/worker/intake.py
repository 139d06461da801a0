"""Where deliveries wait until the device's thread has time for them: bounded, and only of our partitions."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from adatkg_core.events import Source
from streams.settings import StreamSettings
from streams.worker.arrival import Arrival, arrival_from

WAITING = 2_048  # events of one partition may wait before no more of it is fetched
OVERFULL = 4  # times as much: what was fetched already may still come, but then whoever delivers has to wait
IDLE = 1.0  # seconds without anything to do until the worker looks at what else is due


class Delivery(Protocol):
    """An event as Faust delivers it."""

    message: Any


class Flow(Protocol):
    """Where the deliveries come from, as far as an intake asks it."""

    def highwater(self, partition: int) -> int | None:
        """Which offset the next event of a partition will get, as far as that is known."""
        ...

    def begin(self, partition: int) -> int | None:
        """Below which offset all of a partition was answered when it was assigned to us, as far as that is known."""
        ...

    def pause(self, partition: int) -> None:
        """Fetch no more of this partition; what was fetched may still come."""
        ...

    def resume(self, partition: int) -> None:
        """Fetch on."""
        ...


class _Delivered(NamedTuple):
    """What has come of a partition within one assignment."""

    generation: Any  # of the assignment
    next: int  # the offset behind the last one
    answered: int  # below this offset all was answered when it began


class Intake:
    """The queues between Faust and the device, one for each partition, and how far behind the log we are.

    Within a partition the order is that of the log. All that has come is handed over before every batch, but of
    partitions that are full: they have enough for many batches, and nobody else in them is waited for.
    """

    def __init__(self, settings: StreamSettings, flow: Flow) -> None:
        self._size, self._gather_for = settings.batch_events, settings.batch_seconds
        self._flow = flow
        self._queues: dict[int, deque[Arrival]] = {}  # by partition
        self._full: Collection[int] = ()  # partitions of which nothing is handed over for now
        self._paused: set[int] = set()
        self._delivered: dict[int, _Delivered] = {}  # by partition
        self._arrived, self._drained = asyncio.Event(), asyncio.Event()
        self._owned: set[int] = set()  # our partitions
        self._changed = False  # since they were last asked for
        self.in_doubt = False  # what was delivered may be of another log than before
        self._reached: dict[int, int] = {}  # of each of our partitions the offset behind all that was handed over
        self._done: dict[int, int] = {}  # of each of our partitions the offset below which all is processed
        self.ready = False  # partitions are assigned: events are taken in
        self.closed = False

    # -- deliveries -------------------------------------------------------------------------------------------

    async def put(self, delivery: Delivery) -> None:
        """Hand over one delivery. Where enough of its partition waits no more is fetched; far beyond, this waits."""
        partition = delivery.message.partition
        queue = self._queues.setdefault(partition, deque())
        queue.append(self._arrival_of(delivery.message))
        self._arrived.set()
        if len(queue) >= WAITING:
            self._flow.pause(partition)
            self._paused.add(partition)
        most = OVERFULL * WAITING
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

    def wake(self) -> None:
        """There is something to do that was not delivered here."""
        self._arrived.set()

    def take(self) -> list[Arrival]:
        """All that has come, but of partitions that are full and of those that are no longer ours."""
        self._queues = {number: queue for number, queue in self._queues.items() if queue and number in self._owned}
        taken: list[Arrival] = []
        for number in self._queues.keys() - set(self._full):
            taken += self._queues[number]
            self._queues[number].clear()
        self._resume({number for number in self._paused if len(self._queues.get(number, ())) < WAITING})
        self._drained.set()
        return taken

    def processed(self, taken: Iterable[Arrival], done: Mapping[int, int], full: Collection[int]) -> None:
        """The device is done with a batch, and with all below these offsets; partitions that are full bring no more."""
        for number, end in {one.source.partition: one.source.offset + 1 for one in taken}.items():
            self._reached[number] = max(end, self._reached.get(number, end))  # what comes again takes nothing back
        self._done |= {number: offset for number, offset in done.items() if number in self._reached}
        self._full = full

    def close(self) -> None:
        """Nothing more is taken in, and nobody waits any longer."""
        self.closed, self.ready = True, False
        self._arrived.set()
        self._drained.set()

    @property
    def is_waiting(self) -> bool:
        """Whether there is something to hand over."""
        return any(queue for number, queue in self._queues.items() if number not in self._full)

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

    @property
    def has_changed(self) -> bool:
        """Whether `new_assignment` has something to say."""
        return self._changed

    def new_assignment(self) -> set[int] | None:
        """Our partitions if they have changed since this was last asked, else None."""
        if not self._changed:
            return None
        self._changed = False
        self._reached = {number: offset for number, offset in self._reached.items() if number in self._owned}
        self._done = {number: offset for number, offset in self._done.items() if number in self._owned}
        return self._owned

    def begin_at(self, partition: int, offset: int) -> None:
        """Where the first event of a partition is expected, so that the lag is known before it comes."""
        if partition in self._owned:
            self._reached.setdefault(partition, offset)
            self._done.setdefault(partition, offset)

    def reached(self) -> dict[int, int | None]:
        """Of each of our partitions, which offset should come next, as far as that is known."""
        return {number: self._reached.get(number) for number in self._owned}

    def lags(self) -> dict[int, int]:
        """How far the end of each of our partitions is from its first event that is not processed, where known."""
        ends = {number: self._flow.highwater(number) for number in self._done}
        return {number: max(0, end - self._done[number]) for number, end in ends.items() if end is not None}

    def lag(self) -> int | None:
        """The same over all of our partitions; None while nothing is known."""
        lags = self.lags()
        return sum(lags.values()) if lags else None

    # -- private ----------------------------------------------------------------------------------------------

    def _arrival_of(self, message: Any) -> Arrival:
        """The event, from where on the log has nothing before it that was not delivered, and what others answered.

        What comes first need not follow what was committed: what is fetched while partitions are dealt out is dropped.
        """
        source = Source(message.partition, message.offset)
        generation = getattr(message, "generation_id", None)
        before = self._delivered.get(source.partition)
        if before is not None and before.generation != generation:
            before = None
        answered = (self._flow.begin(source.partition) or 0) if before is None else before.answered
        self._delivered[source.partition] = _Delivered(generation, source.offset + 1, answered)
        if before is not None and source.offset < before.next:
            self.in_doubt = True  # a log that is shorter than what was read of it begins from its beginning
        # Within one assignment nothing is left out but what is no event: marks of transactions, and aborted ones.
        follows = before.next if before is not None and before.next <= source.offset else source.offset
        headers, sent = message.headers or (), round(1000 * (message.timestamp or 0))  # Faust has seconds
        return arrival_from(source, message.key, message.value, headers, time.monotonic(), follows, sent, answered)

    def _resume(self, partitions: set[int]) -> None:
        for number in partitions:
            self._flow.resume(number)
        self._paused -= partitions

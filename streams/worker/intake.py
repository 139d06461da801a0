"""Where deliveries wait until they are processed: gathered into batches, bounded, and only of our partitions."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from adatkg_core.events import Source
from streams.dead_letters import UNCHANGED
from streams.kafka import header
from streams.settings import StreamSettings
from streams.worker.arrival import Arrival

BATCHES = 4  # may wait before whoever delivers has to
IDLE = 1.0  # seconds without anything to do until the worker looks at what else is due


class Delivery(Protocol):
    """An event as Faust delivers it."""

    message: Any

    def ack(self) -> bool:
        """It is done with and need not come again."""
        ...


class Taken(NamedTuple):
    """A delivery, and the event that it brought."""

    delivery: Delivery
    arrival: Arrival


class Intake:
    """The queue between Faust and the device, and how far behind the log it is."""

    def __init__(self, settings: StreamSettings, highwater: Callable[[int], int | None]) -> None:
        """`highwater` says which offset the next event of a partition will get, as far as that is known."""
        self._size, self._gather_for = settings.batch_events, settings.batch_seconds
        self._highwater = highwater
        self._queue: deque[Taken] = deque()
        self._arrived, self._drained = asyncio.Event(), asyncio.Event()
        self._owned: set[int] = set()  # our partitions
        self._changed = False  # since they were last asked for
        self._reached: dict[int, int] = {}  # the last offset processed of each of our partitions
        self.ready = False  # partitions are assigned: events are taken in
        self.closed = False

    # -- deliveries -------------------------------------------------------------------------------------------

    async def put(self, delivery: Delivery) -> None:
        """Hand over one delivery; waits while enough for several batches is there already."""
        self._queue.append(Taken(delivery, _arrival_of(delivery.message)))
        self._arrived.set()
        while len(self._queue) >= BATCHES * self._size and not self.closed:
            self._drained.clear()
            await self._drained.wait()

    async def wait(self) -> None:
        """Returns with what came while the device was busy; from rest, with what comes within a short while."""
        if not self._queue:
            self._arrived.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._arrived.wait(), IDLE)
            if self._queue and len(self._queue) < self._size:
                await asyncio.sleep(self._gather_for)

    def next_batch(self) -> list[Taken]:
        """What is to be processed next, none of it of partitions that are no longer ours; perhaps nothing."""
        taken = [self._queue.popleft() for _ in range(min(len(self._queue), self._size))]
        self._drained.set()
        return [one for one in taken if one.arrival.source.partition in self._owned]

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
        return bool(self._queue)

    # -- partitions -------------------------------------------------------------------------------------------

    def assigned(self, partitions: Iterable[int]) -> None:
        """These are ours now; returns at once, for meanwhile no heartbeat tells that we live."""
        self._owned, self._changed = set(partitions), True
        self._queue = deque(one for one in self._queue if one.arrival.source.partition in self._owned)
        self._arrived.set()
        self.ready = not self.closed

    def new_assignment(self) -> set[int] | None:
        """Our partitions if they have changed since this was last asked, else None."""
        if not self._changed:
            return None
        self._changed = False
        self._reached = {number: offset for number, offset in self._reached.items() if number in self._owned}
        return self._owned

    def lags(self) -> dict[int, int]:
        """How many events of each of our partitions are not taken in yet, as far as that is known."""
        ends = {number: self._highwater(number) for number in self._reached}
        return {number: max(0, end - self._reached[number] - 1) for number, end in ends.items() if end is not None}

    def lag(self) -> int | None:
        """The same over all of our partitions; None while nothing is known."""
        lags = self.lags()
        return sum(lags.values()) if lags else None


def _arrival_of(message: Any) -> Arrival:
    again = header(message.headers, UNCHANGED) or None if message.headers else None
    source = Source(message.partition, message.offset)
    return Arrival(source, time.monotonic(), message.key, message.value, again)

"""The worker's loop: from what Faust delivers to what is published, held and made durable.

The event loop only moves messages. One thread touches the device; another writes snapshots.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import structlog

from adatkg_core.engine import compile_engine
from streams.worker.arrival import Arrival
from streams.worker.batch import BatchResult
from streams.worker.checkpoint import Checkpointer
from streams.worker.device import DeviceThread
from streams.worker.graph_host import GraphHost
from streams.worker.intake import Intake
from streams.worker.publisher import Publisher

STOP_WITHIN = 30.0  # seconds for a last snapshot; without it the next start has more to catch up with, no more
REVOKED_WITHIN = 5.0  # seconds to make things durable before others take over; without it they have more to catch up
STALLED = 600.0  # seconds
AGAIN = 1.0  # seconds before the log is looked for again where it cannot be seen
log = structlog.get_logger()


async def _never_in_doubt() -> bool:
    """Where the log cannot be made anew."""
    return True


class _Taken(NamedTuple):
    """A batch that the device is done with."""

    arrivals: Sequence[Arrival]
    results: Sequence[BatchResult]
    done: dict[int, int]  # by partition: below this offset nothing waits for its turn
    full: set[int]  # partitions that should bring no more for now
    seconds: float


class Worker:
    """Processes batches, one after the other, and makes them durable beside that."""

    def __init__(
        self,
        intake: Intake,
        device: DeviceThread,
        host: GraphHost,
        publisher: Publisher,
        checkpointer: Checkpointer,
        batch_events: int,
        confirm: Callable[[], Awaitable[bool]] = _never_in_doubt,
    ) -> None:
        """`confirm` says whether the log was seen to be the one that was read, and raises where it is another."""
        self._confirm, self._batch_events = confirm, batch_events
        self._intake, self.device, self._host = intake, device, host
        self._publisher, self._checkpointer = publisher, checkpointer
        self._progress = time.monotonic()  # when a batch was last done
        self._beat = time.monotonic()  # when the loop last went round

    async def run(self) -> None:
        """Process batches until stopped."""
        await self._publisher.start()
        await self.device.run(compile_engine)  # before anybody waits for an answer
        while True:
            self._beat = time.monotonic()
            if not self._host.turns.is_waiting:
                await self._intake.wait()
            await self._be_sure_of_the_log()
            async with self.device.turn:
                if self._intake.closed:  # the last snapshot may be made, and the threads ended
                    return
                if self._intake.in_doubt:  # since it was this one's turn
                    continue
                if (ours := self._intake.new_assignment()) is not None:
                    await self.device.run(self._host.keep_only, ours)
                    self._checkpointer.keep_only(ours)
                await self._process(self._intake.take())
            if self._checkpointer.due and not self._intake.closed:
                self._checkpointer.start()
            while self._checkpointer.is_far_behind and not self._intake.closed:
                self._progress = self._beat = time.monotonic()  # a new start would not make a full disk any emptier
                await self._checkpointer.settle()

    async def _be_sure_of_the_log(self) -> None:
        """Nothing of a log made anew is taken for what follows in the one before, however soon it is delivered."""
        while self._intake.in_doubt and not self._intake.closed:
            self._intake.in_doubt = False
            if not await self._confirm():
                self._intake.in_doubt = True
                self._beat = self._progress = time.monotonic()
                await asyncio.sleep(AGAIN)

    async def _process(self, arrivals: Sequence[Arrival]) -> None:
        """Hand over what has come, and have those whose turn it is take in batches, until something else is to be done.

        What came of a batch is published while the device is at the next one. All of it is published when the device's
        turn ends: whoever has the next one finds no state ahead of what was sent.
        """
        if not arrivals and not self._host.turns.is_waiting:
            return
        with self._checkpointer.processing():
            taking: asyncio.Task[_Taken] | None = self._start(arrivals)
            while taking is not None:
                taken = await taking
                self._intake.processed(taken.arrivals, taken.done, taken.full)
                taking = self._start(()) if self._goes_on else None
                if taken.results:
                    self._checkpointer.took(self._publisher.publish(taken.results, taken.seconds))
                self._progress = self._beat = time.monotonic()
                await self._publisher.room()

    @property
    def _goes_on(self) -> bool:
        """Whether there is another batch of what was handed over, and nothing else to be done first."""
        intake, checkpointer = self._intake, self._checkpointer
        is_ours = not (intake.closed or intake.in_doubt or intake.has_changed or intake.is_waiting)
        is_free = not (self.device.turn.is_wanted or checkpointer.due or checkpointer.is_far_behind)
        return is_ours and is_free and self._host.turns.is_waiting

    def _start(self, arrivals: Sequence[Arrival]) -> asyncio.Task[_Taken]:
        return asyncio.create_task(self.device.run(self._take_in, arrivals))

    def _take_in(self, arrivals: Sequence[Arrival]) -> _Taken:
        began = time.perf_counter()
        results = self._host.process(arrivals, self._batch_events)
        return _Taken(arrivals, results, *self._host.turns.progress(), time.perf_counter() - began)

    async def process_beside(self, work: Callable[[], Sequence[BatchResult]]) -> bool:
        """Something else that gives answers, on the device in turn with the batches, and published as theirs are.

        Says whether it was done: not when the worker ends.
        """
        async with self.device.turn:
            if self._intake.closed:
                return False
            began = time.perf_counter()
            with self._checkpointer.processing():
                results = await self.device.run(work)
                self._checkpointer.took(self._publisher.publish(results, time.perf_counter() - began))
        self._progress = time.monotonic()
        await self._publisher.room()
        return True

    def abandon(self) -> None:
        """Take in nothing more, and save and commit nothing: the log is no longer the one that was read."""
        self._intake.close()
        self._checkpointer.give_up()

    async def revoked(self) -> None:
        """Others may take our partitions over, and wait until this returns."""
        self._intake.ready = False
        try:
            await asyncio.wait_for(self._checkpointer.settle(), REVOKED_WITHIN)
        except TimeoutError:
            log.warning("revoked_without_snapshot", within=REVOKED_WITHIN)

    async def stop(self) -> None:
        """Finish the batch on the device, make everything durable, and end; a broker that is away is not waited for."""
        self._intake.close()
        try:
            async with asyncio.timeout(STOP_WITHIN):
                await self._checkpointer.settle()
        except TimeoutError:
            log.error("stopped_without_snapshot", within=STOP_WITHIN)
        self._host.give_up()

    async def close(self) -> None:
        """Leave the brokers and end the threads."""
        await self._publisher.stop()
        self.device.close()
        self._checkpointer.close()

    @property
    def ready(self) -> bool:
        """Whether partitions are assigned, so that events are taken in."""
        return self._intake.ready

    @property
    def stalled(self) -> bool:
        """Whether there is something to do and nothing has been done for long, or the loop itself has stopped."""
        now = time.monotonic()
        waits = self._intake.is_waiting or self._host.turns.is_waiting or now - self._beat > 2 * STALLED
        return self._checkpointer.broken or (waits and now - self._progress > STALLED)

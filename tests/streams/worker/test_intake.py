"""Between Faust and the device: batches, back-pressure, and only what is ours."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from streams.dead_letters import UNCHANGED
from streams.settings import StreamSettings
from streams.worker import Intake
from streams.worker.intake import BATCHES
from tests.support.fake_worker import Delivered, fact

SIZE = 4


def run(scenario: Callable[[Intake], Awaitable[None]], highwater: Callable[[int], int | None] = lambda _: None) -> None:
    async def started() -> None:
        async with asyncio.timeout(10):
            await scenario(Intake(StreamSettings(batch_events=SIZE, batch_seconds=0.0), highwater))

    asyncio.run(started())


def delivered(offset: int, partition: int = 0) -> Any:
    return Delivered(fact(offset, partition), [])


def offsets(batch: Any) -> list[int]:
    return [one.arrival.source.offset for one in batch]


def test_whoever_delivers_waits_while_several_batches_are_there() -> None:
    async def scenario(intake: Intake) -> None:
        intake.assigned([0])
        for offset in range(BATCHES * SIZE - 1):
            await intake.put(delivered(offset))
        waiting = asyncio.create_task(intake.put(delivered(BATCHES * SIZE - 1)))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        assert offsets(intake.next_batch()) == [0, 1, 2, 3]
        await waiting

    run(scenario)


def test_nobody_waits_beyond_the_end() -> None:
    async def scenario(intake: Intake) -> None:
        intake.assigned([0])
        waiting = [asyncio.create_task(intake.put(delivered(offset))) for offset in range(BATCHES * SIZE + 2)]
        await asyncio.sleep(0.02)
        assert not all(one.done() for one in waiting)
        intake.close()
        await asyncio.gather(*waiting)
        await intake.wait()
        assert intake.closed and not intake.ready
        intake.assigned([0])
        assert not intake.ready, "a worker that ends is not made ready by a late assignment"

    run(scenario)


def test_what_is_no_longer_ours_is_dropped_wherever_it_waits() -> None:
    async def scenario(intake: Intake) -> None:
        intake.assigned([0, 1])
        assert intake.new_assignment() == {0, 1} and intake.new_assignment() is None
        for offset in range(4):
            await intake.put(delivered(offset, partition=offset % 2))
        intake.assigned([1])
        await intake.put(delivered(9, partition=0))  # it was on its way
        assert intake.new_assignment() == {1}
        assert offsets(intake.next_batch()) == [1, 3]
        assert not intake.is_waiting

    run(scenario)


def test_the_lag_is_known_of_partitions_that_are_ours_and_of_which_something_was_processed() -> None:
    async def scenario(intake: Intake) -> None:
        intake.assigned([0, 1, 2])
        assert intake.lag() is None
        for partition in range(3):
            await intake.put(delivered(5, partition))
        batch = intake.next_batch()
        assert intake.lag() is None, "it is on the device"
        intake.processed(batch)
        assert intake.lags() == {0: 4, 1: 0} and intake.lag() == 4
        intake.assigned([1, 2])
        intake.new_assignment()
        assert intake.lags() == {1: 0}

    run(scenario, {0: 10, 1: 6}.get)


def test_an_event_that_was_put_back_unchanged_says_why_it_was_refused() -> None:
    async def scenario(intake: Intake) -> None:
        intake.assigned([0])
        for offset, headers in enumerate((None, [(UNCHANGED, b"unknown-relation")], [("other", b"x")])):
            event = delivered(offset)
            event.message.headers = headers
            await intake.put(event)
        assert [one.arrival.again for one in intake.next_batch()] == [None, "unknown-relation", None]

    run(scenario)

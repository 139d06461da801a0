"""Between Faust and the device: batches, back-pressure, and only what is ours."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from streams.dead_letters import UNCHANGED
from streams.settings import StreamSettings
from streams.worker import Intake
from streams.worker import intake as intake_module
from streams.worker.intake import OVERFULL
from tests.support.fake_worker import Delivered, NoFlow, fact

SIZE = 4
WAITING = 16


@pytest.fixture(autouse=True)
def few_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake_module, "WAITING", WAITING)


def run(scenario: Callable[[Intake], Awaitable[None]], highwater: Callable[[int], int | None] = lambda _: None) -> None:
    async def started() -> None:
        async with asyncio.timeout(10):
            await scenario(Intake(StreamSettings(batch_events=SIZE, batch_seconds=0.0), NoFlow(highwater)))

    asyncio.run(started())


def delivered(offset: int, partition: int = 0) -> Any:
    return Delivered(fact(offset, partition))


def places(batch: Any) -> list[tuple[int, int]]:
    return [(one.source.partition, one.source.offset) for one in batch]


def offsets(batch: Any) -> list[int]:
    return [one.source.offset for one in batch]


def test_of_a_partition_of_which_enough_waits_no_more_is_fetched_while_others_go_on() -> None:
    flow = NoFlow()

    async def scenario(_: Intake) -> None:
        intake = Intake(StreamSettings(batch_events=SIZE, batch_seconds=0.0), flow)
        intake.assigned([0, 1])
        for offset in range(WAITING):
            assert flow.paused == set()
            await intake.put(delivered(offset))
        assert flow.paused == {0}
        await intake.put(delivered(7, partition=1))
        assert flow.paused == {0}
        assert sorted(places(intake.take())) == [(0, offset) for offset in range(WAITING)] + [(1, 7)]
        assert flow.paused == set()

    run(scenario)


def test_whoever_delivers_far_too_much_waits() -> None:
    async def scenario(intake: Intake) -> None:
        intake.assigned([0])
        most = OVERFULL * WAITING
        for offset in range(most - 1):
            await intake.put(delivered(offset))
        waiting = asyncio.create_task(intake.put(delivered(most - 1)))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        assert offsets(intake.take()) == list(range(most))
        await waiting

    run(scenario)


def test_of_a_partition_that_is_full_nothing_is_handed_over_until_it_is_not() -> None:
    async def scenario(intake: Intake) -> None:
        intake.assigned([0, 1])
        await intake.put(delivered(0))
        taken = intake.take()
        intake.processed(taken, {0: 0}, {0})
        await intake.put(delivered(1))
        assert intake.take() == []
        await intake.put(delivered(5, partition=1))
        assert intake.is_waiting and places(intake.take()) == [(1, 5)]
        intake.processed([], {0: 1}, ())
        assert intake.is_waiting and places(intake.take()) == [(0, 1)]

    run(scenario)


def test_what_is_skipped_within_an_assignment_is_no_gap_and_what_is_skipped_between_two_is() -> None:
    async def scenario(intake: Intake) -> None:
        intake.assigned([0, 1])
        for offset in (3, 4, 7):
            await intake.put(delivered(offset))
        await intake.put(delivered(9, partition=1))
        assert sorted(one.begins for one in intake.take()) == [3, 4, 5, 9]
        intake.assigned([0, 1])
        for offset in (20, 22, 21):
            await intake.put(delivered(offset))
        stale = delivered(30)
        stale.message.generation_id = 2
        await intake.put(stale)
        assert [one.begins for one in intake.take()] == [20, 21, 21, 30]

    run(scenario)


def test_what_was_answered_before_an_assignment_is_what_was_committed_when_its_first_event_came() -> None:
    flow = NoFlow()

    async def scenario(_: Intake) -> None:
        intake = Intake(StreamSettings(batch_events=SIZE, batch_seconds=0.0), flow)
        intake.assigned([0, 1])
        flow.committed = {0: 3}
        await intake.put(delivered(5))
        flow.committed = {0: 6}
        await intake.put(delivered(6))
        await intake.put(delivered(9, partition=1))
        intake.assigned([0, 1])
        await intake.put(delivered(7))
        assert [one.answered for one in intake.take()] == [3, 3, 6, 0]

    run(scenario)


def test_nobody_waits_beyond_the_end() -> None:
    async def scenario(intake: Intake) -> None:
        intake.assigned([0])
        waiting = [asyncio.create_task(intake.put(delivered(offset))) for offset in range(OVERFULL * WAITING + 2)]
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
        assert offsets(intake.take()) == [1, 3]
        assert not intake.is_waiting

    run(scenario)


def test_the_lag_is_known_of_partitions_that_are_ours_and_of_which_something_was_processed() -> None:
    async def scenario(intake: Intake) -> None:
        intake.assigned([0, 1, 2])
        assert intake.lag() is None
        for partition in range(3):
            await intake.put(delivered(5, partition))
        batch = intake.take()
        assert intake.lag() is None, "it is on the device"
        intake.processed(batch, {number: 6 for number in range(3)}, ())
        assert intake.lags() == {0: 4, 1: 0} and intake.lag() == 4
        intake.processed([], {0: 3}, ())
        assert intake.lags() == {0: 7, 1: 0}, "one that waits for its turn counts, with all behind it"
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
        assert [one.again for one in intake.take()] == [None, "unknown-relation", None]

    run(scenario)


def test_the_lag_is_known_before_the_first_event_is_taken_in_and_only_of_our_partitions() -> None:
    intake = Intake(StreamSettings(), NoFlow(lambda partition: 10))
    intake.assigned([0, 1])
    assert intake.lags() == {} and intake.lag() is None and intake.reached() == {0: None, 1: None}
    intake.begin_at(0, 4)
    intake.begin_at(2, 4)
    assert intake.lags() == {0: 6} and intake.reached() == {0: 4, 1: None}
    intake.begin_at(0, 9)
    assert intake.lags() == {0: 6}, "what was taken in since counts"


def test_what_goes_back_within_an_assignment_may_be_of_another_log_and_so_may_the_next_assignment() -> None:
    async def scenario(intake: Intake) -> None:
        intake.assigned([0])
        assert intake.in_doubt
        intake.in_doubt = False
        for offset in (5, 6, 9):
            await intake.put(delivered(offset))
        assert not intake.in_doubt
        await intake.put(delivered(0))
        assert intake.in_doubt

    run(scenario)

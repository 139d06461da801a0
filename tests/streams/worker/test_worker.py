"""The loop over real parts, without brokers: latency, a batch that fails, and snapshots that fail for long."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from adatkg_core.errors import AdatkgError
from streams.settings import StreamSettings
from streams.worker import Arrival, BatchResult, LiveGraph, checkpoint, inboxes
from streams.worker import intake as intake_module
from streams.worker.intake import OVERFULL
from tests.support.fake_worker import HERE, Delivered, FakeWorker, answered_by, fact, query, settings_with_model


@pytest.fixture
def settings(tmp_path: Path) -> StreamSettings:
    return settings_with_model(tmp_path)


def full(_: Any) -> None:
    raise AdatkgError("the disk is full")


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.01)


async def end(one: FakeWorker, running: asyncio.Task[None]) -> None:
    await one.worker.stop()
    await running
    await one.worker.close()


def test_what_could_not_be_saved_is_not_committed(settings: StreamSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        one = FakeWorker(settings)
        one.intake.assigned([HERE])
        running = asyncio.create_task(one.worker.run())
        for offset in range(5):
            await one.intake.put(Delivered(fact(offset)))
        await until(lambda: one.is_idle)
        with monkeypatch.context() as patched:
            patched.setattr(one.loader, "save", full)
            await one.checkpointer.settle()
            assert one.committed == []
        await one.checkpointer.settle()
        assert one.committed == [(HERE, 5)]
        await end(one, running)

    asyncio.run(scenario())


def test_while_snapshots_fail_no_more_is_taken_in_than_memory_may_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_with_model(tmp_path, batch_events=1, batch_seconds=0.0, snapshot_events=1)
    monkeypatch.setattr(checkpoint, "RETRY", 0.02)
    monkeypatch.setattr(inboxes, "ROOM", 0)
    monkeypatch.setattr(intake_module, "WAITING", 4)
    monkeypatch.setattr(inboxes, "LEAST", 10 * inboxes.OBJECT)
    delivered = 0

    async def scenario() -> None:
        nonlocal delivered
        one = FakeWorker(settings)
        save = one.loader.save
        monkeypatch.setattr(one.loader, "save", full)
        one.intake.assigned([HERE])
        running = asyncio.create_task(one.worker.run())

        async def deliver() -> None:
            nonlocal delivered
            for offset in range(100):
                await one.intake.put(Delivered(fact(offset)))
                delivered = offset + 1

        delivering = asyncio.create_task(deliver())
        with capture_logs() as said:
            await until(lambda: one.checkpointer.is_far_behind)
            await until(lambda: [line["event"] for line in said].count("snapshot_failed") > 3)  # it is tried again
            await asyncio.sleep(0.2)
        most = checkpoint.BEHIND * settings.snapshot_events
        at_once = OVERFULL * 4  # in the intake, and as much more where there is room
        assert delivered <= most + 1 + 10 + 2 * at_once and not delivering.done()
        assert one.committed == [] and not one.worker.stalled
        monkeypatch.setattr(one.loader, "save", save)  # the disk has room again
        await until(lambda: delivering.done() and one.is_idle)
        await end(one, running)
        assert one.committed[-1] == (HERE, 100)

    asyncio.run(scenario())


def test_an_answers_latency_begins_when_its_query_was_handed_over(settings: StreamSettings) -> None:
    heard: list[Sequence[BatchResult]] = []

    async def scenario() -> float:
        one = FakeWorker(settings, [heard.append])
        one.intake.assigned([HERE])
        began = time.monotonic()
        await one.intake.put(Delivered(query(0)))
        await asyncio.sleep(0.3)
        await one.intake.put(Delivered(query(1)))
        running = asyncio.create_task(one.worker.run())
        await until(lambda: sum(len(answered_by(results)) for results in heard) == 2)
        took = time.monotonic() - began
        await end(one, running)
        return took

    took = asyncio.run(scenario())
    (batch,) = [answered for results in heard if (answered := answered_by(results))]
    first, second = (one.latency for one in batch)
    assert took > first > second > 0 and first - second > 0.2


def test_a_batch_that_fails_halfway_is_never_saved_and_its_graph_waits(
    settings: StreamSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied = LiveGraph.apply

    def poisoned(self: LiveGraph, arrivals: Sequence[Arrival], *, silent: bool = False) -> Any:
        result = applied(self, arrivals, silent=silent)
        if any(arrival.source.offset == 3 for arrival in arrivals):
            raise RuntimeError("halfway")
        return result

    async def scenario() -> None:
        one = FakeWorker(settings)
        one.intake.assigned([HERE])
        running = asyncio.create_task(one.worker.run())
        for offset in range(5):
            await one.intake.put(Delivered(fact(offset)))
        await until(lambda: bool(one.incidents.open()))
        await one.checkpointer.settle()
        assert not one.worker.stalled and not running.done()
        await end(one, running)
        assert one.committed == []

    monkeypatch.setattr(LiveGraph, "apply", poisoned)
    asyncio.run(scenario())
    assert not Path(settings.snapshots).exists()


def test_a_batch_whose_answers_could_not_be_handed_on_is_never_saved(
    settings: StreamSettings, monkeypatch: pytest.MonkeyPatch
) -> None:

    def refuses(*_: Any) -> None:
        raise RuntimeError("no such topic")

    async def scenario() -> None:
        one = FakeWorker(settings)
        monkeypatch.setattr(one.outbox, "send", refuses)
        one.intake.assigned([HERE])
        await one.intake.put(Delivered(query(0)))
        with pytest.raises(RuntimeError, match="no such topic"):
            await one.worker.run()
        await one.worker.stop()
        await one.worker.close()
        assert one.committed == []

    asyncio.run(scenario())
    assert not Path(settings.snapshots).exists()


def test_nothing_is_taken_in_before_the_log_was_seen_to_be_the_one_that_was_read(
    settings: StreamSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.worker.worker.AGAIN", 0.001)
    looks: list[bool | Exception] = [False, True, False, AdatkgError("it is another log")]

    async def confirm() -> bool:
        look = looks.pop(0)
        if isinstance(look, Exception):
            raise look
        return look

    async def scenario() -> None:
        one = FakeWorker(settings)
        monkeypatch.setattr(one.worker, "_confirm", confirm)
        one.intake.assigned([HERE])
        running = asyncio.create_task(one.worker.run())
        await one.intake.put(Delivered(fact(7)))
        await until(lambda: one.intake.reached() == {HERE: 8})
        assert len(looks) == 2, "it was looked for until it was seen"
        await one.intake.put(Delivered(query(0)))
        with pytest.raises(AdatkgError, match="another log"):
            await running
        assert one.intake.reached() == {HERE: 8}
        await one.worker.stop()
        await one.worker.close()

    asyncio.run(scenario())


def test_what_comes_into_doubt_while_the_device_is_others_is_not_taken_in_either(
    settings: StreamSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[dict[int, int | None]] = []

    async def scenario() -> None:
        one = FakeWorker(settings)

        async def confirm() -> bool:
            reached.append(one.intake.reached())
            if len(reached) == 2:
                raise AdatkgError("it is another log")
            return True

        monkeypatch.setattr(one.worker, "_confirm", confirm)
        one.intake.assigned([HERE])
        async with one.device.turn:
            running = asyncio.create_task(one.worker.run())
            await one.intake.put(Delivered(fact(7)))
            await until(lambda: len(reached) == 1)
            await asyncio.sleep(0.05)  # it waits for its turn
            await one.intake.put(Delivered(fact(0)))  # which is before what came
        with pytest.raises(AdatkgError, match="another log"):
            await running
        assert reached == [{HERE: None}, {HERE: None}]
        await one.worker.stop()
        await one.worker.close()

    asyncio.run(scenario())


def test_what_comes_again_does_not_hide_that_a_log_has_become_shorter(settings: StreamSettings) -> None:
    async def scenario() -> None:
        one = FakeWorker(settings)
        one.intake.assigned([HERE])
        running = asyncio.create_task(one.worker.run())
        await one.intake.put(Delivered(fact(7)))
        await until(lambda: one.intake.reached() == {HERE: 8})
        one.intake.assigned([HERE])
        await one.intake.put(Delivered(fact(3)))
        await until(lambda: one.is_idle)
        assert one.intake.reached() == {HERE: 8}
        await end(one, running)

    asyncio.run(scenario())


def test_a_batch_is_published_while_the_device_is_at_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_with_model(tmp_path, batch_events=4, batch_seconds=0.0)
    went_on, seen = threading.Event(), list[bool]()

    async def scenario() -> None:
        one = FakeWorker(settings)
        process, publish = one.host.process, one.publisher.publish

        def processed(arrivals: Sequence[Arrival], most: int) -> list[BatchResult]:
            results = process(arrivals, most)
            if not arrivals:  # the second batch, of what was delivered with the first one
                seen.append(went_on.wait(10))
            return results

        def published(results: Sequence[BatchResult], seconds: float) -> int:
            went_on.set()
            return publish(results, seconds)

        monkeypatch.setattr(one.host, "process", processed)
        monkeypatch.setattr(one.publisher, "publish", published)
        one.intake.assigned([HERE])
        for offset in range(8):
            await one.intake.put(Delivered(fact(offset)))
        running = asyncio.create_task(one.worker.run())
        await until(lambda: one.is_idle)
        await end(one, running)
        assert seen and all(seen)

    asyncio.run(scenario())


def test_nobody_gets_the_device_before_all_that_it_took_in_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_with_model(tmp_path, batch_events=1, batch_seconds=0.0)

    async def scenario() -> None:
        one = FakeWorker(settings)
        process, publish = one.host.process, one.publisher.publish
        taken = sent = 0

        def processed(arrivals: Sequence[Arrival], most: int) -> list[BatchResult]:
            nonlocal taken
            results = process(arrivals, most)
            taken += sum(sum(result.counts.values()) for result in results)
            return results

        def published(results: Sequence[BatchResult], seconds: float) -> int:
            nonlocal sent
            sent += publish(results, seconds)
            return 0

        monkeypatch.setattr(one.host, "process", processed)
        monkeypatch.setattr(one.publisher, "publish", published)
        one.intake.assigned([HERE])
        running = asyncio.create_task(one.worker.run())
        turns = 0
        for offset in range(60):
            await one.intake.put(Delivered(fact(offset)))
            if offset % 6 == 5:
                async with one.worker.device.turn:
                    assert taken == sent
                    turns += 1
        await until(lambda: one.is_idle)
        assert taken == sent == 60 and turns == 10
        await end(one, running)

    asyncio.run(scenario())

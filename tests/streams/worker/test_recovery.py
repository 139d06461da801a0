"""Graphs that wait are brought back in the background, with every query answered once, and nobody waits for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from adatkg_core.errors import AdatkgError
from adatkg_core.events import Source
from adatkg_core.runtime import retry
from adatkg_core.storage import ModelStore
from streams.kafka import partition_of
from streams.settings import StreamSettings
from streams.worker import Arrival, graph_host, recovery
from tests.support.fake_worker import (
    HERE,
    PARTITIONS,
    Delivered,
    FakeWorker,
    WholeLog,
    answered_by,
    fact,
    host_of,
    query,
    settings_with_model,
)
from tests.support.running_system import assert_same_answer


@pytest.fixture
def settings(tmp_path: Path) -> StreamSettings:
    return settings_with_model(tmp_path, batch_events=4)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "PAUSE", 0.02)
    monkeypatch.setattr(recovery, "IDLE", 0.01)
    monkeypatch.setattr(recovery, "SLICE", 5)


def events(count: int) -> list[Arrival]:
    """A fact and a query in turn."""
    return [fact(offset) if offset % 2 == 0 else query(offset) for offset in range(count)]


def run(one: FakeWorker, scenario: Callable[[FakeWorker], Any]) -> None:
    async def started() -> None:
        one.intake.assigned([HERE])
        tasks = [asyncio.create_task(one.worker.run()), asyncio.create_task(one.recovery.run())]
        try:
            async with asyncio.timeout(30):
                await scenario(one)
        finally:
            await one.recovery.stop()
            await one.worker.stop()
            await asyncio.gather(*tasks, return_exceptions=True)
            await one.worker.close()

    asyncio.run(started())


async def deliver(one: FakeWorker, arrivals: list[Arrival]) -> None:
    for arrival in arrivals:
        await one.intake.put(Delivered(arrival))


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def answers(one: FakeWorker) -> dict[int, Any]:
    """The predictions that were sent, by the offset of their query; one that comes twice must be the same."""
    found: dict[int, Any] = {}
    for topic, message in one.outbox.sent:
        assert topic.endswith("predictions"), message
        body = orjson.loads(message.value)
        assert_same_answer(found.setdefault(body["source"]["offset"], body), body)
    return found


def assert_same(found: dict[int, Any], wanted: dict[int, Any]) -> None:
    assert found.keys() == wanted.keys()
    for offset, body in wanted.items():
        assert_same_answer(found[offset], body)


def calm(tmp_path: Path, arrivals: list[Arrival]) -> dict[int, Any]:
    """What a worker answers to which nothing happens."""
    results = host_of(settings_with_model(tmp_path / "calm")).process(arrivals)
    return {one.arrival.source.offset: orjson.loads(one.body) for one in answered_by(results)}


@contextmanager
def spoilt(settings: StreamSettings) -> Iterator[None]:
    place = Path(settings.models) / "g" / "bundles" / "v1" / "meta.json"
    sound = place.read_bytes()
    place.write_bytes(sound.replace(b"version", b"Version", 1))
    yield
    place.write_bytes(sound)


def test_a_graph_that_was_set_aside_answers_all_that_waited_once_its_bundle_is_mended(
    settings: StreamSettings, tmp_path: Path
) -> None:
    log = WholeLog("first", events(40))
    one = FakeWorker(settings, log=log)

    async def scenario(one: FakeWorker) -> None:
        with spoilt(settings):
            await deliver(one, log.arrivals[:30])
            await until(lambda: bool(one.incidents.open()) and one.is_idle)
            await until(lambda: one.host.waiting.next() is None or one.host.waiting.next().tries > 2)  # type: ignore[union-attr]
            await one.checkpointer.settle()
            assert one.outbox.sent == [] and one.committed == []
        await until(lambda: one.host.find("g") is not None)
        await deliver(one, log.arrivals[30:])
        await until(lambda: len(answers(one)) == 20)
        assert one.incidents.open() == []
        await one.checkpointer.settle()
        assert one.committed == [(HERE, 40)]

    run(one, scenario)
    assert_same(answers(one), calm(tmp_path, log.arrivals))


def test_a_graph_far_behind_catches_up_in_slices_and_holds_up_nobody(
    settings: StreamSettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(graph_host, "NEAR", 10)
    log = WholeLog("first", events(60))
    one = FakeWorker(settings, log=log)

    async def scenario(one: FakeWorker) -> None:
        one.flow.committed[HERE] = 50  # what came before, others have answered
        await deliver(one, log.arrivals[50:])
        await until(lambda: one.host.find("g") is not None and len(answers(one)) == 5)

    run(one, scenario)
    expected = calm(tmp_path, log.arrivals)
    assert_same(answers(one), {offset: expected[offset] for offset in range(51, 60, 2)})
    assert one.incidents.open() == []


def test_while_a_graph_is_loaded_the_others_go_on_and_it_answers_all_that_was_sent_to_it(
    settings: StreamSettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = next(name for name in map("h{}".format, range(99)) if partition_of(name, PARTITIONS) != HERE)
    there = partition_of(other, PARTITIONS)
    store = ModelStore(settings.models)
    store.put(other, store.bundle("g", "v1"), None)
    store.make_present(other, "v1")
    own = events(40)
    others = [replace(one, source=Source(there, one.source.offset), key=other.encode()) for one in events(20)]
    one = FakeWorker(settings, log=WholeLog("first", [*own, *others]))
    begin, loaded = one.loader.begin, threading.Event()

    def slowly(name: str, *arguments: Any) -> Any:
        assert name == "g" or loaded.wait(20), "meanwhile nobody else got on"
        return begin(name, *arguments)

    monkeypatch.setattr(one.loader, "begin", slowly)

    async def scenario(one: FakeWorker) -> None:
        one.intake.assigned([HERE, there])
        await deliver(one, own[:10])
        await until(lambda: len(answers(one)) == 5)
        await deliver(one, [*others[:10], *own[10:], *others[10:]])
        await until(lambda: len(answers(one)) == 20)
        assert one.host.capture().waiting == {there: 0}
        loaded.set()
        await until(lambda: len(one.outbox.sent) == 30)

    run(one, scenario)
    assert one.incidents.open() == []


def test_a_batch_that_fails_halfway_is_answered_again_from_the_log(
    settings: StreamSettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = WholeLog("first", events(20))
    one = FakeWorker(settings, log=log)
    process, failures = one.host.process, [RuntimeError("halfway")]

    def poisoned(*arguments: Any) -> Any:
        hosted = one.host.find("g")
        if hosted is not None and failures:
            apply = hosted.graph.apply

            def halfway(some: Any, *, silent: bool = False) -> Any:
                apply(some, silent=silent)
                raise failures.pop()

            monkeypatch.setattr(hosted.graph, "apply", halfway)
        return process(*arguments)

    monkeypatch.setattr(one.host, "process", poisoned)

    async def scenario(one: FakeWorker) -> None:
        await deliver(one, log.arrivals)
        await until(lambda: len(answers(one)) == 10 and one.host.find("g") is not None)
        assert not failures and not one.worker.stalled

    run(one, scenario)
    assert_same(answers(one), calm(tmp_path, log.arrivals))


def test_a_graph_that_is_quiet_after_a_restart_is_here_without_an_event(settings: StreamSettings) -> None:
    log = WholeLog("first", events(6))
    before = FakeWorker(settings, log=log)

    async def first_life(one: FakeWorker) -> None:
        await deliver(one, log.arrivals)
        await until(lambda: len(answers(one)) == 3)

    run(before, first_life)
    after = FakeWorker(settings, log=log)

    async def second_life(one: FakeWorker) -> None:
        one.recovery.assigned([HERE])
        await until(lambda: one.host.find("g") is not None)
        log.arrivals += [fact(6), query(7)]
        await deliver(one, log.arrivals[6:])
        await until(lambda: len(answers(one)) == 1)
        assert answers(one)[7]["interactions"] == 4

    run(after, second_life)
    elsewhere = FakeWorker(settings, log=log)

    async def others_partition(one: FakeWorker) -> None:
        one.recovery.assigned([(HERE + 1) % PARTITIONS])
        await asyncio.sleep(0.2)
        assert one.host.find("g") is None

    assert partition_of("g", PARTITIONS) == HERE
    run(elsewhere, others_partition)


def test_a_log_that_cannot_be_read_keeps_what_was_caught_up_and_is_tried_again(
    settings: StreamSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_host, "NEAR", 1)
    log = WholeLog("first", events(30))
    one = FakeWorker(settings, log=log)
    reads = 0

    def flaky(reader: Any, partition: int, graphs: Any, start: int, end: int) -> Any:
        nonlocal reads
        reads += 1
        if reads in (3, 4):
            raise AdatkgError("nothing came for 60 s")
        return WholeLog.records(log, reader, partition, graphs, start, end)

    monkeypatch.setattr(log, "records", flaky)

    async def scenario(one: FakeWorker) -> None:
        one.flow.committed[HERE] = 28
        await deliver(one, log.arrivals[28:])
        await until(lambda: len(answers(one)) == 1)

    run(one, scenario)
    assert reads == 2 + 2 + 5, "what was read before the failure must not be read again"


def test_pauses_grow_and_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "PAUSE", 1.0)
    pauses = [retry.growing_pause(failures) for failures in range(40)]
    assert pauses[:4] == [1.0, 2.0, 4.0, 8.0] and max(pauses) == pauses[-1] == retry.LONGEST

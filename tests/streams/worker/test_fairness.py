"""Graphs of one partition do not wait for each other, and nothing is lost or answered otherwise for that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from adatkg_core.errors import AdatkgError
from adatkg_core.events import Source
from adatkg_core.messages import encode_model
from adatkg_core.runtime import retry
from adatkg_core.storage import Bundle, ModelStore, SnapshotStore
from streams.kafka import Record, partition_of
from streams.settings import StreamSettings
from streams.worker import Arrival, BatchResult, Loader, Replica, inboxes, intake, overflow, recovery
from streams.worker.inboxes import OBJECT, Place
from tests.support.fake_worker import (
    GRAPH,
    HERE,
    PARTITIONS,
    Delivered,
    FakeWorker,
    NoLog,
    WholeLog,
    answered_by,
    fact,
    host_of,
    query,
    save_all,
    settings_with_model,
)
from tests.support.running_system import assert_same_answer
from tests.support.small_graph import assert_same_snapshot, shared_model

pytestmark = pytest.mark.slow  # a minute of floods in all

SIZE = 4  # events in a batch
SMALL = next(name for number in range(100) if partition_of(name := f"n{number}", PARTITIONS) == HERE)
FLOOD = 160  # events


@pytest.fixture
def settings(tmp_path: Path) -> StreamSettings:
    made = settings_with_model(tmp_path, batch_events=SIZE, batch_seconds=0.0)
    with_neighbour(made)
    return made


@pytest.fixture(autouse=True)
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inboxes, "ROOM", 30 * OBJECT)
    monkeypatch.setattr(inboxes, "LEAST", 0)
    monkeypatch.setattr(intake, "WAITING", 16)
    monkeypatch.setattr(overflow, "SLICE", 12)
    monkeypatch.setattr(retry, "PAUSE", 0.01)
    monkeypatch.setattr(recovery, "IDLE", 0.01)


def with_neighbour(settings: StreamSettings) -> None:
    store = ModelStore(settings.models)
    store.put(SMALL, Bundle(shared_model("default"), GRAPH.relations, (), "v1"), None)
    store.make_present(SMALL, "v1")


def events(count: int, start: int = 0, name: str = "g") -> list[Arrival]:
    """Three facts and a query in turn."""
    made = (query if offset % 4 == 3 else fact for offset in range(start, start + count))
    return [one(offset, HERE, name.encode()) for offset, one in enumerate(made, start)]


class Life:
    """A worker from its start until it stops or is killed, and what it sent until then."""

    def __init__(self, settings: StreamSettings, log: WholeLog) -> None:
        self.batches: list[Sequence[BatchResult]] = []
        self.log, self.parts = log, FakeWorker(settings, [self.batches.append], log=log)

    def run(self, scenario: Callable[[Life], Any], *, kill: bool = False) -> None:
        async def started() -> None:
            one = self.parts
            one.intake.assigned([HERE])
            one.recovery.assigned([HERE])
            beside = [one.worker.run, one.recovery.run, one.overflow.run]
            tasks = [asyncio.create_task(run()) for run in beside]
            try:
                async with asyncio.timeout(60):
                    await until(lambda: one.host.turns._partitions[HERE].known != set(), tasks)
                    await scenario(self)
            finally:
                if kill:
                    one.worker.abandon()
                await one.recovery.stop()
                await one.overflow.stop()
                await one.worker.stop()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await one.worker.close()

        asyncio.run(started())

    async def load(self) -> None:
        """Both graphs are here before anything comes."""
        host = self.parts.host
        for name in ("g", SMALL):
            await self.parts.device.run(host.waiting.expect, name, HERE)
        await until(lambda: host.find("g") is not None and host.find(SMALL) is not None)

    async def deliver(self, start: int = 0, end: int | None = None) -> None:
        for arrival in self.log.arrivals[start:end]:
            await self.parts.intake.put(Delivered(arrival))

    async def finish(self, count: int) -> None:
        """Until so many queries are answered and nothing waits."""
        await until(lambda: len(self.answers()) >= count and self.is_level())

    def is_level(self) -> bool:
        """Whether everything that was delivered is taken in."""
        partition = self.parts.host.turns._partitions[HERE]
        return self.parts.is_idle and not partition.waiting and self.parts.host.turns.inboxes.firsts() == {}

    def answers(self) -> dict[int, Any]:
        """What was sent, by the offset of its query; one that comes twice must be the same."""
        found: dict[int, Any] = {}
        for topic, message in self.parts.outbox.sent:
            assert topic.endswith("predictions"), message
            body = orjson.loads(message.value)
            assert_same_answer(found.setdefault(body["source"]["offset"], body), body)
        return found

    def taken(self, name: str) -> int:
        """Events of a graph that were taken in so far."""
        return sum(sum(one.counts.values()) for batch in self.batches for one in batch if one.graph == name)


async def until(holds: Callable[[], bool], tasks: Sequence[asyncio.Task[None]] = ()) -> None:
    while True:
        with suppress(KeyError):
            if holds():
                return
        await asyncio.sleep(0.005)


def assert_as_calm(tmp_path: Path, log: WholeLog, settings: StreamSettings, lives: Sequence[Life]) -> None:
    """Every query has its answer, and the states saved last are those of a worker to which nothing happened."""
    calm = settings_with_model(tmp_path / "calm")
    with_neighbour(calm)
    host = host_of(calm)
    results = [one for start in range(0, len(log.arrivals), 8) for one in host.process(log.arrivals[start : start + 8])]
    wanted = {one.arrival.source.offset: orjson.loads(one.body) for one in answered_by(results)}
    found: dict[int, Any] = {}
    for life in lives:
        for offset, body in life.answers().items():
            assert_same_answer(found.setdefault(offset, body), body)
    assert found.keys() == wanted.keys()
    for offset, body in wanted.items():
        assert_same_answer(found[offset], body)
    save_all(host, Loader(calm, Replica()))
    for name in ("g", SMALL):
        states = [SnapshotStore(one.snapshots, name, NoLog("first").log.log_id(HERE)) for one in (settings, calm)]
        mine, theirs = (next(iter(store.newest_first("v1", "cpu"))) for store in states)
        assert_same_snapshot(mine.snapshot, theirs.snapshot)


def test_a_question_behind_a_flood_of_another_graph_is_answered_in_the_batch_after_it_came(
    settings: StreamSettings, tmp_path: Path
) -> None:
    log = WholeLog("first", [*events(FLOOD), query(FLOOD, HERE, SMALL.encode())])
    life = Life(settings, log)
    before = 0

    async def scenario(life: Life) -> None:
        nonlocal before
        await life.load()
        await life.deliver()
        before = life.taken("g")
        assert before < FLOOD // 2, "it was not there before most of the flood was done"
        await until(lambda: FLOOD in life.answers())
        assert life.taken("g") <= before + 2 * SIZE, "the batch under way, and its share of the next one"
        assert life.parts.committed == [] or life.parts.committed[-1][1] <= before + 2 * SIZE
        await life.finish(FLOOD // 4 + 1)
        assert life.parts.incidents.open() == []

    life.run(scenario)
    assert life.parts.committed[-1] == (HERE, FLOOD + 1)
    assert_as_calm(tmp_path, log, settings, [life])


def test_two_floods_and_what_comes_between_them_have_equal_shares(settings: StreamSettings, tmp_path: Path) -> None:
    log = WholeLog("first", [*events(FLOOD), *events(FLOOD, FLOOD, SMALL), *events(20, 2 * FLOOD)])
    life = Life(settings, log)

    async def scenario(life: Life) -> None:
        await life.load()
        await life.deliver()
        before = life.taken("g"), life.taken(SMALL)
        await until(lambda: life.taken(SMALL) > before[1] + 60)
        grown = life.taken("g") - before[0], life.taken(SMALL) - before[1]
        assert abs(grown[0] - grown[1]) <= 40, "as much as an inbox may be ahead while the log is read"
        await life.finish(FLOOD // 2 + 5)

    life.run(scenario)
    assert_as_calm(tmp_path, log, settings, [life])


def test_a_graph_alone_in_its_partition_reads_nothing_twice_and_holds_back_what_delivers(
    tmp_path: Path,
) -> None:
    settings = settings_with_model(tmp_path, batch_events=SIZE, batch_seconds=0.0)
    life = Life(settings, WholeLog("first", events(FLOOD)))

    async def scenario(life: Life) -> None:
        opened = life.log.opened
        delivering = asyncio.create_task(life.deliver())
        await until(lambda: HERE in life.parts.flow.paused and not delivering.done())
        await life.finish(FLOOD // 4)
        assert life.log.opened <= opened + 1, "to load the graph"

    life.run(scenario)


@pytest.mark.parametrize("moment", [0, 1, 7, 40])
def test_killed_in_a_flood_nothing_is_lost_and_the_states_are_the_same(
    settings: StreamSettings, tmp_path: Path, moment: int
) -> None:
    arrivals = [*events(10, 0, SMALL), *events(FLOOD // 2, 10), *events(6, 10 + FLOOD // 2, SMALL)]
    arrivals += events(FLOOD // 2, len(arrivals)) + events(6, len(arrivals) + FLOOD // 2, SMALL)
    log = WholeLog("first", arrivals)
    first, second = Life(settings, log), Life(settings, log)

    async def killed(life: Life) -> None:
        await life.deliver()
        await until(lambda: len(life.answers()) > moment)
        await life.parts.checkpointer.settle()
        done = len(life.batches)
        await until(lambda: len(life.batches) > done + moment or life.parts.is_idle)

    first.run(killed, kill=True)
    start = first.parts.committed[-1][1] if first.parts.committed else 0
    assert start < len(arrivals)

    async def goes_on(life: Life) -> None:
        await life.deliver(start)
        await until(lambda: first.answers().keys() | life.answers().keys() >= queries(arrivals))
        await until(life.is_level)

    second.run(goes_on)
    assert second.parts.committed[-1] == (HERE, len(arrivals))
    assert_as_calm(tmp_path, log, settings, [first, second])


def queries(arrivals: Sequence[Arrival]) -> set[int]:
    return {one.source.offset for one in arrivals if b'"query"' in (one.value or b"")}


def test_a_graph_that_fails_in_its_flood_goes_on_from_the_log_and_others_never_wait(
    settings: StreamSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = WholeLog("first", [*events(FLOOD), *events(8, FLOOD, SMALL)])
    life, failures = Life(settings, log), [RuntimeError("halfway")]
    process = life.parts.host.process

    def poisoned(*arguments: Any) -> Any:
        hosted = life.parts.host.find("g")
        if hosted is not None and failures and hosted.offset > 20:

            def fails(*_: Any, **__: Any) -> None:
                raise failures.pop()

            monkeypatch.setattr(hosted.graph, "apply", fails)
        return process(*arguments)

    monkeypatch.setattr(life.parts.host, "process", poisoned)

    async def scenario(life: Life) -> None:
        await life.deliver()
        await life.finish(FLOOD // 4 + 2)
        assert not failures

    life.run(scenario)
    assert life.parts.committed[-1] == (HERE, len(log.arrivals))
    assert_as_calm(tmp_path, log, settings, [life])


def test_a_log_that_cannot_be_read_for_a_while_is_an_incident_of_the_graph_that_floods_alone(
    settings: StreamSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = WholeLog("first", [*events(FLOOD), *events(8, FLOOD, SMALL)])
    life, read, away = Life(settings, log), log.records, [True]

    def records(reader: Any, partition: int, graphs: Any, start: int, end: int) -> Iterator[Record]:
        if away and end - start <= overflow.SLICE and start > 0:
            raise AdatkgError("nothing came for 60 s")
        yield from read(reader, partition, graphs, start, end)

    monkeypatch.setattr(log, "records", records)

    async def scenario(life: Life) -> None:
        await life.load()
        await life.deliver()
        await until(
            lambda: (
                bool(life.parts.incidents.open()) and len(queries(log.arrivals[FLOOD:]) - life.answers().keys()) == 0
            )
        )
        assert {one.graph for one in life.parts.incidents.open()} == {"g"}
        assert len(life.answers()) < FLOOD // 4
        away.clear()
        await life.finish(FLOOD // 4 + 2)
        assert life.parts.incidents.open() == []

    life.run(scenario)
    assert_as_calm(tmp_path, log, settings, [life])


def test_before_a_gap_is_filled_what_came_before_it_is_taken_in(settings: StreamSettings, tmp_path: Path) -> None:
    log = WholeLog("first", [*events(FLOOD), *events(10, FLOOD, SMALL), *events(10, FLOOD + 10)])
    host = host_of(settings, log)
    host.know([("g", HERE), (SMALL, HERE)])
    first = host.process(log.arrivals[:100], SIZE)
    assert len(answered_by(first)) == SIZE // 4
    host.process(log.arrivals[FLOOD + 12 :], SIZE)  # others had the partition meanwhile
    waiting = host.waiting.next()
    assert waiting is not None and waiting.name == "g" and waiting.hosted is not None
    assert waiting.first == waiting.hosted.offset < 100, "of what was left in the log nobody has answered anything"
    assert host.capture().waiting == {HERE: waiting.first}


def test_what_waits_of_a_partition_that_has_moved_elsewhere_is_forgotten(settings: StreamSettings) -> None:
    host = host_of(settings, WholeLog("first", events(40)))
    host.process(events(40), SIZE)
    assert host.turns.is_waiting
    host.keep_only([(HERE + 1) % PARTITIONS])
    assert host.turns.inboxes.firsts() == {} and host.process([]) == []


def test_a_graph_that_comes_to_a_model_event_in_its_flood_keeps_nothing_in_memory(settings: StreamSettings) -> None:
    arrivals = events(40)
    arrivals[2] = replace(arrivals[2], value=encode_model("v2"))
    host = host_of(settings, WholeLog("first", arrivals))
    host.process(arrivals, SIZE)
    hosted = host.find("g")
    assert hosted is not None and hosted.behind and hosted.offset == 2
    assert host.turns.inboxes.of(HERE) == {}
    host.process(events(5, 40))
    assert host.turns.inboxes.of(HERE) == {} and host.capture().waiting == {HERE: 2} and host.delivered(hosted) == 45


def test_a_graph_expected_while_its_first_events_wait_for_their_turn_is_loaded_by_these(
    settings: StreamSettings,
) -> None:
    host = host_of(settings, WholeLog("first", events(40)))
    host.process([*events(20), *events(1, 20, "nobody")], 0)
    assert host.waiting.expect("g", HERE) is None, "or it would take in silence what nobody has answered"
    assert len(answered_by(host.process([], 100))) == 5


def test_events_of_one_key_in_a_foreign_partition_are_moved_in_their_order_whatever_else_comes(
    settings: StreamSettings,
) -> None:
    elsewhere = (HERE + 1) % PARTITIONS
    arrivals = [fact(offset, elsewhere, b"g" if offset % 3 else b"junk") for offset in range(60)]
    host = host_of(settings, WholeLog("first"))
    moved = [one for result in host.process(arrivals, SIZE) for one in result.moved]
    while host.turns.is_waiting or host.turns.next_left(1):
        moved += [one for result in host.process([], SIZE) for one in result.moved]
        if (left := host.turns.next_left(7)) is not None:
            host.turns.read_on(left, arrivals[left.start : left.end])
    mine = [one.source for one in moved if one.key == b"g"]
    assert mine == [Source(elsewhere, offset) for offset in range(60) if offset % 3]


def test_a_graph_that_gets_a_model_counts_as_another_from_then_on(settings: StreamSettings) -> None:
    host = host_of(settings, WholeLog("first", events(FLOOD)))
    host.process(events(FLOOD), SIZE)
    assert host.turns.progress() == ({HERE: SIZE}, {HERE}), "nobody else is known: the fetch waits"
    host.expect_model(SMALL)
    assert host.turns.progress() == ({HERE: SIZE}, set())
    host.process(events(8, FLOOD), SIZE)
    assert host.turns.inboxes.first(Place(HERE, b"g")) == 2 * SIZE
    assert host.turns.inboxes.of(HERE)[Place(HERE, b"g")].left == FLOOD


def test_of_very_many_keys_with_something_to_do_no_more_is_brought(
    settings: StreamSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inboxes, "PLACES", 20)
    host = host_of(settings, WholeLog("first"))
    host.process([fact(offset, HERE, b"nobody%d" % offset) for offset in range(30)], SIZE)
    assert host.turns.progress()[1] == {HERE}
    host.process([], 10)
    assert host.turns.progress()[1] == set()

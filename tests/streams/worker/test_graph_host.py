"""Deliveries as they may really come: again, in part, to the wrong place, from another log; and failing saves."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from adatkg_core.clock import Clock
from adatkg_core.errors import AdatkgError
from adatkg_core.events import Source
from adatkg_core.messages import encode_fact, encode_query
from adatkg_core.storage import Bundle, ModelStore
from adatkg_core.text import load_encoder
from streams.kafka import Connection, EventLog, Topics, partition_of
from streams.settings import StreamSettings
from streams.worker import Done, Host, Metrics, Pump, Share
from streams.worker.live_graph import Arrival, Graph
from tests.support.small_graph import shared_model, small_graph

GRAPH = small_graph()
RELATION, SUBJECT = GRAPH.relations[0], GRAPH.entities[0]
PARTITIONS = 4
HERE = partition_of("g", PARTITIONS)


class NoLog(Host):
    """A host whose log is empty before what is delivered; nothing has to be read from a broker."""

    log_id = "first"

    def _bounds(self, number: int) -> tuple[int, int]:
        return 0, 1_000_000

    def _log(self) -> EventLog:
        return EventLog(self.log_id, PARTITIONS)

    def _catch_up(self, number: int, seats: Any, end: int) -> None:
        return None


@pytest.fixture
def settings(tmp_path: Path) -> StreamSettings:
    store = ModelStore(str(tmp_path / "models"))
    store.put("g", Bundle(shared_model("default"), GRAPH.relations, (), "v1"), None)
    store.make_present("g", "v1")
    return StreamSettings(models=str(tmp_path / "models"), snapshots=str(tmp_path / "snapshots"), device="cpu")


def host(settings: StreamSettings, log_id: str = "first") -> NoLog:
    made = NoLog(settings, Connection("127.0.0.1:1"), Topics())
    made.log_id = log_id
    return made


def fact(offset: int, partition: int = HERE) -> Arrival:
    value = encode_fact(SUBJECT, RELATION, GRAPH.entities[1 + offset % 5], offset)
    return Arrival(Source(partition, offset), 0.0, b"g", value)


def query(offset: int, partition: int = HERE) -> Arrival:
    value = encode_query(f"q{offset}", RELATION, "next", s=SUBJECT)
    return Arrival(Source(partition, offset), 0.0, b"g", value)


def interactions(done: Done) -> list[int]:
    return [orjson.loads(one.body)["interactions"] for one in done.answered]


def test_an_answer_says_the_tick_that_was_asked_about_and_both_times_in_the_calendar(settings: StreamSettings) -> None:
    bundle = Bundle(shared_model("default"), GRAPH.relations, (), "v1", clock=Clock("2014-01-01"))
    graph = Graph("g", bundle, load_encoder(shared_model("default").config.model.encoder), settings, Share())
    asked: list[int | str] = ["next", 4, "2014-01-03T12:00", -(2**31) + 1]
    value = [encode_query(f"q{number}", RELATION, time, s=SUBJECT) for number, time in enumerate(asked)]
    queries = [Arrival(Source(HERE, 1 + number), 0.0, b"g", one) for number, one in enumerate(value)]
    once, again = (graph.apply([fact(9), *queries]).answered for _ in range(2))
    found = [orjson.loads(one.body) for one in once]
    keys = ("tick", "time", "as_of", "as_of_time", "late")
    assert [tuple(one[key] for key in keys) for one in found] == [
        (10, "2014-01-11", 10, "2014-01-11", False),
        (4, "2014-01-05", 9, "2014-01-10", True),
        (2, "2014-01-03", 9, "2014-01-10", True),
        (-(2**31) + 1, None, 9, "2014-01-10", True),  # long before the calendar begins
    ]
    assert [one["query"]["t"] for one in found] == asked
    assert [one.body for one in once[1:]] == [one.body for one in again[1:]]


def test_an_event_that_comes_again_within_a_batch_is_taken_in_once(settings: StreamSettings) -> None:
    one = host(settings)
    order = [0, 1, 2, 3, 1, 2, 3, 4, 5, 0, 6]
    done = one.process([*map(fact, order), query(7)])
    assert interactions(done) == [7]
    assert interactions(one.process([query(7), query(8)])) == [7]


def test_a_graph_in_a_partition_that_is_not_its_own_is_a_dead_letter(settings: StreamSettings) -> None:
    done = host(settings).process([fact(0, (HERE + 1) % PARTITIONS), query(1, (HERE + 1) % PARTITIONS)])
    assert [rejected.code for _, rejected in done.rejected] == ["wrong-partition"] * 2


def test_a_snapshot_of_another_log_is_neither_used_nor_in_the_way(settings: StreamSettings) -> None:
    old = host(settings)
    old.process([fact(offset) for offset in range(20)])
    capture = old.capture()
    old.save(capture)
    new = host(settings, log_id="second")
    assert interactions(new.process([fact(0), query(1)])) == [1]
    capture = new.capture()
    new.save(capture)
    again = host(settings, log_id="second")
    assert interactions(again.process([query(2)])) == [1]


def test_a_capture_that_was_not_saved_is_captured_again(settings: StreamSettings) -> None:
    one = host(settings)
    one.process([fact(0)])
    assert len(one.capture().states) == len(one.capture().states) == 1
    capture = one.capture()
    one.save(capture)
    one.saved(capture)
    assert one.capture().states == ()


# -- the pump ---------------------------------------------------------------------------------------------------


@dataclass
class Message:
    """What Faust delivers, as far as the pump reads it."""

    partition: int
    offset: int
    key: bytes
    value: bytes | None
    timestamp: float = 0.0
    headers: Any = None


class Delivered:
    def __init__(self, arrival: Arrival, acknowledged: list[int]) -> None:
        self.message = Message(arrival.source.partition, arrival.source.offset, b"g", arrival.value)
        self._acknowledged = acknowledged

    def ack(self) -> bool:
        self._acknowledged.append(self.message.offset)
        return True


class Outbox:
    """Stands in for the sender: what was sent is durable at once."""

    def __init__(self) -> None:
        self.sent: deque[Any] = deque()

    def send(self, topic: str, messages: Sequence[Any]) -> None:
        self.sent.extend(messages)

    async def room(self) -> None:
        return None

    async def flush(self) -> None:
        return None


def pump_of(one: Host, settings: StreamSettings, *watch: Callable[[Done], None]) -> Pump:
    return Pump(settings, Topics(), one, Outbox(), Metrics(), lambda _: None, *watch)  # type: ignore[arg-type]


def test_what_could_not_be_saved_is_not_acknowledged(settings: StreamSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    one = host(settings)
    acknowledged: list[int] = []

    def full(_: Any) -> None:
        raise AdatkgError("the disk is full")

    async def scenario() -> None:
        pump = pump_of(one, settings)
        pump.moved([HERE])
        running = asyncio.create_task(pump.run())
        for offset in range(5):
            await pump.put(Delivered(fact(offset), acknowledged))
        await asyncio.sleep(0.5)
        with monkeypatch.context() as patched:
            patched.setattr(one, "save", full)
            await pump.settle()
            assert acknowledged == []
        await pump.settle()
        assert acknowledged == [0, 1, 2, 3, 4]
        await pump.stop()
        await running
        pump.close()

    asyncio.run(scenario())


def test_an_answers_latency_begins_when_its_query_was_handed_over(settings: StreamSettings) -> None:
    told: list[Done] = []

    async def scenario() -> float:
        pump = pump_of(host(settings), settings, told.append)
        pump.moved([HERE])
        began = time.monotonic()
        await pump.put(Delivered(query(0), []))
        await asyncio.sleep(0.3)
        await pump.put(Delivered(query(1), []))
        running = asyncio.create_task(pump.run())
        while sum(len(done.answered) for done in told) < 2:
            await asyncio.sleep(0.01)
        took = time.monotonic() - began
        await pump.stop()
        await running
        pump.close()
        return took

    took = asyncio.run(scenario())
    (batch,) = [done.answered for done in told if done.answered]
    first, second = (one.latency for one in batch)
    assert took > first > second > 0 and first - second > 0.2


def test_a_batch_that_fails_halfway_is_never_saved(settings: StreamSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    one = host(settings)
    acknowledged: list[int] = []
    applied = Graph.apply

    def poisoned(self: Graph, arrivals: Sequence[Arrival], *, silent: bool = False) -> Any:
        outcome = applied(self, arrivals, silent=silent)
        if any(arrival.source.offset == 3 for arrival in arrivals):
            raise RuntimeError("halfway")
        return outcome

    async def scenario() -> None:
        pump = pump_of(one, settings)
        pump.moved([HERE])
        running = asyncio.create_task(pump.run())
        for offset in range(5):
            await pump.put(Delivered(fact(offset), acknowledged))
        with pytest.raises(RuntimeError, match="halfway"):
            await running
        await pump.stop()
        assert pump.stalled
        pump.close()

    monkeypatch.setattr(Graph, "apply", poisoned)
    asyncio.run(scenario())
    assert acknowledged == []
    assert not Path(settings.snapshots).exists()

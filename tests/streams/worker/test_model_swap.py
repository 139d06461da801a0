"""What comes of an announcement, over a log that needs no broker: who answers afterwards, and from which events."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import orjson
import pytest
from structlog.testing import capture_logs

from adatkg_core.errors import AdatkgError
from adatkg_core.messages import Announcement, encode_announcement
from adatkg_core.storage import Bundle, ModelStore
from streams.kafka import Connection, Record, Topics
from streams.settings import StreamSettings
from streams.worker import Arrival, ModelSwap, model_swap
from tests.support.fake_worker import GRAPH, HERE, PARTITIONS, FakeWorker, answered_by, fact, query, settings_with_model
from tests.support.small_graph import small_config, small_model

BATCH = 8
NEW = Bundle(small_model(small_config(), seed=9), GRAPH.relations, (), "v2")


def announced(version: str, *, graph: str = "g", status: Literal["present", "candidate"] = "present") -> bytes:
    return encode_announcement(Announcement(graph, version, status, "for a test", False, None))


class KeptLog:
    """The events' topic as a list; a test may have something happen when a part of it is read."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.read_sizes: list[int] = []
        self.meanwhile: Callable[[], None] = lambda: None

    def append(self, arrivals: Sequence[Arrival]) -> None:
        for one in arrivals:
            self.records.append(Record(one.source.partition, one.source.offset, 0, one.key, one.value, ()))

    def read(self, partition: int, start: int, end: int) -> Iterator[Record]:
        self.read_sizes.append(end - start)
        self.meanwhile()
        return (one for one in self.records if one.partition == partition and start <= one.offset < end)


class Scene:
    """A worker that answers for graph `g` with `v1`, its log, and the swap under test."""

    def __init__(self, settings: StreamSettings, log: KeptLog) -> None:
        self.parts, self.log = FakeWorker(settings), log
        self.store = ModelStore(settings.models)
        parts = self.parts
        self.swap = ModelSwap(
            Connection("127.0.0.1:1"), Topics(), parts.loader, parts.host, parts.device, parts.metrics, BATCH
        )

    def deliver(self, *arrivals: Arrival) -> list[dict[str, Any]]:
        """Events come in; the answers. On the device's thread, or before a swap has begun."""
        self.log.append(arrivals)
        return [orjson.loads(one.body) for one in answered_by(self.parts.host.process(arrivals))]

    def promote(self, bundle: Bundle) -> None:
        """Make a bundle present, and let the swap hear of it."""
        self.store.put("g", bundle, None)
        self.store.make_present("g", bundle.version)
        self.hear(announced(bundle.version))

    def hear(self, data: bytes | None) -> None:
        async def scenario() -> None:
            self.loop = asyncio.get_running_loop()
            await self.swap.hear(data)

        asyncio.run(scenario())

    def on_device(self, work: Callable[[], Any]) -> None:
        """From the thread that reads files: what the worker does between two steps of the swap."""
        asyncio.run_coroutine_threadsafe(self.parts.device.run(work), self.loop).result(30)

    def version(self) -> str | None:
        hosted = self.parts.host.find("g")
        return None if hosted is None else hosted.graph.version

    def metric(self, name: str) -> float:
        return self.parts.metrics.registry.get_sample_value(name, {"graph": "g"}) or 0.0


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    log = KeptLog()

    @contextmanager
    def open_kept(connection: Connection, topic: str) -> Iterator[KeptLog]:
        assert topic == Topics().events
        yield log

    monkeypatch.setattr(model_swap, "open_log", open_kept)
    made = Scene(settings_with_model(tmp_path), log)
    yield made
    asyncio.run(made.swap.stop())
    made.parts.device.close()


def test_the_new_bundle_answers_from_all_that_the_old_one_has_seen(scene: Scene) -> None:
    scene.deliver(*map(fact, range(100)))
    scene.promote(NEW)
    (answer,) = scene.deliver(query(100))
    assert (answer["model"], answer["interactions"]) == ("v2", 100)
    assert scene.metric("adatkg_swaps_total") == 1 and scene.metric("adatkg_model_refusals_total") == 0


def test_no_step_of_a_swap_takes_more_than_a_batch(scene: Scene) -> None:
    scene.deliver(*map(fact, range(100)))
    scene.promote(NEW)
    assert sum(scene.log.read_sizes) == 100 and max(scene.log.read_sizes) == BATCH
    steps = scene.parts.metrics.registry.get_sample_value("adatkg_swap_step_seconds_count") or 0.0
    assert steps >= 100 / BATCH


def test_events_that_come_during_a_swap_are_answered_by_the_old_and_known_to_the_new(scene: Scene) -> None:
    scene.deliver(*map(fact, range(100)))
    coming, during = iter(range(100, 150)), []

    def go_on() -> None:
        arrivals = [query(offset) if offset % 2 else fact(offset) for offset in islice(coming, 2)]
        scene.on_device(lambda: during.extend(scene.deliver(*arrivals)))

    scene.log.meanwhile = go_on
    scene.promote(NEW)
    end = next(coming)
    assert len(during) == (end - 100) // 2 > 0
    assert {answer["model"] for answer in during} == {"v1"}
    (answer,) = scene.deliver(query(end))
    assert (answer["model"], answer["interactions"]) == ("v2", 100 + (end - 100) // 2)


def test_a_graph_that_leaves_during_a_swap_ends_it_without_a_word(scene: Scene) -> None:
    scene.deliver(*map(fact, range(100)))
    elsewhere = [(HERE + 1) % PARTITIONS]
    scene.log.meanwhile = lambda: scene.on_device(lambda: scene.parts.host.keep_only(elsewhere))
    with capture_logs() as said:
        scene.promote(NEW)
    assert scene.version() is None and scene.metric("adatkg_swaps_total") == 0
    assert [line["event"] for line in said] == ["swap_begins"] and len(scene.log.read_sizes) == 1


def test_a_bundle_that_lacks_a_relation_is_refused_and_the_present_one_goes_on(scene: Scene) -> None:
    scene.deliver(*map(fact, range(20)))
    with capture_logs() as said:
        scene.promote(replace(NEW, relations=("Something else", *GRAPH.relations[1:])))
    (refused,) = (line for line in said if line["event"] == "model_refused")
    assert f"lacks relation '{GRAPH.relations[0]}'" in refused["problem"] and refused["present"] == "v1"
    assert scene.metric("adatkg_model_refusals_total") == 1 and scene.metric("adatkg_swaps_total") == 0
    (answer,) = scene.deliver(query(20))
    assert (answer["model"], answer["interactions"]) == ("v1", 20)


def test_a_log_that_cannot_be_read_ends_a_swap_and_the_next_announcement_is_acted_on(scene: Scene) -> None:
    def away() -> None:
        raise AdatkgError("the brokers are away")

    scene.deliver(*map(fact, range(20)))
    scene.log.meanwhile = away
    scene.promote(NEW)
    hosted = scene.parts.host.find("g")
    assert hosted is not None and hosted.incoming is None, "it would overhear all that comes, for ever"
    assert scene.version() == "v1" and scene.metric("adatkg_model_refusals_total") == 1
    scene.log.meanwhile = lambda: None
    scene.promote(replace(NEW, version="v3"))
    assert scene.version() == "v3"


def test_a_graph_without_a_model_gets_its_first_one_at_its_next_event(scene: Scene) -> None:
    (Path(scene.store.url) / "g" / "present.json").unlink()
    scene.deliver(fact(0))
    assert scene.version() is None
    scene.promote(NEW)
    assert scene.version() is None and scene.log.read_sizes == [], "nothing has come for it yet"
    scene.deliver(fact(1))
    assert scene.version() == "v2"


@pytest.mark.parametrize(
    "said", ["of an earlier version", "of the present version", "of a candidate", "of another graph", "of nobody"]
)
def test_an_announcement_that_does_not_matter_changes_nothing(scene: Scene, said: str) -> None:
    scene.deliver(fact(0))
    scene.store.put("g", NEW, None)
    what: dict[str, bytes] = {
        "of an earlier version": announced("v0"),  # since overtaken: v1 is present
        "of the present version": announced("v1"),
        "of a candidate": announced("v2", status="candidate"),
        "of another graph": announced("v2", graph="elsewhere"),
        "of nobody": b"rubbish",
    }
    with capture_logs() as lines:
        scene.hear(what[said])
    assert [line["event"] for line in lines] == (["announcement_unusable"] if said == "of nobody" else [])
    assert scene.version() == "v1" and scene.log.read_sizes == []
    assert scene.metric("adatkg_swaps_total") == scene.metric("adatkg_model_refusals_total") == 0


class Announcing:
    """A consumer of announcements to which the brokers have one to give as soon as it is let go."""

    def __init__(self, announcement: bytes, arrived: asyncio.Event) -> None:
        self._value, self._arrived, self.stopped = announcement, arrived, False

    async def start(self) -> None: ...

    def assign(self, partitions: object) -> None: ...

    async def stop(self) -> None:
        self.stopped = True

    def __aiter__(self) -> Announcing:
        return self

    async def __anext__(self) -> Any:
        await self._arrived.wait()
        self._arrived.clear()
        return SimpleNamespace(value=self._value)


def test_an_announcement_that_comes_while_the_worker_ends_is_no_crash(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        arrived = asyncio.Event()
        consumer = Announcing(announced("v2"), arrived)
        monkeypatch.setattr(model_swap, "AIOKafkaConsumer", lambda **_: consumer)
        running = asyncio.create_task(scene.swap.run())
        await asyncio.sleep(0.01)
        await scene.swap.stop()
        scene.parts.device.close()
        arrived.set()
        await asyncio.wait([running], timeout=5)
        assert running.done() and (running.cancelled() or running.exception() is None)
        assert consumer.stopped

    asyncio.run(scenario())


def test_a_swap_under_way_is_given_up_when_the_worker_ends(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.deliver(*map(fact, range(100)))
    scene.store.put("g", NEW, None)
    scene.store.make_present("g", NEW.version)

    async def scenario() -> None:
        arrived = asyncio.Event()
        arrived.set()
        monkeypatch.setattr(model_swap, "AIOKafkaConsumer", lambda **_: Announcing(announced("v2"), arrived))
        reading, go_on = threading.Event(), threading.Event()

        def hold() -> None:
            reading.set()
            go_on.wait(30)

        scene.log.meanwhile = hold
        running = asyncio.create_task(scene.swap.run())
        await asyncio.to_thread(reading.wait, 30)
        stopping = asyncio.create_task(scene.swap.stop())
        await asyncio.sleep(0.01)
        go_on.set()
        await stopping
        assert running.cancelled()

    asyncio.run(scenario())
    assert scene.version() == "v1"

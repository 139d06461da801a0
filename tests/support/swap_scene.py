"""A worker and its hot swap over a log that needs no broker: what is published, delivered, answered, and crashed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest

from adatkg_core.events import Source
from adatkg_core.messages import Announcement, Verdict, encode_announcement, encode_fact, encode_query
from adatkg_core.runtime import Retry
from adatkg_core.storage import Bundle, ModelStore, Saved
from streams.kafka import Connection, EventLog, Record, Topics
from streams.settings import StreamSettings
from streams.worker import Arrival, CatchUp, ModelSwap, catch_up, model_swap
from tests.support.fake_worker import GRAPH, HERE, PARTITIONS, RELATION, SUBJECT, FakeWorker, save_all
from tests.support.small_graph import small_config, small_model

BATCH = 8
LOG_ID = f"first-{HERE}"
NEW = Bundle(small_model(small_config(), seed=9), GRAPH.relations, (), "v2")


def announced(
    version: str,
    *,
    graph: str = "g",
    status: Literal["present", "candidate"] = "present",
    verdict: Verdict | None = None,
) -> bytes:
    return encode_announcement(Announcement(graph, version, status, "for a test", False, verdict))


class KeptLog:
    """One partition of the events' topic as a list; a test may have something happen when a part of it is read."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.reads = 0
        self.meanwhile: Callable[[], None] = lambda: None

    def append(self, value: bytes, key: bytes = b"g") -> int:
        offset = len(self.records)
        self.records.append(Record(HERE, offset, 0, key, value, ()))
        return offset

    def facts(self, count: int, key: bytes = b"g") -> None:
        """The next facts, each of a time of its own."""
        for offset in range(len(self.records), len(self.records) + count):
            self.append(encode_fact(SUBJECT, RELATION, GRAPH.entities[1 + offset % 5], offset), key)

    def query(self, key: bytes = b"g") -> int:
        return self.append(encode_query(f"q{len(self.records)}", RELATION, "next", s=SUBJECT), key)

    def mixed(self, count: int) -> None:
        """Facts and queries in turn."""
        for _ in range(count // 2):
            self.facts(1)
            self.query()

    def bounds(self, partition: int) -> tuple[int, int]:
        return 0, len(self.records)

    def read(self, partition: int, start: int, end: int) -> Iterator[Record]:
        assert partition == HERE
        self.reads += 1
        self.meanwhile()
        return iter(self.records[start:end])

    @contextmanager
    def open(self, connection: Connection, topic: str) -> Iterator[KeptLog]:
        assert topic == Topics().events
        yield self


class Scene:
    """A worker that answers for graph `g` with `v1`, its log, and the swap under test."""

    def __init__(self, settings: StreamSettings, log: KeptLog, begin: int = 0) -> None:
        reader = CatchUp(Connection("127.0.0.1:1"), Topics(), Retry("loading_failed"))
        reader._log = EventLog("first", PARTITIONS)
        self.settings, self.log, self.begin, self.delivered = settings, log, begin, begin
        self.parts, self.store = FakeWorker(settings, log=reader), ModelStore(settings.models)
        parts = self.parts
        self.swap = ModelSwap(
            Connection("127.0.0.1:1"), Topics(), parts.loader, parts.host, parts.worker, parts.metrics, BATCH
        )

    def deliver(self, count: int | None = None) -> None:
        """So many of the events that are in the log come in, or all. On the device's thread, or outside any loop."""
        end = len(self.log.records) if count is None else self.delivered + count
        some, self.delivered = self.log.records[self.delivered : end], end
        arrivals = [Arrival(Source(HERE, one.offset), 0.0, one.key, one.value, answered=self.begin) for one in some]
        if arrivals:
            self.parts.publisher.publish(self.parts.host.process(arrivals), 0.0)

    def put(self, bundle: Bundle, state: Saved | None = None) -> None:
        """Make a bundle present."""
        self.store.put("g", bundle, state)
        self.store.make_present("g", bundle.version)

    def hear(self, data: bytes | None) -> None:
        """An announcement comes, and all is done that is to be done about it."""

        async def scenario() -> None:
            self.loop = asyncio.get_running_loop()
            if (task := self.swap.hear(data)) is not None:
                await task

        asyncio.run(scenario())

    def promote(self, bundle: Bundle, state: Saved | None = None) -> None:
        self.put(bundle, state)
        self.hear(announced(bundle.version))

    def attend(self) -> None:
        """All is done that graphs have come to."""

        async def scenario() -> None:
            self.loop = asyncio.get_running_loop()
            while tasks := self.swap.look_again():
                await asyncio.gather(*tasks)

        asyncio.run(scenario())

    def settle(self) -> None:
        """What was published is delivered, and what comes of it is done, until nothing is left."""
        while self.delivered < len(self.log.records) or self.swap._changed:
            self.deliver()
            self.attend()

    def save(self) -> int:
        """A checkpoint; returns the offset from which a worker that comes after a crash is given events."""
        capture = save_all(self.parts.host, self.parts.loader)
        return min(capture.positions[HERE], capture.waiting.get(HERE, capture.positions[HERE]))

    def on_device(self, work: Callable[[], Any]) -> None:
        """From the thread that reads files: what the worker does between two steps of the swap."""
        asyncio.run_coroutine_threadsafe(self.parts.device.run(work), self.loop).result(30)

    def answers(self) -> dict[int, dict[str, Any]]:
        """By the offset of the query; two that differ are an error."""
        found: dict[int, dict[str, Any]] = {}
        for topic, message in self.parts.outbox.sent:
            if topic == Topics().predictions:
                answer = orjson.loads(message.value)
                assert found.setdefault(answer["source"]["offset"], answer) == answer
        return found

    def versions(self) -> dict[int, str]:
        """Who answered, by the offset of the query."""
        return {offset: answer["model"] for offset, answer in sorted(self.answers().items())}

    def letters(self) -> list[tuple[str, str]]:
        """Offset and reason of each dead letter."""
        sent = [message for topic, message in self.parts.outbox.sent if topic == Topics().deadletter]
        return [(dict(one.headers)["offset"].decode(), dict(one.headers)["reason"].decode()) for one in sent]

    def version(self) -> str | None:
        hosted = self.parts.host.find("g")
        return None if hosted is None else hosted.graph.version

    def metric(self, name: str) -> float:
        return self.parts.metrics.registry.get_sample_value(name, {"graph": "g"}) or 0.0

    def close(self) -> None:
        asyncio.run(self.swap.stop())
        self.parts.device.close()


def use_log(monkeypatch: pytest.MonkeyPatch, log: KeptLog) -> None:
    """Let all that is read and appended in this test be of this log."""
    monkeypatch.setattr(model_swap, "open_log", log.open)
    monkeypatch.setattr(catch_up, "open_log", log.open)
    monkeypatch.setattr(model_swap, "append_event", lambda _, __, graph, value: log.append(value, graph.encode()))
    monkeypatch.setattr(model_swap, "RETRY", 0.01)


def settings_of(folder: Path, **options: Any) -> StreamSettings:
    """Settings of a worker whose store is there already."""
    return StreamSettings(models=str(folder / "models"), snapshots=str(folder / "snapshots"), device="cpu", **options)

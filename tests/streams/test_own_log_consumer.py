"""What a group has committed counts for the log that it was committed in."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from aiokafka.structs import OffsetAndMetadata

from streams import own_log_consumer
from streams.kafka import EventLog
from streams.own_log_consumer import OwnOffsets

A, B, C, D = (TopicPartition("events", number) for number in range(4))


class Group:
    """A consumer of a group that keeps what was committed, by partition."""

    def __init__(self) -> None:
        self.kept: dict[TopicPartition, OffsetAndMetadata] = {}
        self.at = dict.fromkeys((A, B, C, D), 12)  # what was fetched before that was dropped
        self._coordinator = SimpleNamespace(fetch_committed_offsets=self._fetch)

    async def commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        if not offsets:
            raise ValueError(offsets)  # as the library does
        self.kept |= offsets

    def assignment(self) -> set[TopicPartition]:
        return set(self.at)

    def seek(self, place: TopicPartition, offset: int) -> None:
        self.at[place] = offset

    async def seek_to_beginning(self, *places: TopicPartition) -> None:
        self.at |= dict.fromkeys(places, 0)

    async def _fetch(self, places: list[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        return {place: self.kept[place] for place in places if place in self.kept}


def member(group: Any, log_id: str) -> OwnOffsets:
    return OwnOffsets(group, lambda: EventLog(log_id, 4))


def test_offsets_that_were_committed_in_another_log_do_not_count() -> None:
    group = Group()

    async def scenario() -> dict[TopicPartition, int | None]:
        await member(group, "old").commit({A: OffsetAndMetadata(70, ""), B: OffsetAndMetadata(30, "")})
        await member(group, "new").commit({B: OffsetAndMetadata(5, "")})
        group.kept[C] = OffsetAndMetadata(9, "")  # by an earlier version, or by hand
        return await member(group, "new").seek_to_committed()

    assert asyncio.run(scenario()) == {A: None, B: 5, C: 9, D: None}
    assert group.at == {A: 0, B: 5, C: 9, D: 0}, "also where nothing was committed"


def test_a_topic_made_anew_while_a_place_in_it_is_looked_for_is_read_from_its_beginning() -> None:
    group = Group()

    def looked_up() -> EventLog:
        group.kept.clear()  # with a topic its offsets are gone
        return EventLog("new", 4)

    async def scenario() -> dict[TopicPartition, int | None]:
        await member(group, "old").commit({A: OffsetAndMetadata(3_000, "")})
        return await OwnOffsets(group, looked_up).seek_to_committed()

    assert asyncio.run(scenario()) == dict.fromkeys((A, B, C, D))
    assert group.at == dict.fromkeys((A, B, C, D), 0)


def test_a_log_that_is_not_seen_for_long_ends_the_search_for_a_place_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_log_consumer, "KNOWN_WITHIN", 0.01)
    found = threading.Event()

    def looked_up() -> EventLog:
        found.wait(10)
        return EventLog("late", 4)

    async def scenario() -> None:
        try:
            with pytest.raises(KafkaError, match="not seen within"):
                await OwnOffsets(Group(), looked_up).seek_to_committed()
        finally:
            found.set()

    asyncio.run(scenario())


def test_a_worker_whose_partitions_were_taken_away_commits_nothing_and_lives() -> None:
    group = Group()
    asyncio.run(member(group, "old").commit({}))
    assert group.kept == {}


class Fetching(own_log_consumer._Consumer):
    """Faust's consumer without Faust: it says for how long it would wait for the partitions that are not paused."""

    def __init__(self, active: set[TopicPartition], paused: set[TopicPartition]) -> None:
        self._buffered_partitions, self._active = paused, active
        self.app: Any = SimpleNamespace(consumer_generation_id=1)
        self.waited: list[float] = []

    def _get_active_partitions(self) -> set[TopicPartition]:
        return self._active

    async def _wait_next_records(self, timeout: float) -> tuple[None, None]:
        self.waited.append(timeout)
        return None, None


@pytest.mark.parametrize(
    ("active", "paused", "waited"),
    [({A}, set(), [1.0]), ({A}, {B}, [own_log_consumer.PAUSED]), (set(), set(), [1.0]), (set(), {A, B}, [])],
)
def test_partitions_that_were_paused_do_not_wait_for_what_comes_of_others(
    active: set[TopicPartition], paused: set[TopicPartition], waited: list[float]
) -> None:
    async def scenario() -> None:
        consumer = Fetching(active, paused)
        async with asyncio.timeout(0.9):  # Faust itself would sleep for a second where all are paused
            assert [one async for one in consumer.getmany(1.0)] == []
        assert consumer.waited == waited

    asyncio.run(scenario())

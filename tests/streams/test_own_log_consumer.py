"""What a group has committed counts for the log that it was committed in."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from aiokafka import TopicPartition
from aiokafka.structs import OffsetAndMetadata

from streams.kafka import EventLog
from streams.own_log_consumer import OwnOffsets

A, B, C, D = (TopicPartition("events", number) for number in range(4))


class Group:
    """A consumer of a group that keeps what was committed, by partition."""

    def __init__(self) -> None:
        self.kept: dict[TopicPartition, OffsetAndMetadata] = {}
        self.at: dict[TopicPartition, int] = {}
        self._coordinator = SimpleNamespace(fetch_committed_offsets=self._fetch)

    async def commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        if not offsets:
            raise ValueError(offsets)  # as the library does
        self.kept |= offsets

    async def seek_to_committed(self) -> dict[TopicPartition, int | None]:
        self.at |= {place: one.offset for place, one in self.kept.items()}
        return {place: self.kept[place].offset if place in self.kept else None for place in (A, B, C, D)}

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
    assert group.at == {A: 0, B: 5, C: 9}


def test_a_worker_whose_partitions_were_taken_away_commits_nothing_and_lives() -> None:
    group = Group()
    asyncio.run(member(group, "old").commit({}))
    assert group.kept == {}

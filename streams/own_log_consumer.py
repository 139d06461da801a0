"""Faust's consumer, which knows the log that its offsets belong to and reads only what is committed there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from aiokafka import TopicPartition
from aiokafka.structs import OffsetAndMetadata
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport

from streams.kafka import EventLog

log = structlog.get_logger()


class OwnOffsets:
    """What a group commits names the log, so that no offset is taken for one of a topic that was made anew.

    A worker that has not noticed yet may commit its place in a log that is gone, and be killed: whoever comes next
    begins with the log. What was committed without a name is taken as it is.
    """

    def __init__(self, consumer: Any, event_log: Callable[[], EventLog]) -> None:
        """`event_log` looks the log up once, and may take its time."""
        self._consumer, self._event_log = consumer, event_log
        self._commit, self._seek_to_committed = consumer.commit, consumer.seek_to_committed

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit these in the name of the log that was looked up; none are left where partitions were taken away."""
        if not offsets:
            return  # the library would raise
        own = await self._own_id()
        await self._commit({place: OffsetAndMetadata(one.offset, own) for place, one in offsets.items()})

    async def seek_to_committed(self) -> dict[TopicPartition, int | None]:
        """Go to what was committed of each of our partitions; where that is of another log, to the beginning."""
        found: dict[TopicPartition, int | None] = await self._seek_to_committed()
        own = await self._own_id()
        noted = await self._consumer._coordinator.fetch_committed_offsets(list(found))
        strange = [place for place, one in noted.items() if one.metadata not in ("", own)]
        if strange:
            log.warning("offsets_of_another_log", partitions=sorted(place.partition for place in strange))
            await self._consumer.seek_to_beginning(*strange)
        return found | dict.fromkeys(strange)

    async def _own_id(self) -> str:
        return (await asyncio.get_running_loop().run_in_executor(None, self._event_log)).id


class _ConsumerThread(AIOKafkaConsumerThread):
    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._isolation_level = "read_committed"  # Faust reads so only where it writes in transactions too
        app: Any = self.app
        own = OwnOffsets(consumer, app.event_log)
        # As if it always fetched: whoever takes in nothing for Kafka's poll interval is sent away and joins again only
        # once it fetches, which Faust does only of partitions that it has. Whether we live the worker itself watches.
        consumer._subscription._fetch_count += 1
        consumer.commit, consumer.seek_to_committed = own.commit, own.seek_to_committed
        return consumer


class _Consumer(Consumer):
    def _new_consumer_thread(self) -> AIOKafkaConsumerThread:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)


class OwnLogTransport(Transport):
    """For an app whose `event_log` says which log it reads."""

    Consumer = _Consumer

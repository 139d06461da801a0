"""Faust's consumer, which knows the log that its offsets belong to, reads only what is committed there, and hands over
what it fetched of a partition at once: for each message alone Faust makes four tasks, which took longer than an answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import structlog
from aiokafka import TopicPartition
from aiokafka.errors import IllegalStateError, KafkaTimeoutError
from aiokafka.structs import OffsetAndMetadata
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport
from faust.types import TP
from faust.types.tuples import ConsumerMessage, Message

from streams.kafka import EventLog

KNOWN_WITHIN = 45.0  # seconds to look the log up; Faust waits for twice as long until it has its place in it
AGAIN = 0.5  # seconds until a place in the log is looked for again
PAUSED = 0.1  # seconds, at most, until partitions that were paused are fetched again: Faust takes up to a second
LINGER = 0.005  # seconds between two fetches, so that what trickles in is handed over by the handful
log = structlog.get_logger()


class FetchedEvent(NamedTuple):
    """One of the messages that were fetched together."""

    message: ConsumerMessage


class OwnOffsets:
    """What a group commits names the log, so that no offset is taken for one of a topic that was made anew.

    A worker that has not noticed yet may commit its place in a log that is gone, and be killed: whoever comes next
    begins with the log. What was committed without a name is taken as it is.
    """

    def __init__(self, consumer: Any, event_log: Callable[[], EventLog]) -> None:
        """`event_log` looks the log up once, and may take its time."""
        self._consumer, self._event_log, self._commit = consumer, event_log, consumer.commit

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit these in the name of the log that was looked up; none are left where partitions were taken away."""
        if not offsets:
            return  # the library would raise
        own = await self._own_id()
        await self._commit({place: OffsetAndMetadata(one.offset, own) for place, one in offsets.items()})

    async def seek_to_committed(self) -> dict[TopicPartition, int | None]:
        """Go to what was committed of each of our partitions; where nothing was, or in another log, to the beginning.

        The library leaves a partition of which nothing is committed where it is, although what was fetched of it while
        partitions were dealt out was dropped. The log is looked up first: an offset that was read before could be of
        the one that was there before.
        """
        try:
            own = await asyncio.wait_for(self._own_id(), KNOWN_WITHIN)
        except TimeoutError as error:  # Faust would end its own wait later, and never fetch again
            raise KafkaTimeoutError(f"the log was not seen within {KNOWN_WITHIN:.0f} s") from error
        places = self._consumer.assignment()
        if not places:
            raise IllegalStateError("no partitions are assigned now")
        noted = await self._consumer._coordinator.fetch_committed_offsets(list(places))
        found = {place: one.offset for place, one in noted.items() if one.metadata in ("", own)}
        if strange := noted.keys() - found.keys():
            log.warning("offsets_of_another_log", partitions=sorted(place.partition for place in strange))
        for place, offset in found.items():
            self._consumer.seek(place, offset)
        if anew := places - found.keys():
            await self._consumer.seek_to_beginning(*anew)
        return dict.fromkeys(anew) | found

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
    """It yields one message for all that was fetched of a partition; its value are the events."""

    _fetched = 0.0  # when something was fetched last

    def _new_consumer_thread(self) -> AIOKafkaConsumerThread:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Message]]:
        """What Faust does, by partitions instead of messages."""
        await asyncio.sleep(max(0.0, self._fetched + LINGER - time.monotonic()))
        if self._buffered_partitions:  # one that may go on is fetched by the next call, not by the one that waits
            timeout = min(timeout, PAUSED)
            if not self._get_active_partitions():
                await asyncio.sleep(timeout)
                return
        fetched, active = await self._wait_next_records(timeout)
        generation = self.app.consumer_generation_id
        if fetched is None or self.should_stop:
            return
        if not self.flow_active:
            await self._seek_again()
            return
        self._fetched = time.monotonic()
        for place, records in fetched.items():
            if not self.flow_active or self.app.consumer_generation_id != generation:
                return
            if records and (active is None or place in active or place in self._buffered_partitions):
                self.app.monitor.track_tp_end_offset(place, self.highwater(place))
                yield place, self._together(place, records)

    def _together(self, place: TP, records: Sequence[Any]) -> Message:
        events: Any = [FetchedEvent(self._to_message(place, record)) for record in records]
        last, generation = events[-1].message, self.app.consumer_generation_id
        return Message(
            last.topic,
            last.partition,
            last.offset,
            last.timestamp,
            last.timestamp_type,
            None,
            None,
            events,
            None,
            tp=place,
            generation_id=generation,
        )

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """Gaps are Faust's for its own commits, of which there are none: the worker commits what is durable."""

    async def _seek_again(self) -> None:
        """What was fetched is dropped, so it has to be fetched again; after the next assignment others see to it."""
        generation = self.app.consumer_generation_id
        while self.app.consumer_generation_id == generation and not self.should_stop:
            try:
                await self.perform_seek()
                return
            except Exception as error:
                log.warning("seek_failed", problem=repr(error), again_in=AGAIN)
                await asyncio.sleep(AGAIN)


class OwnLogTransport(Transport):
    """For an app whose `event_log` says which log it reads."""

    Consumer = _Consumer

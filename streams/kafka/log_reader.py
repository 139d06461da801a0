"""Reading ranges of the log beside the consumer group: for catching up, resuming, training and dead letters."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from adatkg_core.errors import AdatkgError
from streams.kafka.connection import Connection
from streams.kafka.topics import BOOTSTRAP_MS, unreachable

PATIENCE = 60.0  # seconds without a single record before a range that should have more is given up
SILENT = 10.0  # seconds of that after which another consumer is tried: after a broker's outage one may stay silent
_POLL_MS = 500
_POLL_RECORDS = 2_000
_FETCH_BYTES = 16 << 20  # of one partition at once; a range is read to its end, so few large answers are best


@dataclass(frozen=True, slots=True)
class Record:
    """A message and where it stands."""

    partition: int
    offset: int
    timestamp: int  # milliseconds
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]

    def header(self, name: str) -> str | None:
        """The first header of this name, as text."""
        return next((value.decode(errors="replace") for key, value in self.headers if key == name), None)


class LogReader:
    """Reads any range of what is committed in one topic; belongs to no group. For one thread at a time.

    A range that begins where the one before ended goes on there: to seek would throw away what was fetched ahead.
    """

    def __init__(self, connection: Connection, topic: str) -> None:
        self._connection, self._topic = connection, topic
        self._consumer = _open_consumer(connection)
        self._stands: tuple[TopicPartition, int] | None = None  # the next offset it would give
        self._polled: deque[Any] = deque()  # messages from there on

    def close(self) -> None:
        """Take leave of the broker."""
        self._consumer.close()

    def partitions(self) -> list[int]:
        """The topic's partitions; none when there is no such topic."""
        return sorted(self._consumer.partitions_for_topic(self._topic) or ())

    def bounds(self, partition: int) -> tuple[int, int]:
        """The first offset that is still kept, and the one behind the last message that is committed."""
        place = TopicPartition(self._topic, partition)
        try:
            first = self._consumer.beginning_offsets([place])[place]
            return int(first), int(self._consumer.end_offsets([place])[place])
        except KafkaError as error:
            raise self._failed(error) from error

    def read(self, partition: int, start: int, end: int) -> Iterator[Record]:
        """The records from `start` up to but not including `end`, as far as they are still kept."""
        if start >= end:
            return
        place = TopicPartition(self._topic, partition)
        if self._stands != (place, start):
            self._go_to(place, start)
        waited = 0.0
        while True:
            while self._polled and self._polled[0].offset < end:
                message = self._polled.popleft()
                self._stands = place, message.offset + 1
                yield Record(
                    partition, message.offset, message.timestamp, message.key, message.value, tuple(message.headers)
                )
            if self._polled or (position := self._position(place) or start) >= end:
                self._stands = place, end
                return
            self._polled.extend(self._poll(place))
            waited = 0.0 if self._polled else waited + _POLL_MS / 1000
            if waited and waited % SILENT == 0:
                self._consumer.close()
                self._consumer = _open_consumer(self._connection)
                self._go_to(place, position)
            if waited > PATIENCE:
                raise AdatkgError(
                    f"{self._topic}, partition {partition}: nothing came for {PATIENCE:.0f} s before offset {end}; "
                    f"check the broker at {self._connection.bootstrap}"
                )

    def _go_to(self, place: TopicPartition, offset: int) -> None:
        self._polled.clear()
        self._consumer.assign([place])
        self._consumer.seek(place, offset)
        self._stands = place, offset

    def _position(self, place: TopicPartition) -> int | None:
        try:
            position: int | None = self._consumer.position(place)  # None while it is not known yet
        except KafkaError as error:
            raise self._failed(error) from error
        return position

    def _poll(self, place: TopicPartition) -> Sequence[Any]:
        try:
            batch: Sequence[Any] = self._consumer.poll(_POLL_MS, _POLL_RECORDS).get(place, ())
        except KafkaError as error:
            raise self._failed(error) from error
        return batch

    def _failed(self, error: KafkaError) -> AdatkgError:
        return AdatkgError(f"{self._topic} at {self._connection.bootstrap}: reading failed ({error}); check the broker")


@contextmanager
def open_log(connection: Connection, topic: str) -> Iterator[LogReader]:
    """A reader of one topic; a broker that fails becomes an error that names it."""
    reader = LogReader(connection, topic)
    try:
        yield reader
    except KafkaError as error:
        raise reader._failed(error) from error
    finally:
        reader.close()


def _open_consumer(connection: Connection) -> KafkaConsumer:
    try:
        return KafkaConsumer(
            **connection.client(),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=_FETCH_BYTES,
            bootstrap_timeout_ms=BOOTSTRAP_MS,
            isolation_level="read_committed",
            client_id="adatkg-reader",
        )
    except KafkaError as error:
        raise unreachable(connection, error) from error

"""What stands in the topics, read by a plain client: the checker believes nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer, TopicPartition

_POLL_MS = 500
_SILENT = 120  # polls without a record after which a topic that should have more is given up


@dataclass(frozen=True)
class Record:
    """A record of Kafka."""

    partition: int
    offset: int
    timestamp: float  # seconds, by the broker's clock
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes]

    @property
    def place(self) -> tuple[int, int]:
        """Partition and offset."""
        return self.partition, self.offset


class Follower:
    """Reads topics from their beginning, as far as they reach at each look."""

    def __init__(self, bootstrap: str, *topics: str) -> None:
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            client_id="adatkg-checker",
        )
        self._places = [
            TopicPartition(topic, number)
            for topic in topics
            for number in sorted(self._consumer.partitions_for_topic(topic) or ())
        ]
        self._consumer.assign(self._places)
        self._consumer.seek_to_beginning(*self._places)

    def new(self) -> Iterator[tuple[str, Record]]:
        """The records since the last look, each with its topic; in order within a partition."""
        ends = self._consumer.end_offsets(self._places)
        silent = 0
        while any((self._consumer.position(place) or 0) < ends[place] for place in self._places):
            polled: dict[TopicPartition, Any] = self._consumer.poll(_POLL_MS)
            silent = 0 if polled else silent + 1
            if silent > _SILENT:
                raise TimeoutError(f"the topics {sorted({place.topic for place in self._places})} fell silent")
            for place, records in polled.items():
                for one in records:
                    headers = dict(one.headers)
                    yield (
                        place.topic,
                        Record(one.partition, one.offset, one.timestamp / 1000, one.key, one.value, headers),
                    )

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()


def read_topic(bootstrap: str, topic: str) -> list[Record]:
    """Everything in a topic."""
    with closing(Follower(bootstrap, topic)) as follower:
        return [record for _, record in follower.new()]

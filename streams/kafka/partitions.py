"""In which partition a graph's messages are."""

from __future__ import annotations

from aiokafka.partitioner import murmur2


def partition_of(key: str | bytes, partitions: int) -> int:
    """Where every Kafka client puts messages with this key."""
    data = key.encode() if isinstance(key, str) else key
    return int((murmur2(data) & 0x7FFFFFFF) % partitions)

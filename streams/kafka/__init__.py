"""How Kafka is reached, which topics there are, and how logs are read and written; knows no Faust.

The public names are imported when first used: the client needs one of the two Kafka libraries, not both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adatkg_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from streams.kafka.announcer import announce, append_event
    from streams.kafka.connection import Connection, connection_from
    from streams.kafka.entry_check import check_entry, try_entry
    from streams.kafka.headers import ORIGIN, header, origin_of, with_origin
    from streams.kafka.log_reader import LogReader, Record, open_log
    from streams.kafka.origins import Origins
    from streams.kafka.partitions import partition_of
    from streams.kafka.producer import Message, Producer
    from streams.kafka.topics import (
        BOOTSTRAP_MS,
        LARGEST_MESSAGE,
        EventLog,
        Topics,
        ensure_topics,
        event_log,
        find_topics,
        topics_from,
        unreachable,
    )

_HOME = {
    "streams.kafka.announcer": ("announce", "append_event"),
    "streams.kafka.connection": (
        "Connection",
        "connection_from",
    ),
    "streams.kafka.entry_check": (
        "check_entry",
        "try_entry",
    ),
    "streams.kafka.headers": (
        "ORIGIN",
        "header",
        "origin_of",
        "with_origin",
    ),
    "streams.kafka.log_reader": (
        "LogReader",
        "Record",
        "open_log",
    ),
    "streams.kafka.origins": ("Origins",),
    "streams.kafka.partitions": ("partition_of",),
    "streams.kafka.producer": (
        "Message",
        "Producer",
    ),
    "streams.kafka.topics": (
        "BOOTSTRAP_MS",
        "LARGEST_MESSAGE",
        "EventLog",
        "Topics",
        "ensure_topics",
        "event_log",
        "find_topics",
        "topics_from",
        "unreachable",
    ),
}

__all__ = [
    "BOOTSTRAP_MS",
    "LARGEST_MESSAGE",
    "ORIGIN",
    "Connection",
    "EventLog",
    "LogReader",
    "Message",
    "Origins",
    "Producer",
    "Record",
    "Topics",
    "announce",
    "append_event",
    "check_entry",
    "connection_from",
    "ensure_topics",
    "event_log",
    "find_topics",
    "header",
    "open_log",
    "origin_of",
    "partition_of",
    "topics_from",
    "try_entry",
    "unreachable",
    "with_origin",
]

__getattr__ = lazy_names(__name__, _HOME)

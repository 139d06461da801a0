"""Tells the workers which bundle answers for a graph, and which was only tried."""

from __future__ import annotations

from kafka import KafkaProducer
from kafka.errors import KafkaError

from adatkg_core.errors import AdatkgError
from adatkg_core.messages import Announcement, encode_announcement
from streams.kafka.connection import Connection
from streams.kafka.topics import Topics, unreachable

_PATIENCE = 30.0  # seconds until every replica has the announcement, as long as a broker needs to come back


def announce(connection: Connection, topics: Topics, announcement: Announcement) -> None:
    """Publish an announcement; returns when the brokers keep it. The store must hold true what it says already."""
    try:
        producer = KafkaProducer(**connection.producer(), client_id="adatkg-announce", acks="all")
    except KafkaError as error:
        raise unreachable(connection, error) from error
    try:
        body = encode_announcement(announcement)
        producer.send(topics.models, key=announcement.key, value=body).get(_PATIENCE)
    except KafkaError as error:
        raise AdatkgError(
            f"{topics.models} at {connection.bootstrap}: bundle {announcement.version} of graph {announcement.graph} "
            f"was not announced ({error}); check the broker and try again"
        ) from error
    finally:
        producer.close(timeout=_PATIENCE)


def append_event(connection: Connection, topics: Topics, graph: str, value: bytes) -> int:
    """Append an event to a graph's log; returns its offset when the brokers keep it."""
    try:
        producer = KafkaProducer(**connection.producer(), client_id="adatkg-append", acks="all")
    except KafkaError as error:
        raise unreachable(connection, error) from error
    try:
        # Its partitioner is murmur2, which places a graph where all its events are.
        kept = producer.send(topics.events, key=graph.encode(), value=value).get(_PATIENCE)
        return int(kept.offset)
    except KafkaError as error:
        raise AdatkgError(
            f"{topics.events} at {connection.bootstrap}: the model event of graph {graph} was not written ({error}); "
            "a worker needs the right to write there"
        ) from error
    finally:
        producer.close(timeout=_PATIENCE)

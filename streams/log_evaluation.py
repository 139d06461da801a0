"""A graph's log answered anew, offline, and compared with what was published to its queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from adatkg_core.constants import LatePolicy
from adatkg_core.errors import InputError
from adatkg_core.evaluation import LoggedEvent, answer_log, compare_published
from adatkg_core.events import Source
from adatkg_core.messages import Prediction, Unusable, decode_prediction
from adatkg_core.storage import ModelStore
from streams.dead_letters import UNCHANGED
from streams.kafka import Connection, Record, Topics, header, open_log, origin_of, partition_of


def evaluate_log(
    store: ModelStore, graph: str, connection: Connection, topics: Topics, *, late: LatePolicy, max_jump: int
) -> dict[str, Any]:
    """Answer every query in the log with the version that the log names there, and compare.

    `late` and `max_jump` are those of the workers. What was cut from the log is missing from the answers.
    """
    events = [
        LoggedEvent(
            Source(record.partition, record.offset),
            record.value,
            header(record.headers, UNCHANGED) or None,
            origin_of(record.headers),
        )
        for record in _records(connection, topics.events, graph)
    ]
    if not events:
        raise InputError(f"topic {topics.events} has no event of graph {graph}; give the name of one that has")
    published: dict[Source, list[Prediction]] = {}
    for record in _records(connection, topics.predictions, graph, everywhere=True):
        with suppress(Unusable):
            prediction = decode_prediction(record.value)
            published.setdefault(prediction.source, []).append(prediction)
    wanted = answer_log(store, graph, events, late=late, max_jump=max_jump)
    return {"graph": graph, "events": len(events), **compare_published(wanted, published)}


def _records(connection: Connection, topic: str, graph: str, *, everywhere: bool = False) -> Iterator[Record]:
    """What a topic has of a graph: events in their own partition, in order, or in all of them."""
    with open_log(connection, topic) as reader:
        numbers: Iterable[int] = reader.partitions()
        if not everywhere and numbers:
            numbers = [partition_of(graph, len(reader.partitions()))]
        for number in numbers:
            for record in reader.read(number, *reader.bounds(number)):
                if record.key == graph.encode():
                    yield record

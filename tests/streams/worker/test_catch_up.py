"""Graphs of one partition are brought to the same offset, each by its own events and from where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from kafka import KafkaAdminClient, TopicPartition

from adatkg_core.errors import AdatkgError
from adatkg_core.runtime import Retry
from streams.kafka import Connection, Record, Topics, partition_of
from streams.worker import Arrival, BatchResult, CatchUp, catch_up
from streams.worker.hosted_graph import HostedGraph
from tests.support.fake_graph import fresh_topics, send


class Listener:
    """Stands in for a graph: remembers what it was given."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.batches: list[list[int]] = []

    def apply(self, arrivals: Sequence[Arrival], *, silent: bool) -> BatchResult:
        assert silent, "others have answered"
        self.batches.append([arrival.source.offset for arrival in arrivals])
        return BatchResult(self.name)

    @property
    def offsets(self) -> list[int]:
        return [offset for batch in self.batches for offset in batch]


def hosted(name: str, offset: int, partition: int = 0) -> tuple[HostedGraph, Listener]:
    graph: Any = Listener(name)
    return HostedGraph(graph, partition, offset, offset), graph


@contextmanager
def fake_log(connection: Connection, topic: str) -> Iterator[Any]:
    class Reader:
        def bounds(self, partition: int) -> tuple[int, int]:
            return 0, 1_000

        def read(self, partition: int, start: int, end: int) -> Iterator[Record]:
            keys = [b"a", b"b", b"another"]
            yield from (Record(partition, i, 0, keys[i % 3], b"", ()) for i in range(start, end))

    yield Reader()


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> CatchUp:
    monkeypatch.setattr(catch_up, "open_log", fake_log)
    return CatchUp(Connection("127.0.0.1:1"), Topics(), Retry("loading_failed"))


def test_each_graph_takes_its_own_events_from_where_it_stands(reader: CatchUp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catch_up, "AT_ONCE", 2)
    (first, a), (second, b) = hosted("a", 0), hosted("b", 10)
    reader.bring([first, second], 20)
    assert a.batches == [[0, 3], [6, 9], [12, 15], [18]]
    assert b.batches == [[10, 13], [16, 19]]
    assert first.offset == second.offset == 20


def test_nothing_is_read_where_nothing_is_missing(reader: CatchUp) -> None:
    one, graph = hosted("a", 20)
    reader.bring([one], 20)
    assert graph.batches == [] and one.offset == 20


def test_a_worker_that_ends_does_not_catch_up_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catch_up, "open_log", fake_log)
    monkeypatch.setattr(catch_up, "AT_ONCE", 2)
    retry = Retry("loading_failed")
    retry.end()
    one, graph = hosted("a", 0)
    with pytest.raises(AdatkgError, match="partition 0: the worker ends while it catches up at 4"):
        CatchUp(Connection("127.0.0.1:1"), Topics(), retry).bring([one], 20)
    assert graph.batches == [[0, 3]]


def test_of_a_log_whose_beginning_is_deleted_the_rest_is_taken_in(bootstrap: str) -> None:
    topics = fresh_topics(bootstrap)
    send(bootstrap, topics.events, [(b"g", b"%d" % i, ()) for i in range(10)])
    reader = CatchUp(Connection(bootstrap), topics, Retry("loading_failed"))
    partition = partition_of("g", reader.log.partitions)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.delete_records({TopicPartition(topics.events, partition): 6})
    finally:
        admin.close()
    assert reader.bounds(partition) == (6, 10)
    one, graph = hosted("g", 2, partition)
    reader.bring([one], 10)
    assert graph.offsets == [6, 7, 8, 9] and one.offset == 10
    (incident,) = reader.incidents.open()
    assert incident.graph == "g" and "offsets 2 to 5 are no longer in the log" in incident.detail

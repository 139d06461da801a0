"""Reading ranges of the log, with consumers that fall silent."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import KafkaProducer, TopicPartition

from adatkg_core.errors import AdatkgError
from streams.kafka import Connection, LogReader, log_reader, open_log
from tests.support.fake_graph import fresh_topics


class FakeConsumer:
    """Gives three messages and says nothing more; or, when it is told so, nothing at all."""

    def __init__(self, silent_after: int) -> None:
        self.silent_after, self.at, self.closed = silent_after, 0, False

    def assign(self, places: list[TopicPartition]) -> None:
        self.place = places[0]

    def seek(self, place: TopicPartition, offset: int) -> None:
        self.at = offset

    def position(self, place: TopicPartition) -> int:
        return self.at

    def poll(self, milliseconds: int, most: int) -> dict[TopicPartition, list[Any]]:
        if self.at >= self.silent_after:
            return {}
        message = SimpleNamespace(offset=self.at, timestamp=0, key=b"g", value=b"%d" % self.at, headers=())
        self.at += 1
        return {self.place: [message]}

    def close(self) -> None:
        self.closed = True


def made_one_after_the_other(monkeypatch: pytest.MonkeyPatch, *consumers: FakeConsumer) -> None:
    left = list(consumers)
    monkeypatch.setattr(log_reader, "KafkaConsumer", lambda **_: left.pop(0))


def test_a_consumer_that_falls_silent_is_replaced_and_nothing_is_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = FakeConsumer(silent_after=2), FakeConsumer(silent_after=5)
    made_one_after_the_other(monkeypatch, first, second)
    with open_log(Connection("127.0.0.1:1"), "t") as reader:
        assert [record.offset for record in reader.read(0, 0, 5)] == [0, 1, 2, 3, 4]
    assert first.closed and second.closed


def test_a_log_that_stays_silent_is_given_up_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    consumers = [FakeConsumer(silent_after=1) for _ in range(8)]
    made_one_after_the_other(monkeypatch, *consumers)
    with (
        pytest.raises(AdatkgError, match="t, partition 0: nothing came for 60 s before offset 3"),
        open_log(Connection("127.0.0.1:1"), "t") as reader,
    ):
        list(reader.read(0, 0, 3))


COUNT, RANGE = 3_000, 50


@pytest.fixture(scope="module")
def written(bootstrap: str) -> Iterator[LogReader]:
    """A reader of a topic whose partition 0 has so many messages."""
    topics = fresh_topics(bootstrap)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for i in range(COUNT):
        producer.send(topics.events, value=b"%d" % i, partition=0)
    producer.flush()
    producer.close()
    with open_log(Connection(bootstrap), topics.events) as reader:
        yield reader


def offsets(reader: LogReader, start: int, end: int) -> list[int]:
    found = list(reader.read(0, start, end))
    assert [record.value for record in found] == [b"%d" % record.offset for record in found]
    return [record.offset for record in found]


def test_ranges_that_follow_each_other_go_on_in_what_was_fetched(written: LogReader) -> None:
    place, positions = TopicPartition(written._topic, 0), []
    for start in range(0, COUNT, RANGE):
        assert offsets(written, start, start + RANGE) == list(range(start, start + RANGE))
        positions.append(written._consumer.position(place))
    assert positions == sorted(positions)
    assert len(set(positions)) < len(positions) / 4  # a seek for each range would be a position of its own for each


def test_a_range_may_begin_anywhere_whatever_was_read_before(written: LogReader) -> None:
    for start, end in ((0, 10), (10, 20), (15, 25), (100, 110), (COUNT - 5, COUNT), (3, 2_500), (2_500, COUNT)):
        assert offsets(written, start, end) == list(range(start, end))


def test_a_range_that_was_left_early_is_gone_on_with_or_read_again(written: LogReader) -> None:
    begun = written.read(0, 0, 100)
    assert [next(begun).offset for _ in range(3)] == [0, 1, 2]
    begun.close()  # type: ignore[attr-defined]
    assert offsets(written, 3, 10) == list(range(3, 10))
    assert offsets(written, 0, 10) == list(range(10))

"""Reading ranges of the log, with consumers that fall silent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition

from adatkg_core.errors import AdatkgError
from streams.kafka import Connection, log_reader, open_log


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

"""What goes out of a batch: in log order, counted, and a dead letter where a topic does not take it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from aiokafka.errors import MessageSizeTooLargeError, NotLeaderForPartitionError, TopicAuthorizationFailedError
from structlog.testing import capture_logs

from adatkg_core.events import Query, Ranking, Source
from adatkg_core.messages import Question
from streams.kafka import Connection, Producer, Topics, partition_of
from streams.worker import Answered, Arrival, BatchResult, Metrics, Publisher, Rejected, undeliverable
from tests.support.fake_worker import Outbox

TOPICS = Topics()


def arrival(offset: int, graph: str = "g") -> Arrival:
    return Arrival(Source(2, offset), 0.0, graph.encode(), b"value-%d" % offset)


def answered(offset: int, body: bytes = b"{}", graph: str = "g") -> Answered:
    question, ranking = Question("q", Query("r", 1, s="a"), {}, False), Ranking((), 1, False, True, 0.0, 0)
    return Answered(arrival(offset, graph), body, question, ranking, 1, 0.5)


class SmallTopics:
    """A producer whose brokers refuse what is larger than a topic takes; keeps what they accept."""

    def __init__(self, refuses: Collection[str] = ()) -> None:
        self.limits, self.refuses = {TOPICS.predictions: 1_000}, refuses
        self.failing = 0  # so many requests fail in passing
        self.accepted: list[tuple[str, int, Any]] = []

    async def start(self) -> None:
        return None

    async def stop(self) -> None:
        return None

    async def partitions_for(self, topic: str) -> set[int]:
        return {0} if topic == TOPICS.deadletter else {0, 1, 2, 3}

    def create_batch(self) -> Any:
        return _Batch()

    async def send_batch(self, batch: _Batch, topic: str, partition: int) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if sum(len(one["value"]) for one in batch.messages) > self.limits.get(topic, 1 << 20):
            done.set_exception(MessageSizeTooLargeError())
        elif topic in self.refuses:
            done.set_exception(TopicAuthorizationFailedError())
        elif self.failing:
            self.failing -= 1
            done.set_exception(NotLeaderForPartitionError())
        else:
            self.accepted += [(topic, partition, one) for one in batch.messages]
            done.set_result(None)
        return done


class _Batch:
    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def append(self, **message: Any) -> object:
        self.messages.append(message)
        return message


def test_a_prediction_too_large_for_its_topic_becomes_an_undeliverable_dead_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    producer = SmallTopics()
    monkeypatch.setattr("streams.kafka.producer.AIOKafkaProducer", lambda **_: producer)

    async def scenario() -> None:
        publisher = Publisher(TOPICS, Producer(Connection("127.0.0.1:1"), partial(undeliverable, TOPICS)), Metrics())
        await publisher.start()
        small, large = answered(1, b"small"), answered(2, b"x" * 5_000)
        publisher.publish([BatchResult("g", "v1", None, [small, large, answered(3, b"another")])], 0.1)
        await publisher.flush()  # it raises where something could not be sent: then nothing could be acknowledged
        await publisher.stop()

    asyncio.run(scenario())
    by_topic = {topic: [one for at, _, one in producer.accepted if at == topic] for topic, _, _ in producer.accepted}
    assert [one["value"] for one in by_topic[TOPICS.predictions]] == [b"small", b"another"], "the rest must go on"
    (letter,) = by_topic[TOPICS.deadletter]
    headers = {name: value.decode() for name, value in letter["headers"]}
    assert letter["key"] == b"g" and letter["value"] == b""
    assert (headers["reason"], headers["topic"], headers["graph"]) == ("undeliverable", TOPICS.events, "g")
    assert (headers["partition"], headers["offset"]) == ("2", "2"), "where the query stands that it was to answer"
    assert "max.message.bytes" in headers["detail"] and "bytes" in headers["detail"]


def test_answers_and_dead_letters_go_to_their_topics_in_order_and_are_counted() -> None:
    outbox: Any = Outbox()
    metrics, heard = Metrics(), list[Any]()
    publisher = Publisher(TOPICS, outbox, metrics, [heard.append])
    results = [
        BatchResult("g", "v1", None, [answered(1, b"1"), answered(4, b"4")], counts=Counter(query=2), ended={0: False}),
        BatchResult(
            "h", None, None, rejected=[Rejected(arrival(2, "h"), "no-model", "none")], counts=Counter(waiting=3)
        ),
        BatchResult("", rejected=[Rejected(arrival(3, ""), "no-graph", "no key")]),
    ]
    with capture_logs() as said:
        publisher.publish(results, 0.01)
    sent = [(topic, message.value) for topic, message in outbox.sent]
    predictions, letters = (TOPICS.predictions, b"1"), (TOPICS.deadletter, b"value-2")
    assert sent == [predictions, (TOPICS.predictions, b"4"), letters, (TOPICS.deadletter, b"value-3")]
    assert [(line["graph"], line["reason"], line["offset"]) for line in said] == [
        ("h", "no-model", 2),
        ("", "no-graph", 3),
    ]
    page = metrics.page().decode()
    for line in (
        'adatkg_events_total{graph="g",kind="query"} 2.0',
        'adatkg_events_total{graph="",kind="waiting"} 3.0',
        'adatkg_predictions_total{graph="g"} 2.0',
        'adatkg_unsettled_queries_total{graph="g"} 1.0',
        'adatkg_dead_letters_total{graph="",reason="no-model"} 1.0',
        "adatkg_batch_size_sum 7.0",
    ):
        assert line in page
    assert heard == [results]


@pytest.mark.parametrize(("refuses", "letters"), [(set(), 0), ({TOPICS.events}, 3)])
def test_what_is_moved_goes_in_order_with_its_origin_or_becomes_a_dead_letter_where_we_may_not_write(
    monkeypatch: pytest.MonkeyPatch, refuses: set[str], letters: int
) -> None:
    producer = SmallTopics(refuses)
    monkeypatch.setattr("streams.kafka.producer.AIOKafkaProducer", lambda **_: producer)
    monkeypatch.setattr("streams.kafka.producer.BATCH_BYTES", 1)  # each on its way alone
    monkeypatch.setattr("streams.kafka.producer.PAUSE", 0.01)
    producer.failing = 2

    async def scenario() -> None:
        publisher = Publisher(TOPICS, Producer(Connection("127.0.0.1:1"), partial(undeliverable, TOPICS)), Metrics())
        await publisher.start()
        moved = [replace(arrival(n), headers=(("seq", b"7"), ("origin", b"0-1"))) for n in (5, 6, 7)]
        publisher.publish([BatchResult("g", moved=moved)], 0.1)
        await publisher.flush()
        await publisher.stop()

    asyncio.run(scenario())
    assert len(producer.accepted) == 3
    for (topic, partition, one), offset in zip(producer.accepted, (5, 6, 7), strict=True):
        headers = dict(one["headers"])
        assert (one["key"], one["value"]) == (b"g", b"value-%d" % offset)
        if letters:
            assert (topic, headers["reason"], headers["offset"]) == (
                TOPICS.deadletter,
                b"wrong-partition",
                b"%d" % offset,
            )
        else:
            assert (topic, partition) == (TOPICS.events, partition_of("g", 4))
            assert one["headers"] == [("origin", b"2-%d" % offset), ("seq", b"7")]

"""Stands in for the worker where only the messages matter: a plain consumer and producer that answer every query."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaProducer

from adatkg_core.clock import Clock
from adatkg_core.engine.admission import object_to_relation
from adatkg_core.events import Answer, Ranking, Source
from adatkg_core.messages import Question, Unusable, decode_event, encode_prediction, encode_query
from adatkg_core.state import Relations
from streams.dead_letters import dead_letter_headers
from streams.kafka import Connection, Record, Topics, ensure_topics, open_log

KNOWN = Relations(("Consult", "Praise"))
CLOCK = Clock("2014-01-01")
Message = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes]]]  # key, value, headers


def fresh_topics(bootstrap: str) -> Topics:
    """Topics that no other test has."""
    topics = Topics(f"test-{uuid4().hex[:12]}")
    ensure_topics(Connection(bootstrap), topics)
    return topics


def question(r: str = "Consult", id: str = "q") -> Question:
    asked = decode_event(encode_query(id, r, "next", s="Barack Obama", rank_of=["Angela Merkel"]), None)
    assert isinstance(asked, Question)
    return asked


def prediction(
    asked: Question, graph: str, partition: int, offset: int, late: bool = False, clock: Clock | None = CLOCK
) -> bytes:
    """An answer such as the worker gives, the same for the same place."""
    top = tuple(Answer(name, 2.0 - i, 0.5 / (1 + i)) for i, name in enumerate(("Angela Merkel", "China", "[red]Iran")))
    made = Ranking(top, 7 + offset, late, True, 0.25, 3, {"Angela Merkel": 1.0})
    if asked.next:
        asked = replace(asked, query=replace(asked.query, t=made.as_of))
    return encode_prediction(made, asked, graph, "model-1", Source(partition, offset), clock)


def send(bootstrap: str, topic: str, messages: Sequence[Message]) -> None:
    """Append messages in their order."""
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    try:
        for key, value, headers in messages:
            producer.send(topic, key=key, value=value, headers=list(headers)).get(30)
    finally:
        producer.close()


def dead_letter(topics: Topics, offset: int, reason: str, value: bytes | None, graph: str = "g") -> Message:
    headers = dead_letter_headers(reason, f"{reason}, says the worker", topics.events, 3, offset, graph)
    return graph.encode(), value, headers


def records(bootstrap: str, topic: str) -> list[Record]:
    """All that is in a topic, partition by partition."""
    with open_log(Connection(bootstrap), topic) as log:
        return [record for n in log.partitions() for record in log.read(n, *log.bounds(n))]


@contextmanager
def answering(bootstrap: str, topics: Topics) -> Iterator[None]:
    """While this lasts, queries are answered, and dead-lettered when their relation is unknown."""
    loop, ready, over = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve() -> None:
        consumer = AIOKafkaConsumer(topics.events, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        async with consumer, AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            ready.set()
            work = asyncio.create_task(_answer_all(consumer, producer, topics))
            await over.wait()
            work.cancel()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(30)
        yield
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(30)
        loop.close()


async def _answer_all(consumer: AIOKafkaConsumer, producer: AIOKafkaProducer, topics: Topics) -> None:
    async for record in consumer:
        graph = record.key.decode()
        try:
            event = decode_event(record.value, CLOCK)
            if not isinstance(event, Question):
                continue
            if event.query.r not in KNOWN:
                raise Unusable(*object_to_relation(event.query.r, KNOWN))
        except Unusable as problem:
            headers = dead_letter_headers(
                problem.code, problem.detail, record.topic, record.partition, record.offset, graph
            )
            await producer.send_and_wait(topics.deadletter, record.value, key=record.key, headers=headers)
        else:
            answer = prediction(event, graph, record.partition, record.offset)
            await producer.send_and_wait(topics.predictions, answer, key=record.key)

"""Whatever client writes events simply works: it may place keys in its own way, and it may write in transactions."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from adatkg_core.errors import AdatkgError
from adatkg_core.messages import encode_fact, encode_query
from streams.embedded_broker.jars import Jar, _fetch, ensure_jars
from streams.embedded_broker.java import find_java
from streams.kafka import ORIGIN, header, partition_of
from tests.support.running_system import GRAPH, Event, World, offline, small_bundle

TOOLS = Jar("org.apache.kafka:kafka-tools:4.1.0", "1c2836cee57a947d2db461410ac5008ca80facbd19b7ed9d284ca883782ea741")
RELATION, SUBJECT = GRAPH.relations[0], GRAPH.entities[0]
GRAPHS = [f"graph-{number}" for number in range(6)]


@pytest.fixture
def world(bootstrap: str, tmp_path: Path) -> Iterator[World]:
    made = World(bootstrap, tmp_path)
    made.add_model(*GRAPHS)
    yield made
    made.close()


def facts(first: int, count: int) -> list[bytes]:
    return [encode_fact(SUBJECT, RELATION, GRAPH.entities[1 + i % 5], i) for i in range(first, first + count)]


def query(id: str) -> bytes:
    return encode_query(id, RELATION, "next", s=SUBJECT, k=5)


def librdkafka(world: World, **options: Any) -> Producer:
    return Producer({"bootstrap.servers": world.bootstrap, "linger.ms": 5, **options})


def publish(producer: Producer, world: World, events: Sequence[Event]) -> None:
    for graph, value in events:
        producer.produce(world.topics.events, value, key=graph)
    assert producer.flush(60) == 0


def console(world: World, events: Sequence[Event], folder: Path) -> None:
    """Publish with the program that comes with Kafka."""
    try:
        tools = _fetch(TOOLS, folder)
    except AdatkgError as error:
        pytest.skip(str(error))
    jars = ":".join(map(str, [*ensure_jars(), tools]))
    command = [find_java().path, "-cp", jars, "org.apache.kafka.tools.ConsoleProducer"]
    command += ["--bootstrap-server", world.bootstrap, "--topic", world.topics.events]
    command += ["--property", "parse.key=true"]
    lines = b"".join(b"%s\t%s\n" % (graph.encode(), value) for graph, value in events)
    done = subprocess.run(command, input=lines, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()


def test_what_a_client_puts_into_foreign_partitions_is_one_log_and_a_kill_between_move_and_commit_repeats_nothing(
    world: World,
) -> None:
    first = [(graph, value) for graph in GRAPHS for value in (*facts(0, 20), query(f"{graph}-1"))]
    second = [(graph, value) for graph in GRAPHS for value in (*facts(20, 5), query(f"{graph}-2"))]
    worker = world.start_worker(snapshot_seconds=1_000)  # it moves events, and commits nothing
    publish(librdkafka(world), world, first)
    world.await_answers([f"{graph}-1" for graph in GRAPHS])
    worker.kill()
    foreign = [one for one in world.records(world.topics.events) if is_foreign(world, one.key or b"", one.partition)]
    assert len(foreign) >= 21, "the way in which this client places keys is another one"
    world.start_worker()
    publish(librdkafka(world), world, second)
    found = world.await_answers([f"{graph}-2" for graph in GRAPHS])
    moved = [header(one.headers, ORIGIN) for one in world.records(world.topics.events) if header(one.headers, ORIGIN)]
    assert len(moved) > len(set(moved)), "the kill came after a move and before its commit"
    assert_one_log_each(world, found, [*first, *second])


def test_kafkas_own_console_producer_and_librdkafka_write_one_log(world: World, tmp_path: Path) -> None:
    first = [(graph, value) for graph in GRAPHS for value in (*facts(0, 5), query(f"{graph}-1"))]
    second = [(graph, value) for graph in GRAPHS for value in (*facts(5, 5), query(f"{graph}-2"))]
    world.start_worker()
    console(world, first, tmp_path)
    world.await_answers([f"{graph}-1" for graph in GRAPHS])
    publish(librdkafka(world), world, second)
    assert_one_log_each(world, world.await_answers([f"{graph}-2" for graph in GRAPHS]), [*first, *second])


def assert_one_log_each(world: World, found: dict[str, list[dict[str, Any]]], events: Sequence[Event]) -> None:
    """Each graph's answers are those to its events in their order, from its own partition; nothing was refused."""
    for graph in GRAPHS:
        wanted = offline(small_bundle(), [event for event in events if event[0] == graph])
        assert {id: len({one["id"] for one in found[id]}) for id in wanted} == dict.fromkeys(wanted, 1)
        for id, answer in wanted.items():
            (one, *_) = found[id]
            assert (one["interactions"], one["as_of"]) == (answer["interactions"], answer["as_of"])
            assert one["source"]["partition"] == partition_of(graph, world.partitions)
    assert world.count(world.topics.deadletter) == 0


def is_foreign(world: World, key: bytes, partition: int) -> bool:
    return partition != partition_of(key, world.partitions)


def test_only_what_is_committed_counts_and_marks_of_transactions_are_no_gaps(world: World) -> None:
    graph = GRAPHS[0]
    place = partition_of(graph, world.partitions)

    def write(producer: Producer, values: Sequence[bytes]) -> None:
        for value in values:
            producer.produce(world.topics.events, value, key=graph, partition=place)
        producer.flush(60)

    producer, other = (librdkafka(world, **{"transactional.id": f"{world.prefix}-{n}"}) for n in range(2))
    producer.init_transactions()
    other.init_transactions()
    worker = world.start_worker()
    for number in range(30):
        producer.begin_transaction()
        write(producer, [*facts(number, 1), query(f"q{number}")])
        if number % 10 == 5:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    other.begin_transaction()
    write(other, [query("open")])
    producer.begin_transaction()
    write(producer, [query("behind")])
    producer.commit_transaction()
    committed = [number for number in range(30) if number % 10 != 5]
    found = world.await_answers([f"q{number}" for number in committed])
    assert [found[f"q{number}"][0]["interactions"] for number in committed] == list(range(1, 28))
    other.abort_transaction()
    found = world.await_answers(["behind"])
    assert found.keys() == {"behind", *(f"q{number}" for number in committed)}
    assert len(worker.said("caught_up")) <= 1, "a mark of a transaction opens no reader"
    assert len([one for one in world.records(world.topics.events) if one.partition == place]) == 2 * 27 + 1
    worker.stop()
    again = world.start_worker()
    publish(librdkafka(world), world, [(graph, query("last"))])
    assert world.await_answers(["last"])["last"][0]["interactions"] == 27
    assert sum(line["applied"] for line in again.said("caught_up")) <= 1, "at most the query that came last"

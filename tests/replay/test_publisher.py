"""Publishing to a real broker: order, pace, stops, kills, outages and going on after them."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from adatkg_core.datasets import load_dataset, synthesize, write_dataset
from adatkg_core.datasets.dataset import make_dataset
from adatkg_core.errors import AdatkgError
from replay import Choice, ReplaySequence, publish, publisher, resume, resume_position
from streams.embedded_broker import Broker
from streams.kafka import Connection, Record, Topics, ensure_topics, open_log, partition_of
from streams.kafka.topics import DEFAULT_PARTITIONS
from tests.support.replay_graphs import by_definition
from tests.support.small_graph import small_graph

ASKING = Choice("small", queries=True, k=3)
PATIENCE = 60.0  # seconds after which something that should happen at once will not happen


@pytest.fixture
def connection(bootstrap: str) -> Connection:
    return Connection(bootstrap)


@pytest.fixture
def topics(connection: Connection) -> Topics:
    """Topics that no other test has."""
    own = Topics(f"replay-{uuid.uuid4().hex[:12]}")
    ensure_topics(connection, own)
    return own


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of 120 times and 20 facts at each."""
    place = tmp_path_factory.mktemp("data") / "graph"
    write_dataset(synthesize(60, 5, 120, 20, seed=4), place)
    return place


def records(connection: Connection, topics: Topics, graph: str) -> list[Record]:
    with open_log(connection, topics.events) as log:
        partition = partition_of(graph, DEFAULT_PARTITIONS)
        return [record for record in log.read(partition, *log.bounds(partition)) if record.key == graph.encode()]


def assert_is_beginning_of(found: list[Record], sequence: ReplaySequence, length: int | None = None) -> None:
    """The records are the sequence's first messages, each once and in order."""
    assert [record.header("seq") for record in found] == [str(number) for number in range(len(found))]
    wanted = itertools.chain.from_iterable(block for _, block in sequence.blocks())
    assert [record.value for record in found] == list(itertools.islice(wanted, len(found)))
    assert {record.header("replay") for record in found} <= {sequence.digest}
    assert len(found) == (len(sequence) if length is None else length)


@contextmanager
def command(connection: Connection, topics: Topics, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`adatkg replay` as a process of its own, which does not outlive the test."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "ADATKG_LOG": "warning"}
    place = ("--bootstrap", connection.bootstrap, "--topic-prefix", topics.prefix)
    process = subprocess.Popen(
        [sys.executable, "-m", "adatkg", "replay", *arguments, *place, "--json"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def await_messages(connection: Connection, topics: Topics, graph: str, count: int) -> None:
    """Wait until the graph's partition has so many messages."""
    with open_log(connection, topics.events) as log:
        wait_for(lambda: log.bounds(partition_of(graph, DEFAULT_PARTITIONS))[1] >= count)


def publish_some(sequence: ReplaySequence, connection: Connection, topics: Topics) -> int:
    """Publish a few times and stop; how many messages that are."""
    stop = threading.Event()

    def report(done: int, total: int) -> None:
        if done > total // 4:
            stop.set()

    return publish(sequence, connection, topics.events, speed=20.0, stop=stop, report=report).end


# -- all of it ------------------------------------------------------------------------------------------------


def test_everything_arrives_once_in_order_with_the_graph_as_key(connection: Connection, topics: Topics) -> None:
    sequence = ReplaySequence(small_graph(), ASKING)
    done = publish(sequence, connection, topics.events)
    found = records(connection, topics, "small")
    assert_is_beginning_of(found, sequence)
    assert [record.value for record in found] == by_definition(small_graph(), ASKING)
    assert (done.start, done.end, done.total) == (0, len(found), len(found))
    assert (done.facts, done.queries) == sequence.counts(0, len(sequence))
    assert (done.interrupted, done.lag_seconds, done.last_time) == (False, 0.0, small_graph().times[-1])


def test_messages_larger_than_a_batch_arrive(
    connection: Connection, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "_BATCH_BYTES", 300)
    names = [f"{number} " + "long name " * 30 for number in range(6)]
    facts = np.array([[0, 0, o, t] for t in range(8) for o in range(1, 6)])
    sequence = ReplaySequence(make_dataset("long", names, ("r",), facts), Choice("long", queries=True))
    publish(sequence, connection, topics.events)
    assert_is_beginning_of(records(connection, topics, "long"), sequence)


def test_a_paced_replay_keeps_its_schedule(connection: Connection, topics: Topics) -> None:
    sequence = ReplaySequence(small_graph(), Choice("small", last=9))
    done = publish(sequence, connection, topics.events, speed=10.0)
    assert 0.9 <= done.seconds < 10 and 0 <= done.lag_seconds < 5
    first: dict[int, int] = {}
    for number, record in enumerate(records(connection, topics, "small")):
        first.setdefault(sequence.time_of(number), record.timestamp)
    begin = first[0]
    assert all((stamp - begin) / 1000 >= tick / 10 - 0.05 for tick, stamp in first.items())
    assert len(first) == 10


def test_a_replay_that_is_held_goes_on_at_its_own_pace_afterwards(connection: Connection, topics: Topics) -> None:
    sequence = ReplaySequence(small_graph(), Choice("small", last=9))
    asked = itertools.count()
    done = publish(sequence, connection, topics.events, speed=10.0, hold=lambda: 4 <= next(asked) < 24)
    assert (done.end, done.interrupted) == (len(sequence), False)
    found = records(connection, topics, "small")
    assert_is_beginning_of(found, sequence)
    first: dict[int, int] = {}
    for number, record in enumerate(found):
        first.setdefault(sequence.time_of(number), record.timestamp)
    # Twenty steps of 50 ms before the fifth time, by which all that follow are later too.
    begin = first[0]
    assert all((stamp - begin) / 1000 >= tick / 10 + (tick >= 4) - 0.05 for tick, stamp in first.items())


def test_nothing_holds_a_replay_without_a_pace_and_a_stop_ends_the_holding(
    connection: Connection, topics: Topics
) -> None:
    sequence, stop = ReplaySequence(small_graph(), Choice("small", last=9)), threading.Event()
    assert publish(sequence, connection, topics.events, hold=lambda: True).end == len(sequence)
    threading.Timer(0.5, stop.set).start()
    assert publish(sequence, connection, topics.events, speed=10.0, stop=stop, hold=lambda: True).interrupted


# -- stopped --------------------------------------------------------------------------------------------------


def test_signals_stop_it_cleanly_and_resume_goes_on(connection: Connection, topics: Topics, folder: Path) -> None:
    sequence = ReplaySequence(load_dataset(str(folder)), Choice("graph", queries=True))
    reached = 0
    for kind in (signal.SIGINT, signal.SIGTERM):
        arguments = (str(folder), "--queries", "--resume", "--speed", "20")
        with command(connection, topics, *arguments) as process:
            await_messages(connection, topics, "graph", reached + 100)
            process.send_signal(kind)
            printed, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        result = json.loads(printed)
        assert result["interrupted"] and result["resumed_at"] == reached
        reached += result["messages"]
        assert result["remaining"] == len(sequence) - reached > 0
        assert result["last_time"] == sequence.time_of(reached - 1)
        assert_is_beginning_of(records(connection, topics, "graph"), sequence, reached)
    done = publish(sequence, connection, topics.events, start=resume_position(sequence, connection, topics.events))
    assert (done.start, done.end, done.interrupted) == (reached, len(sequence), False)
    assert_is_beginning_of(records(connection, topics, "graph"), sequence)


def test_a_stop_before_the_begin_publishes_nothing(connection: Connection, topics: Topics) -> None:
    stop = threading.Event()
    stop.set()
    done = publish(ReplaySequence(small_graph(), ASKING), connection, topics.events, stop=stop)
    assert (done.messages, done.last_time, done.interrupted) == (0, None, True)
    assert records(connection, topics, "small") == []


# -- killed ---------------------------------------------------------------------------------------------------


def test_kills_at_any_moment_leave_no_gap_and_no_repeat(connection: Connection, topics: Topics) -> None:
    choice = Choice("icews14", queries=True, last=100)
    sequence = ReplaySequence(load_dataset("icews14"), choice)
    # Far more than is published until the last of the kills, so that each meets a replay at work.
    source, reached = random.Random(7), 0
    for _ in range(3):
        with command(connection, topics, "icews14", "--queries", "--to", "100", "--resume") as process:
            await_messages(connection, topics, "icews14", reached + source.randint(1, 5_000))
            time.sleep(source.random() * 0.05)
            process.kill()
            process.wait()
        start = resume_position(sequence, connection, topics.events)
        assert reached < start <= len(sequence)
        reached = start
    with command(connection, topics, "icews14", "--queries", "--to", "100", "--resume") as process:
        printed, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    result = json.loads(printed)
    assert (result["resumed_at"], result["messages"], result["remaining"]) == (reached, len(sequence) - reached, 0)
    assert_is_beginning_of(records(connection, topics, "icews14"), sequence)


# -- resumed --------------------------------------------------------------------------------------------------


def test_resume_finds_its_place_behind_messages_of_others(
    connection: Connection, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "STILL", 0.1)
    monkeypatch.setattr(resume, "_FIRST_RANGE", 50)
    partition = partition_of("small", DEFAULT_PARTITIONS)
    neighbour = next(name for name in map(str, range(1000)) if partition_of(name, DEFAULT_PARTITIONS) == partition)
    sequence = ReplaySequence(small_graph(), ASKING)
    assert resume_position(sequence, connection, topics.events) == 0
    reached = publish_some(sequence, connection, topics)
    assert 0 < reached < len(sequence)
    publish(ReplaySequence(small_graph(), Choice(neighbour, queries=True)), connection, topics.events)
    publish(ReplaySequence(small_graph(), Choice("small", queries=True, k=4)), connection, topics.events)
    assert resume_position(sequence, connection, topics.events) == reached
    publish(sequence, connection, topics.events, start=reached)
    found = [one for one in records(connection, topics, "small") if one.header("replay") == sequence.digest]
    assert_is_beginning_of(found, sequence)
    assert resume_position(sequence, connection, topics.events) == len(sequence)


def test_a_replay_done_twice_resumes_where_the_second_one_is(
    connection: Connection, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "STILL", 0.1)
    sequence = ReplaySequence(small_graph(), ASKING)
    publish(sequence, connection, topics.events)
    reached = publish_some(sequence, connection, topics)
    assert resume_position(sequence, connection, topics.events) == reached < len(sequence)


def test_what_lands_while_resume_looks_is_counted_and_what_keeps_coming_is_refused(
    connection: Connection, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "STILL", 0.4)
    sequence, stop = ReplaySequence(small_graph(), ASKING), threading.Event()

    def live() -> None:
        publish(sequence, connection, topics.events, speed=10.0, stop=stop)

    other = threading.Thread(target=live)
    other.start()
    try:
        await_messages(connection, topics, "small", 1)
        monkeypatch.setattr(resume, "_BUSY", 0.3)
        with pytest.raises(AdatkgError, match="another program"):
            resume_position(sequence, connection, topics.events)
        monkeypatch.setattr(resume, "_BUSY", 60.0)
        assert resume_position(sequence, connection, topics.events) == len(sequence)
    finally:
        stop.set()
        other.join()


# -- brokers that fail ----------------------------------------------------------------------------------------


def test_a_message_that_is_refused_stops_the_replay_and_nothing_behind_it_is_published(
    connection: Connection, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "_BATCH_BYTES", 500)
    source = random.Random(1)
    long = [f"{source.getrandbits(3600):x}" for _ in range(6)]
    rows = [[0, 0, 1, t] for t in range(4)] + [[0, 0, o, 4] for o in range(2, 8)] + [[0, 0, 1, t] for t in range(5, 9)]
    dataset = make_dataset("long", ["a", "b", *long], ("r",), np.array(rows))
    sequence = ReplaySequence(dataset, Choice("long", queries=True))
    narrow = Topics(f"{topics.prefix}-narrow")
    admin = KafkaAdminClient(**connection.client())
    admin.create_topics([NewTopic(narrow.events, DEFAULT_PARTITIONS, -1, topic_configs={"max.message.bytes": "1500"})])
    admin.close()
    with pytest.raises(AdatkgError, match=rf"message 12 of {len(sequence)}.*MessageSizeTooLarge.*--resume"):
        publish(sequence, connection, narrow.events)
    assert_is_beginning_of(records(connection, narrow, "long"), sequence, 12)


def test_a_broker_that_comes_back_is_waited_for_and_one_that_stays_away_is_given_up(
    private_broker: Callable[[], Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = private_broker()
    broker.start()
    connection, topics = Connection(broker.bootstrap), Topics()
    ensure_topics(connection, topics)
    sequence = ReplaySequence(synthesize(60, 5, 120, 20, seed=4), Choice("graph", queries=True))
    told = [0]
    done = []

    def live() -> None:
        done.append(publish(sequence, connection, topics.events, speed=60.0, report=lambda at, _: told.append(at)))

    replay = threading.Thread(target=live)
    replay.start()
    wait_for(lambda: told[-1] > len(sequence) // 3)
    broker.kill()
    broker.start()
    replay.join(PATIENCE)
    assert done and (done[0].messages, done[0].interrupted) == (len(sequence), False)
    assert_is_beginning_of(records(connection, topics, "graph"), sequence)

    monkeypatch.setattr(publisher, "PATIENCE", 1.0)
    with pytest.raises(AdatkgError, match=r"no answer for 1 s.*--resume"):
        publish(sequence, connection, topics.events, speed=60.0, report=lambda *_: broker.kill())

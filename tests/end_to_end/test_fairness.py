"""A flood in one graph and a question in another graph of the same partition, with a kill in the middle."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import orjson
import pytest

from adatkg_core.messages import encode_fact, encode_query
from streams.kafka import partition_of
from tests.support.running_system import GRAPH, Event, World, assert_same_answer, ids_of, until
from tests.support.small_graph import assert_same_snapshot

FLOOD = 3_000  # events: with what they exclude they are several times what a worker keeps of one graph in memory
LONG = [character * 990 for character in "abc"]
SETTINGS = {"snapshot_events": 300, "batch_events": 64}


def flood(graph: str) -> list[Event]:
    """Two questions and a fact in turn."""
    made: list[Event] = []
    for i in range(FLOOD):
        subject, relation = GRAPH.entities[i % 7], GRAPH.relations[0]
        if i % 3 == 0:
            made.append((graph, encode_fact(subject, relation, GRAPH.entities[7 + i % 5], i // 30)))
        else:
            made.append((graph, encode_query(f"{graph}-{i}", relation, "next", s=subject, k=3, exclude=LONG)))
    return made


def few(graph: str, part: int) -> list[Event]:
    subject, relation, other = GRAPH.entities[0], GRAPH.relations[1], GRAPH.entities[1]
    return [
        (graph, encode_fact(subject, relation, other, part)),
        (graph, encode_query(f"{graph}-{part}", relation, "next", s=subject, k=3)),
    ]


def neighbours(world: World) -> tuple[str, str]:
    """Two graphs of one partition, with models."""
    first = "g0"
    here = partition_of(first, world.partitions)
    second = next(name for i in count(1) if partition_of(name := f"g{i}", world.partitions) == here)
    world.add_model(first, second)
    return first, second


@pytest.mark.timeout(600)
def test_a_question_behind_a_flood_is_answered_long_before_it_ends_and_a_kill_changes_nothing(
    bootstrap: str, world: World, tmp_path: Path
) -> None:
    big, small = neighbours(world)
    events = [*few(small, 0), *flood(big), *few(small, 1)]
    worker = world.start_worker(**SETTINGS)
    world.publish(events)
    until(lambda: f"{small}-1" in world.answers(), "the question behind the flood is answered")
    order = [orjson.loads(record.value or b"")["query"]["id"] for record in world.records(world.topics.predictions)]
    before = order.index(f"{small}-1")
    assert before < len(ids_of(flood(big))) // 2, "it waited for the flood"
    assert world.committed(big) < len(events) // 2, "committed beyond what is taken in"
    worker.kill()
    world.start_worker(**SETTINGS)
    world.publish(few(small, 2))
    events += few(small, 2)
    found = world.await_answers(ids_of(events))
    world.workers[-1].stop()

    calm = World(bootstrap, tmp_path / "calm", partitions=world.partitions)
    calm.folder.mkdir()
    calm.add_model(big, small)
    try:
        calm.publish(events)
        alone = calm.start_worker(snapshot_events=100_000, snapshot_seconds=3600)
        wanted = calm.await_answers(ids_of(events))
        alone.stop()
    finally:
        calm.close()
    assert found.keys() == wanted.keys()
    for query, answers in found.items():
        for answer in answers:
            assert_same_answer(answer, wanted[query][0])
    for graph in (big, small):
        mine, theirs = world.newest_snapshot(graph), calm.newest_snapshot(graph)
        assert_same_snapshot(mine.snapshot, theirs.snapshot)

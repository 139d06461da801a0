"""However often a worker is killed, every query is answered, the answers are the same, and so is the state."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from adatkg_core.datasets import synthesize
from tests.support.running_system import GRAPH, Event, World, assert_same_answer, ids_of, stream_of, until
from tests.support.small_graph import assert_same_snapshot

KILLS = 3  # at moments of chance; what each step leaves behind is for the tests of the worker
LONG = synthesize(120, 5, 30, 40, seed=5)


def undisturbed(bootstrap: str, folder: Path, events: list[Event]) -> World:
    """The same events with a worker that nobody disturbs."""
    folder.mkdir()
    world = World(bootstrap, folder)
    world.add_model("g")
    worker = world.start_worker()
    world.publish(events)
    world.await_answers(ids_of(events))
    worker.stop()
    return world


@pytest.mark.timeout(600)
def test_kills_change_neither_the_answers_nor_the_final_state(bootstrap: str, world: World, tmp_path: Path) -> None:
    assert LONG.relations == GRAPH.relations
    events = list(stream_of(LONG, "g"))
    calm = undisturbed(bootstrap, tmp_path / "calm", events)
    moments = random.Random(11)
    world.add_model("g")
    part = len(events) // (KILLS + 1) + 1
    worker = world.start_worker(snapshot_events=200, batch_events=64)
    for kill in range(KILLS):
        world.publish(events[kill * part : (kill + 1) * part])
        # In the middle of the work: not before it has begun, and at some moment from then on.
        until(worker.has_answered, "the worker answers")
        time.sleep(moments.uniform(0.0, 0.5))
        worker.kill()
        worker = world.start_worker(snapshot_events=200, batch_events=64)
    world.publish(events[KILLS * part :])
    found = world.await_answers(ids_of(events))
    worker.stop()

    wanted = calm.answers()
    assert found.keys() == wanted.keys()
    for query, answers in found.items():
        assert len({answer["id"] for answer in answers}) == 1
        for answer in answers:
            assert_same_answer(answer, wanted[query][0])
    mine, theirs = world.newest_snapshot("g"), calm.newest_snapshot("g")
    assert mine.offset == theirs.offset == len(events)
    assert_same_snapshot(mine.snapshot, theirs.snapshot)


def test_a_restart_costs_a_snapshot_and_the_tail_of_the_log(world: World) -> None:
    world.add_model("g")
    events = list(stream_of(LONG, "g", slice(0, 1000)))
    worker = world.start_worker(snapshot_events=300, snapshot_seconds=3600, batch_events=100)
    world.publish(events)
    world.await_answers(ids_of(events))
    half = len(events) // 2  # a snapshot is due every 300 events, but a busy machine may take long for one
    until(lambda: max(worker.said("snapshot")[-1]["committed"].values(), default=0) > half, "snapshots are written")
    worker.kill()
    tail = world.end_of("g") - world.newest_snapshot("g").offset
    assert 0 <= tail < half
    again = world.start_worker()
    more = list(stream_of(LONG, "g", slice(1000, 1001)))
    world.publish([(graph, value.replace(b'"g-0-', b'"g-more-')) for graph, value in more])
    world.await_answers([f"g-more-{side}" for side in "osn"])
    loaded = again.said("graph_loaded")[0]
    assert loaded["snapshot"] >= world.end_of("g") - len(more) - tail
    # What came while a quiet graph was being loaded is taken from the log, like what came before it.
    assert sum(line["applied"] for line in again.said("caught_up")) <= tail + len(more)


def test_a_worker_told_to_stop_saves_everything_and_leaves(world: World) -> None:
    world.add_model("g")
    events = list(stream_of(GRAPH, "g"))
    worker = world.start_worker(snapshot_seconds=3600)
    world.publish(events)
    world.await_answers(ids_of(events))
    assert world.members() == 1
    worker.stop()
    assert world.newest_snapshot("g").offset == len(events)
    assert world.members() == 0, "the next one would have to wait until its session has ended"
    again = world.start_worker()
    world.publish(list(stream_of(GRAPH, "g", slice(0, 1))))
    until(lambda: bool(again.said("graph_loaded")), "the graph is loaded")
    behind = [line for line in again.said("caught_up") if line["start"] < len(events)]
    assert not behind, "offsets were committed, so there is nothing to catch up with"
    assert again.said("graph_loaded")[0]["snapshot"] == len(events)

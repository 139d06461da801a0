"""A worker that does nothing for longer than its group waits: stopped by a signal, or because nothing can be saved."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adatkg_core.events import Source
from adatkg_core.text import load_encoder
from streams.settings import StreamSettings
from streams.worker import Arrival, LiveGraph, Replica
from tests.support.running_system import (
    GRAPH,
    World,
    assert_same_answer,
    ids_of,
    offline,
    small_bundle,
    stream_of,
    until,
)
from tests.support.small_graph import assert_same_snapshot

POLL_INTERVAL = 3.0  # seconds; Faust's own is a thousand
EVENTS = list(stream_of(GRAPH, "g", slice(0, 60)))
FIRST, SECOND, THIRD = EVENTS[:50], EVENTS[50:100], EVENTS[100:]


@pytest.fixture
def world(bootstrap: str, tmp_path: Path) -> Iterator[World]:
    made = World(bootstrap, tmp_path, partitions=1)
    made.add_model("g")
    yield made
    made.close()


def assert_all_is_as_offline(world: World) -> None:
    """Each query has its answer, once or alike, and the state saved last is that of the whole log."""
    wanted, answers = offline(small_bundle(), EVENTS), world.await_answers(ids_of(EVENTS))
    assert answers.keys() == wanted.keys()
    for query, made in answers.items():
        for answer in made:
            assert_same_answer(answer, wanted[query] | {key: answer[key] for key in ("id", "source")})
        assert len({answer["id"] for answer in made}) == 1
    until(lambda: world.newest_snapshot("g").offset >= len(EVENTS), "the state of the whole log is saved")
    calm = LiveGraph("g", small_bundle(), load_encoder("hash:24"), StreamSettings(), Replica())
    calm.apply([Arrival(Source(0, i), 0.0, b"g", value) for i, (_, value) in enumerate(EVENTS)])
    assert_same_snapshot(world.newest_snapshot("g").snapshot, calm.engine.snapshot())


def test_a_worker_stopped_for_longer_than_its_session_changes_nothing_when_it_goes_on(world: World) -> None:
    asleep = world.start_worker()
    world.publish(FIRST)
    world.await_answers(ids_of(FIRST))
    world.publish(SECOND[:25])  # some of it may be under way when the worker stops
    asleep.process.send_signal(signal.SIGSTOP)
    other = world.start_worker()
    world.publish(SECOND[25:])
    world.await_answers(ids_of([*FIRST, *SECOND]))
    assert other.has_answered(), "the group has given the graph to the other worker"
    asleep.process.send_signal(signal.SIGCONT)
    until(lambda: world.members() == 2, "the one that slept is a member again")
    until(lambda: asleep.said("assigned")[-1] != asleep.said("assigned")[0], "it was given partitions anew")
    world.publish(THIRD)
    assert_all_is_as_offline(world)
    assert asleep.process.poll() is None and other.process.poll() is None


def test_a_worker_that_takes_nothing_in_for_longer_than_kafkas_poll_interval_keeps_its_partitions(
    world: World,
) -> None:
    world.variables["BROKER_MAX_POLL_INTERVAL"] = str(POLL_INTERVAL)
    worker = world.start_worker(snapshot_events=8, batch_events=8)
    world.publish(FIRST[:1])
    world.await_answers(ids_of(FIRST[:1]))
    until(worker.is_durable, "the graph is loaded, and saved once")
    aside = world.saved.rename(world.folder / "aside")
    world.saved.touch()  # where a file is nothing can be saved
    world.publish(EVENTS[1:])
    until(lambda: bool(worker.said("snapshot_failed")), "nothing can be saved")
    time.sleep(3 * POLL_INTERVAL)
    assert len(world.answers()) < len(ids_of(EVENTS)), "it takes nothing more in"
    world.saved.unlink()
    aside.rename(world.saved)
    assert_all_is_as_offline(world)

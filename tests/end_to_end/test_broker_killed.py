"""A broker that dies and comes back: the worker goes on by itself, and nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from adatkg_core.datasets import synthesize
from streams.embedded_broker import Broker
from tests.support.running_system import World, assert_same_answer, ids_of, offline, small_bundle, stream_of, until

AWAY = 20.0  # seconds: longer than three sessions and than two attempts to connect
LONG = synthesize(120, 5, 40, 40, seed=6)


@pytest.mark.timeout(600)
def test_a_broker_that_is_gone_for_a_while_costs_nothing_but_time(
    private_broker: Callable[[], Broker], tmp_path: Path
) -> None:
    broker = private_broker()
    broker.start()
    world = World(broker.bootstrap, tmp_path)
    try:
        world.add_model("g")
        worker = world.start_worker(snapshot_events=200, batch_events=32)
        events = list(stream_of(LONG, "g"))
        world.publish(events)
        until(worker.has_answered, "the worker answers")
        broker.kill()
        time.sleep(AWAY)
        assert worker.process.poll() is None, "the worker ended with its broker"
        broker.start()
        answers = world.await_answers(ids_of(events))
        assert worker.process.poll() is None
        more = [(graph, value.replace(b'"g-', b'"more-')) for graph, value in stream_of(LONG, "g", slice(-1, None))]
        world.publish(more)
        world.await_answers(ids_of(more))
        worker.stop()
        assert world.newest_snapshot("g").offset == len(events) + len(more)
        wanted = offline(small_bundle(), events)
        assert answers.keys() == wanted.keys()
        for query, made in answers.items():
            for answer in made:
                assert_same_answer(answer, wanted[query] | {key: answer[key] for key in ("id", "source")})
                assert answer["id"] == made[0]["id"]
    finally:
        world.close()


def test_a_worker_told_to_stop_while_its_broker_is_away_ends(
    private_broker: Callable[[], Broker], tmp_path: Path
) -> None:
    broker = private_broker()
    broker.start()
    world = World(broker.bootstrap, tmp_path)
    try:
        world.add_model("g")
        worker = world.start_worker(snapshot_seconds=3600)
        events = list(stream_of(LONG, "g", slice(0, 100)))
        world.publish(events)
        world.await_answers(ids_of(events))
        broker.kill()
        worker.process.terminate()
        worker.process.wait(90)
    finally:
        world.close()

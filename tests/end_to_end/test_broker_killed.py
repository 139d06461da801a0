"""A broker that dies and comes back: the worker goes on by itself, and nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from adatkg_core.synth import synthesize
from streams.broker import Broker
from tests.end_to_end.world import World, ids_of, stream_of, until

AWAY = 60.0  # seconds
LONG = synthesize(120, 5, 40, 40, seed=6)


@pytest.mark.timeout(600)
def test_a_broker_that_is_gone_for_a_minute_costs_nothing_but_time(
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
        for query, made in answers.items():
            assert len({answer["id"] for answer in made}) == 1, query
    finally:
        world.close()

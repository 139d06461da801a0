"""Each role gets the rights that the documentation says it needs, and no more: with these the system works."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from adatkg_core.messages import Announcement
from adatkg_core.storage import ModelStore
from streams.kafka import Connection, announce
from tests.end_to_end.test_hot_swap import OTHER
from tests.support.running_system import GRAPH, VERSION, World, ids_of, stream_of, until
from tests.support.secured_broker import Guarded, guarded_broker

# As in docs/how-to/security.md, by the last part of a topic's name.
RIGHTS = {
    "worker": {"READ": ("events", "models"), "WRITE": ("events", "predictions", "deadletter")},
    "producer": {"READ": (), "WRITE": ("events",)},
    "keeper": {"READ": (), "WRITE": ("models",)},
    "consumer": {"READ": ("predictions",), "WRITE": ()},
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded_broker(tmp_path_factory.mktemp("guarded") / "kafka", tuple(RIGHTS)) as running:
        yield running


@pytest.fixture
def world(guarded: Guarded, tmp_path: Path) -> Iterator[World]:
    """Topics that the super user has made; workers come in as `worker`."""
    made = World(guarded.bootstrap, tmp_path, partitions=1)
    for user, rights in RIGHTS.items():
        for operation, topics in rights.items():
            for topic in topics:
                guarded.allow(user, operation, f"{made.prefix}.{topic}")
    guarded.allow("worker", "READ", f"{made.prefix}-workers", group=True)
    made.variables, made.bootstrap = guarded.way("worker"), guarded.address
    made.add_model("g")
    yield made
    made.close()


def as_user(world: World, connection: Connection) -> World:
    """The same topics by another user's rights."""
    seen = object.__new__(World)
    seen.__dict__.update(world.__dict__, connection=connection)
    return seen


@pytest.mark.timeout(600)
def test_a_worker_answers_and_swaps_with_the_rights_that_are_documented(world: World, guarded: Guarded) -> None:
    worker = world.start_worker()
    producer, consumer = (as_user(world, guarded.connection(user)) for user in ("producer", "consumer"))
    events = list(stream_of(GRAPH, "g", slice(0, 5)))
    producer.publish(events)
    consumer.await_answers(ids_of(events))
    world.publish([("g", b"rubbish")])
    world.await_dead_letters(1)
    guarded.forbid("worker", "WRITE", world.topics.events)
    store = ModelStore(str(world.models))
    store.put("g", replace(OTHER, graph="g"), None)
    store.make_present("g", OTHER.version)
    said = Announcement("g", OTHER.version, "present", "for a test", forced=False, verdict=None)
    announce(guarded.connection("keeper"), world.topics, said)
    until(lambda: bool(worker.said("swap_failed")), "it says that it may not write there")
    assert "needs the right to write there" in worker.said("swap_failed")[0]["problem"]
    more = [("g", value.replace(b'"g-', b'"more-')) for _, value in stream_of(GRAPH, "g", slice(5, 6))]
    producer.publish(more)
    answers = consumer.await_answers(ids_of(more))
    assert {answers[query][0]["model"] for query in ids_of(more)} == {VERSION}, "it goes on as it was"
    until(worker.is_durable, "nothing waits for the event")
    guarded.allow("worker", "WRITE", world.topics.events)
    until(lambda: bool(worker.said("swapped")), "the new version answers")
    worker.stop()

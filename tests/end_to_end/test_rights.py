"""Each role gets the rights that the documentation says it needs, and no more: with these the system works."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from adatkg_core.datasets import synthesize
from adatkg_core.errors import AdatkgError
from adatkg_core.storage import ModelStore
from tests.end_to_end.test_hot_swap import OTHER
from tests.support import trainer_logs
from tests.support.running_system import GRAPH, VERSION, World, ids_of, stream_of, until
from tests.support.secured_broker import Guarded, guarded_broker
from tests.support.trainer_rounds import round_of

# As in docs/how-to/security.md, by the last part of a topic's name.
RIGHTS = {
    "worker": {"READ": ("events", "models"), "WRITE": ("events", "predictions", "deadletter")},
    "producer": {"READ": (), "WRITE": ("events",)},
    "keeper": {"READ": (), "WRITE": ("models",)},
    "consumer": {"READ": ("predictions",), "WRITE": ()},
    "asker": {"READ": ("predictions", "deadletter"), "WRITE": ("events",)},
    "trainer": {"READ": ("events", "models"), "WRITE": ("models",)},
    "mender": {"READ": ("deadletter",), "WRITE": ("deadletter", "events")},
}
TRAINED = trainer_logs.GRAPH


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
    guarded.allow("trainer", "READ", f"{made.prefix}-trainer-{TRAINED}", group=True)
    made.variables, made.bootstrap = guarded.way("worker"), guarded.address
    made.add_model("g")
    yield made
    made.close()


def as_user(world: World, guarded: Guarded, user: str) -> World:
    """The same topics by another user's rights."""
    seen = object.__new__(World)
    seen.__dict__.update(world.__dict__, connection=guarded.connection(user), variables=guarded.way(user))
    return seen


@pytest.mark.timeout(600)
def test_a_worker_answers_and_swaps_with_the_rights_that_are_documented(world: World, guarded: Guarded) -> None:
    worker = world.start_worker()
    producer, consumer, keeper = (as_user(world, guarded, user) for user in ("producer", "consumer", "keeper"))
    events = list(stream_of(GRAPH, "g", slice(0, 5)))
    producer.publish(events)
    consumer.await_answers(ids_of(events))
    world.publish([("g", b"rubbish")])
    world.await_dead_letters(1)
    guarded.forbid("worker", "WRITE", world.topics.events)
    store = ModelStore(str(world.models))
    store.put("g", replace(OTHER, graph="g"), None)
    keeper.command("models", "promote", "g", OTHER.version, "--models", str(world.models))
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


@pytest.mark.timeout(600)
def test_who_asks_trains_or_mends_needs_the_rights_that_are_documented(world: World, guarded: Guarded) -> None:
    producer, asker, mender, trainer = (
        as_user(world, guarded, user) for user in ("producer", "asker", "mender", "trainer")
    )
    worker = world.start_worker()
    assert asker.ask("g", GRAPH.entities[0], GRAPH.relations[0])["model"] == VERSION
    producer.publish([("g", b"rubbish"), *stream_of(GRAPH, "nobody", slice(0, 1))])
    world.await_dead_letters(2)
    (letter, *_) = mender.command("deadletters", "list", "--graph", "g")["deadletters"]
    mender.command("deadletters", "retry", letter["id"], "--value", '{"v":1,"kind":"tick","t":1}')
    assert mender.command("deadletters", "list", "--graph", "g")["deadletters"] == []
    data = synthesize(30, 4, 16, 12, seed=5)
    producer.publish((TRAINED, value) for value in trainer_logs.messages(data))
    done = round_of(trainer)
    assert done.status == "present" and done.facts == len(data.facts)
    assert asker.ask(TRAINED, data.entities[0], data.relations[0])["model"] == done.version
    guarded.forbid("trainer", "WRITE", world.topics.models)
    producer.publish((TRAINED, value) for value in trainer_logs.messages(data, 0, 50))
    with pytest.raises(AdatkgError, match="models"):
        round_of(trainer)
    worker.stop()

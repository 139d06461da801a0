"""The brokers give a graph to one trainer only, and take it from one that is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer
from kafka.errors import RebalanceInProgressError

from adatkg_core.datasets import Dataset, synthesize
from adatkg_core.errors import InputError
from tests.support.running_system import World
from tests.support.trainer_logs import GRAPH, messages
from tests.support.trainer_rounds import plan, round_of, store
from trainer import TrainingMetrics, log_trainer
from trainer.retrain.lease import lease

HOLDER = """
import sys
from adatkg_core.errors import AdatkgError
from streams.kafka.connection import Connection
from streams.kafka.topics import Topics
from trainer.retrain.lease import lease
with lease(Connection(sys.argv[1]), Topics(sys.argv[2]), sys.argv[3]) as held:
    print("answer: has it", flush=True)
    for _ in sys.stdin:
        try:
            held.require()
            print("answer: still", flush=True)
        except AdatkgError as error:
            print("answer:", error, flush=True)
"""


@pytest.fixture
def world(bootstrap: str, tmp_path: Path) -> World:
    return World(bootstrap, tmp_path)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthesize(30, 4, 16, 12, seed=5)


@contextmanager
def holder(world: World) -> Iterator[subprocess.Popen[str]]:
    """A process that has the lease, as on another machine; a line to it asks whether it still has."""
    command = [sys.executable, "-c", HOLDER, world.bootstrap, world.prefix, GRAPH]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert said(process) == "has it"
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    lines = (line.strip() for line in process.stdout)  # of its log, and of its answers
    return next(line.removeprefix("answer: ") for line in lines if line.startswith("answer: "))


def asked(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None
    process.stdin.write("?\n")
    process.stdin.flush()
    return said(process)


def test_a_second_trainer_elsewhere_is_refused_and_the_first_one_goes_on(world: World, data: Dataset) -> None:
    world.publish((GRAPH, value) for value in messages(data))
    with log_trainer(plan(world), world.connection, world.topics, TrainingMetrics()) as trainer:
        with (
            pytest.raises(InputError, match=f"graph {GRAPH}: another trainer has it"),
            lease(world.connection, world.topics, GRAPH),
        ):
            pass
        with lease(world.connection, world.topics, "another graph"):
            done = trainer.round()
    assert done.status == "present"


def test_the_graph_of_a_killed_trainer_goes_to_the_next_one(world: World, data: Dataset) -> None:
    world.publish((GRAPH, value) for value in messages(data))
    with holder(world) as process:
        assert asked(process) == "still"
        process.kill()
        assert round_of(world).status == "present"


def test_a_trainer_that_was_asleep_while_another_one_came_does_not_promote(world: World, data: Dataset) -> None:
    with holder(world) as process:
        process.send_signal(signal.SIGSTOP)
        with lease(world.connection, world.topics, GRAPH) as held:
            process.send_signal(signal.SIGCONT)
            assert "do not confirm that this trainer is its only one" in asked(process)
            held.require()


def test_a_member_whose_join_never_ends_gives_way_to_a_new_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    members: list[KafkaConsumer] = []
    commit = KafkaConsumer.commit

    def stuck(consumer: KafkaConsumer, *given: object, **named: object) -> None:
        members.extend({consumer}.difference(members))
        if consumer is members[0]:
            raise RebalanceInProgressError("the first member is stuck")
        commit(consumer, *given, **named)

    monkeypatch.setattr(KafkaConsumer, "commit", stuck)
    with lease(world.connection, world.topics, GRAPH) as held:
        held.require()
    assert len(members) == 2


def test_without_the_brokers_word_nothing_is_promoted(
    world: World, data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.publish((GRAPH, value) for value in messages(data))
    with log_trainer(plan(world), world.connection, world.topics, TrainingMetrics()) as trainer:
        trainer._lease.close()
        monkeypatch.setattr("trainer.retrain.lease.PATIENCE", 0.5)
        with pytest.raises(Exception, match="do not confirm"):
            trainer.round()
        assert store(world).present(GRAPH) is None
    monkeypatch.undo()
    assert round_of(world).status == "present", "the decision is carried out by whoever may"


def test_a_member_whose_client_never_ends_its_join_begins_anew(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[KafkaConsumer] = []

    class Consumer(KafkaConsumer):  # type: ignore[misc]
        """The first one is always in the middle of a join, as kafka-python's may be when a poll interrupts it."""

        def __init__(self, *topics: str, **settings: Any) -> None:
            super().__init__(*topics, **settings)
            made.append(self)

        def commit(self, *arguments: Any, **more: Any) -> None:
            if self is made[0]:
                raise RebalanceInProgressError("the consumer is undergoing a rebalance")
            super().commit(*arguments, **more)

    monkeypatch.setattr("trainer.retrain.lease.KafkaConsumer", Consumer)
    with lease(world.connection, world.topics, GRAPH) as held:
        held.require()
    assert len(made) == 2

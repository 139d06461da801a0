"""The log itself changes under a running worker: its topic is made anew, or its records are deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from kafka import KafkaAdminClient, TopicPartition

from adatkg_core.datasets import synthesize
from streams.kafka import ensure_topics, event_log, partition_of
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

EVENTS = list(stream_of(synthesize(20, len(GRAPH.relations), 4, 4, seed=3), "g"))


@pytest.fixture
def world(bootstrap: str, tmp_path: Path) -> Iterator[World]:
    made = World(bootstrap, tmp_path)
    made.add_model("g")
    yield made
    made.close()


@pytest.fixture
def admin(bootstrap: str) -> Iterator[KafkaAdminClient]:
    made = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield made
    made.close()


def test_a_topic_made_anew_under_a_running_worker_is_read_from_its_beginning(
    world: World, admin: KafkaAdminClient
) -> None:
    worker = world.start_worker()
    world.publish(EVENTS)
    world.await_answers(ids_of(EVENTS))
    until(worker.is_durable, "all is saved and acknowledged")
    admin.delete_topics([world.topics.events])
    until(lambda: world.topics.events not in admin.list_topics(), "the topic is gone")
    ensure_topics(world.connection, world.topics, world.partitions)
    renewed = [
        (graph, orjson.dumps(message | {"id": f"new-{message['id']}"}) if "id" in message else value)
        for graph, value in EVENTS
        if (message := orjson.loads(value))
    ]
    world.publish(renewed)
    answers = world.await_answers(ids_of(renewed))
    expected = offline(small_bundle(), renewed)
    for query_id, wanted in expected.items():
        found = answers[query_id][-1]
        for key in ("id", "source", "graph"):
            wanted[key] = found[key]
        assert_same_answer(found, wanted)
    (said,) = [line for line in worker.said("incident") if line["kind"] == "log-remade"]
    assert world.event_log.id in said["detail"] and event_log(world.connection, world.topics).id in said["detail"]


def test_records_that_are_deleted_before_they_were_read_are_an_incident_with_their_offsets(
    world: World, admin: KafkaAdminClient
) -> None:
    world.publish(EVENTS)
    place = TopicPartition(world.topics.events, partition_of("g", world.partitions))
    admin.delete_records({place: 10})
    worker = world.start_worker()
    world.await_answers(ids_of(EVENTS[10:]))
    incidents = orjson.loads(worker.page("/health")[1])["incidents"]
    assert [(one["graph"], one["kind"]) for one in incidents] == [("g", "records-lost")]
    assert "offsets 0 to 9 are no longer in the log" in incidents[0]["detail"]
    assert worker.metric('adatkg_incidents_total{graph="g",kind="records-lost"}') == 1
    overview = orjson.loads(worker.page("/api/overview")[1])
    assert overview["incidents"] == incidents

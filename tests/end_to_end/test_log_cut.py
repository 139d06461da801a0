"""The log loses its newest records, as by an unclean election: a killed broker's disk is cut."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson
import pytest

from adatkg_core.datasets import synthesize
from streams.embedded_broker import Broker
from tests.support.running_system import (
    GRAPH,
    Event,
    Worker,
    World,
    assert_same_answer,
    ids_of,
    offline,
    small_bundle,
    stream_of,
    until,
)

EVENTS = list(stream_of(synthesize(30, len(GRAPH.relations), 12, 6, seed=3), "g"))
KEPT, CUT = 40, 100  # events; what follows stands in batches of its own


def cut_off(broker: Broker, topic: str, end: int) -> None:
    """What a replica without the newest records has: batches that begin at `end` or beyond are not there."""
    (folder,) = broker.data_dir.rglob(f"{topic}-0")
    (segment,) = folder.glob("*.log")
    content, place = segment.read_bytes(), 0
    while True:
        offset, size = struct.unpack_from(">qi", content, place)
        if offset >= end:
            break
        place += 12 + size
    segment.write_bytes(content[:place])
    for file in folder.iterdir():
        if file.suffix in (".index", ".timeindex", ".snapshot"):
            file.unlink()  # they are made anew from the segment


def instead(events: Sequence[Event], mark: str) -> list[Event]:
    """The same events under other ids."""
    return [(graph, value.replace(b'"g-', f'"{mark}-'.encode())) for graph, value in events]


def assert_answered(world: World, log: Sequence[Event], *asked: Sequence[Event]) -> None:
    """What was asked in these parts of the log is answered as the log as it is now says."""
    wanted, ids = offline(small_bundle(), log), [id for part in asked for id in ids_of(part)]
    answers = world.await_answers(ids)
    for id in ids:
        for found in answers[id]:
            assert_same_answer(found, wanted[id] | {"id": found["id"], "source": found["source"]})
        assert len({found["id"] for found in answers[id]}) == 1


def told(worker: Worker) -> list[str]:
    """The details of lost records that the worker shows now."""
    incidents = orjson.loads(worker.page("/health")[1])["incidents"]
    return [one["detail"] for one in incidents if (one["graph"], one["kind"]) == ("g", "records-lost")]


@pytest.mark.timeout(600)
def test_records_that_an_election_has_lost_are_told_and_all_that_stands_there_now_is_answered(
    private_broker: Callable[[], Broker], tmp_path: Path
) -> None:
    broker = private_broker()
    broker.start()
    world = World(broker.bootstrap, tmp_path, partitions=1)
    try:
        world.add_model("g")
        worker = world.start_worker()
        kept, lost = EVENTS[:KEPT], EVENTS[KEPT:CUT]
        world.publish(kept)
        world.await_answers(ids_of(kept))
        world.publish(lost)
        world.await_answers(ids_of(lost))
        until(worker.is_durable, "all is saved and acknowledged")

        broker.kill()
        cut_off(broker, world.topics.events, KEPT)
        broker.start()
        until(lambda: bool(worker.said("log_remade")), "a worker that runs notices it and starts anew")
        second = instead(EVENTS[CUT:], "second")
        world.publish(second)
        assert_answered(world, [*kept, *second], kept, second)
        (detail,) = told(worker)
        assert f"state at offset {CUT}, as by an unclean election" in detail
        assert worker.metric('adatkg_incidents_total{graph="g",kind="records-lost"}') == 1
        until(worker.is_durable, "what is new is saved")
        worker.stop()

        broker.kill()
        cut_off(broker, world.topics.events, KEPT)
        broker.start()
        third = [*instead(EVENTS[KEPT:], "third"), *instead(EVENTS[CUT:], "more")]
        assert len(third) > len(second), "the log grows past all that was saved"
        world.publish(third)
        again = world.start_worker()
        assert_answered(world, [*kept, *third], third)
        (detail,) = told(again)
        assert f"now ends at {KEPT + len(third)}" in detail
        assert f"state at offset {KEPT + len(second)}" in detail
        again.stop()
        assert world.newest_snapshot("g").offset == KEPT + len(third)
    finally:
        world.close()

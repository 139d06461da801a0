"""A new bundle takes over while the worker runs: no query unanswered, no answer from a mixed state."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
import torch

from adatkg_core.constants import MAX_JUMP
from adatkg_core.datasets import synthesize
from adatkg_core.evaluation import LoggedEvent, answer_log
from adatkg_core.events import Source
from adatkg_core.messages import Announcement, Verdict
from adatkg_core.storage import Bundle, ModelStore, read_artifact, write_artifact
from streams.kafka import announce
from streams.log_evaluation import evaluate_log
from tests.support.running_system import (
    GRAPH,
    VERSION,
    Event,
    Worker,
    World,
    assert_same_answer,
    ids_of,
    stream_of,
    until,
)
from tests.support.small_graph import small_config, small_model

LONG = synthesize(120, 5, 40, 30, seed=5)
OTHER = Bundle(small_model(small_config(), seed=9), GRAPH.relations, (), "small-2")


def put(world: World, bundle: Bundle, **announcement: Any) -> None:
    """Put a bundle into the store as the present one and say so."""
    store = ModelStore(str(world.models))
    store.put("g", bundle, None)
    promote(world, bundle.version, **announcement)


def promote(world: World, version: str, **announcement: Any) -> None:
    """Make a bundle present and say so."""
    ModelStore(str(world.models)).make_present("g", version)
    said = {"forced": False, "verdict": None} | announcement
    announce(world.connection, world.topics, Announcement("g", version, "present", "for a test", **said))


def in_parts(events: list[Event], parts: int) -> Iterator[list[Event]]:
    """The events in a few parts of equal size."""
    size = -(-len(events) // parts)
    yield from (events[start : start + size] for start in range(0, len(events), size))


def assert_each_from_the_version_that_the_log_names(world: World) -> list[str]:
    """Compare every answer, also those made again, with what the log says offline; returns the versions in log order.

    No query may be without an answer.
    """
    events = [
        LoggedEvent(Source(record.partition, record.offset), record.value)
        for record in world.records(world.topics.events)
        if record.key == b"g"
    ]
    wanted = {answer.query["id"]: answer.raw for answer in answer_log(ModelStore(str(world.models)), "g", events)}
    for query, made in world.await_answers(wanted).items():
        for answer in made:
            assert_same_answer(answer, wanted[query])
    compared = evaluate_log(
        ModelStore(str(world.models)), "g", world.connection, world.topics, late="apply", max_jump=MAX_JUMP
    )
    assert compared["asked"] == compared["answered"] == len(wanted)
    assert compared["different"] == compared["missing"] == 0, compared["problems"]
    return [answer["model"] for answer in wanted.values()]


def one_more(name: str) -> list[Event]:
    """The last events of the stream under other ids."""
    return [("g", value.replace(b'"g-', f'"{name}-'.encode())) for _, value in stream_of(LONG, "g", slice(-1, None))]


def test_a_swap_under_load_leaves_no_query_unanswered_and_mixes_nothing(world: World) -> None:
    world.add_model("g")
    worker = world.start_worker(batch_events=64)
    events = list(stream_of(LONG, "g"))
    parts = list(in_parts(events, 12))
    world.publish(parts[0])
    until(worker.has_answered, "the worker answers")

    def keep_on() -> None:
        for part in parts[1:]:
            world.publish(part)

    load = threading.Thread(target=keep_on)
    load.start()
    put(world, OTHER)
    until(lambda: bool(worker.said("swapped")), "the new bundle answers")
    load.join()
    world.publish(one_more("after"))
    versions = assert_each_from_the_version_that_the_log_names(world)
    assert versions == sorted(versions) and set(versions) == {VERSION, OTHER.version}, "it went back and forth"
    assert all(len(made) == 1 for made in world.answers().values())
    assert worker.metric('adatkg_swaps_total{graph="g"}') == 1
    worker.stop()
    assert world.newest_snapshot("g", version=OTHER.version).offset == world.end_of("g") == len(events) + 5


def has_come_to(worker: Worker, moment: str) -> bool:
    """Whether the worker has said so, or is further already."""
    loaded = [line["version"] for line in worker.said("graph_loaded")]
    return bool(worker.said(moment) or worker.said("swapped")) or OTHER.version in loaded


@pytest.mark.timeout(600)
def test_a_worker_killed_in_the_middle_of_a_swap_leaves_no_two_answers_that_differ(world: World) -> None:
    world.add_model("g")
    worker = world.start_worker(batch_events=64)
    events = list(stream_of(LONG, "g"))
    parts = list(in_parts(events, 3))
    world.publish(parts[0])
    world.await_answers(ids_of(parts[0]))
    put(world, OTHER)
    for moment, part in zip(("swap_begins", "model_event_written"), parts[1:], strict=True):
        until(partial(has_come_to, worker, moment), f"the worker comes to {moment}")
        world.publish(part)
        worker.kill()
        worker = world.start_worker(batch_events=64)
    world.await_answers(ids_of(events))
    world.publish(one_more("after"))
    world.await_answers(ids_of(one_more("after")))
    versions = assert_each_from_the_version_that_the_log_names(world)
    assert versions == sorted(versions) and versions[0] == VERSION and versions[-1] == OTHER.version


def with_nan(place: Path) -> None:
    tensors, meta = read_artifact(place, "bundle")
    name = next(name for name, tensor in tensors.items() if tensor.is_floating_point())
    tensors[name] = torch.full_like(tensors[name], torch.nan)
    write_artifact(place, "bundle", tensors, meta, replace=True)


def truncated(place: Path) -> None:
    file = next(place.glob("tensors*"))
    file.write_bytes(file.read_bytes()[:-100])


def for_another_graph(place: Path) -> None:
    tensors, meta = read_artifact(place, "bundle")
    write_artifact(place, "bundle", tensors, meta | {"graph": "elsewhere"}, replace=True)


def with_other_relations(place: Path) -> None:
    tensors, meta = read_artifact(place, "bundle")
    relations = ["Something else", *meta["relations"][1:]]
    write_artifact(place, "bundle", tensors, meta | {"relations": relations}, replace=True)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "NaN": with_nan,
    "damaged": truncated,
    "elsewhere": for_another_graph,
    "lacks relation": with_other_relations,
}


def has_refused(worker: Worker, count: int) -> bool:
    return len(worker.said("model_refused")) == count


@pytest.mark.timeout(300)
def test_a_bundle_that_is_not_fit_is_refused_with_the_reason_and_changes_nothing(world: World) -> None:
    world.add_model("g")
    worker = world.start_worker()
    events = list(stream_of(GRAPH, "g"))
    world.publish(events)
    world.await_answers(ids_of(events))
    store = ModelStore(str(world.models))
    for number, (problem, damage) in enumerate(DAMAGE.items(), start=1):
        version = f"unfit-{number}"
        store.put("g", replace(OTHER, version=version), None)
        damage(world.models / "g" / "bundles" / version)
        promote(world, version)
        until(partial(has_refused, worker, number), f"{problem} is refused")
        assert problem in worker.said("model_refused")[-1]["problem"]
    put(world, replace(OTHER, version="worse"), verdict=Verdict("all", 0.0, 0.1, 0.2))
    until(partial(has_refused, worker, len(DAMAGE) + 1), "the worse one is refused")
    assert "0.1000 against 0.2000" in worker.said("model_refused")[-1]["problem"]
    assert worker.metric('adatkg_model_refusals_total{graph="g"}') == len(DAMAGE) + 1
    more = [("g", value.replace(b'"g-', b'"more-')) for _, value in stream_of(GRAPH, "g", slice(-1, None))]
    world.publish(more)
    assert {made[0]["model"] for made in world.await_answers(ids_of(more)).values()} == {VERSION}
    # A start with an unfit bundle as the present one falls back to the line of those before it.
    worker.kill()
    world.start_worker()
    last = [("g", value.replace(b'"g-', b'"last-')) for _, value in stream_of(GRAPH, "g", slice(-1, None))]
    world.publish(last)
    assert world.await_answers(ids_of(last))[ids_of(last)[0]][0]["model"] in (VERSION, "worse")


def test_an_unknown_relation_waits_as_a_dead_letter_until_a_bundle_knows_it(world: World) -> None:
    known, unknown = GRAPH.relations[:4], GRAPH.relations[4]
    young = Bundle(small_model(small_config(), relations=4), known, (), VERSION)
    store = ModelStore(str(world.models))
    store.put("g", young, None)
    store.make_present("g", VERSION)
    worker = world.start_worker()
    events = list(stream_of(GRAPH, "g"))
    world.publish(events)
    messages = [orjson.loads(value) for _, value in events]
    refused = [message for message in messages if message["r"] == unknown]
    letters = world.await_dead_letters(len(refused))
    assert {letter.header("reason") for letter in letters} == {"unknown-relation"}
    put(world, OTHER)
    until(lambda: bool(worker.said("swapped")), "the new bundle answers")
    world.command("deadletters", "retry", "--reason", "unknown-relation")
    world.await_answers([message["id"] for message in refused if message["kind"] == "query"])
    facts = sum(message["kind"] == "fact" for message in refused)
    until(lambda: worker.metric('adatkg_events_total{graph="g",kind="known"}') == facts, "no fact counts twice")

"""What comes of an announcement, over a log that needs no broker: who answers afterwards, and from which events."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from adatkg_core.errors import AdatkgError
from adatkg_core.events import Source
from adatkg_core.messages import Verdict
from adatkg_core.storage import Saved
from adatkg_core.text import load_encoder
from streams.kafka import partition_of
from streams.worker import Arrival, LiveGraph, Replica, model_swap
from streams.worker.incoming_graph import SLICE
from tests.support.fake_worker import GRAPH, HERE, PARTITIONS, settings_with_model, whole
from tests.support.swap_scene import BATCH, LOG_ID, NEW, KeptLog, Scene, announced, use_log

pytestmark = pytest.mark.slow  # seconds of models in all


def ahead_by_all(scene: Scene) -> Saved:
    """The state of the new version with all that the log holds."""
    graph = LiveGraph("g", NEW, load_encoder("hash:24"), scene.settings, Replica())
    records = scene.log.records
    graph.follow([Arrival(Source(HERE, one.offset), 0.0, one.key, one.value) for one in records])
    return whole(graph.capture(len(records), LOG_ID))


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    log = KeptLog()
    use_log(monkeypatch, log)
    made = Scene(settings_with_model(tmp_path), log)
    yield made
    made.close()


def test_the_new_version_answers_behind_its_event_from_all_that_the_old_one_has_seen(scene: Scene) -> None:
    scene.log.facts(100)
    scene.deliver()
    scene.promote(NEW)
    event = len(scene.log.records) - 1
    assert orjson.loads(scene.log.records[event].value or b"") == {
        "v": 1,
        "kind": "model",
        "version": "v2",
        "after": "v1",
    }
    assert scene.version() == "v1", "the event has not come yet"
    scene.log.query()
    scene.settle()
    (answer,) = scene.answers().values()
    assert (answer["model"], answer["interactions"]) == ("v2", 100)
    assert scene.metric("adatkg_swaps_total") == 1 and scene.metric("adatkg_model_refusals_total") == 0


def test_no_step_of_a_swap_takes_more_than_two_batches(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    follow = LiveGraph.follow

    def measured(self: LiveGraph, arrivals: Sequence[Arrival]) -> None:
        sizes.append(len(arrivals))
        follow(self, arrivals)

    monkeypatch.setattr(LiveGraph, "follow", measured)
    scene.log.facts(100)
    scene.deliver()
    scene.promote(NEW)
    assert sum(sizes) == 100 and max(sizes) == SLICE * BATCH
    steps = scene.parts.metrics.registry.get_sample_value("adatkg_swap_step_seconds_count") or 0.0
    assert steps >= 100 / max(sizes)


def test_what_stands_before_the_event_is_answered_by_the_version_before(scene: Scene) -> None:
    scene.log.facts(100)
    scene.log.mixed(300)
    scene.deliver(100)
    scene.log.meanwhile = lambda: scene.on_device(lambda: scene.deliver(BATCH))
    scene.promote(NEW)
    event = len(scene.log.records) - 1
    assert scene.delivered < event == 400, "a saturated worker says so before its backlog ends"
    scene.log.meanwhile = lambda: None
    scene.log.mixed(10)
    scene.settle()
    versions = scene.versions()
    assert len(versions) == 155
    assert all(version == ("v1" if offset < event else "v2") for offset, version in versions.items())
    assert scene.answers()[max(versions)]["interactions"] == 255


def test_a_state_that_stands_ahead_lets_no_query_in_between_go_unanswered(scene: Scene) -> None:
    scene.log.facts(9)
    scene.log.mixed(182)
    scene.deliver(9)
    scene.promote(NEW, ahead_by_all(scene))
    scene.log.query()
    scene.settle()
    assert list(scene.versions().values()) == ["v1"] * 91 + ["v2"]


def test_an_event_that_stands_before_a_state_is_followed_from_the_log(scene: Scene) -> None:
    scene.log.facts(20)
    event = scene.log.append(b'{"v":1,"kind":"model","version":"v2"}')
    scene.log.mixed(40)
    scene.store.put("g", NEW, ahead_by_all(scene))
    scene.settle()
    assert set(scene.versions().values()) == {"v2"} and len(scene.versions()) == 20
    assert scene.answers()[event + 2]["interactions"] == 21


def test_a_state_of_another_log_is_refused_with_the_reason(scene: Scene) -> None:
    scene.log.facts(20)
    scene.deliver()
    hosted = scene.parts.host.find("g")
    assert hosted is not None
    with capture_logs() as said:
        scene.promote(NEW, replace(whole(hosted.graph.capture(10, "another-0")), version="v2"))
        scene.promote(replace(NEW, version="v3"), replace(whole(hosted.graph.capture(99, LOG_ID)), version="v3"))
    refused = [line["problem"] for line in said if line["event"] == "model_refused"]
    assert "belongs to another log, another-0" in refused[0] and "but the log ends at 20" in refused[1]
    assert len(scene.log.records) == 20 and scene.version() == "v1"


def test_a_version_is_gone_back_to_by_the_same_event(scene: Scene) -> None:
    scene.log.mixed(20)
    scene.deliver()
    scene.promote(NEW)
    scene.log.mixed(20)
    scene.settle()
    scene.store.roll_back("g")
    scene.hear(announced("v1"))
    scene.log.mixed(20)
    scene.settle()
    assert list(scene.versions().values()) == ["v1"] * 10 + ["v2"] * 10 + ["v1"] * 10
    assert scene.answers()[61]["interactions"] == 30


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"v":1,"kind":"model","version":"nowhere"}', "unknown-model"),
        (b'{"v":1,"kind":"model","version":"../../g/bundles/v1"}', "unknown-model"),
        (b'{"v":1,"kind":"model","version":"lacking"}', "unfit-model"),
        (b'{"v":1,"kind":"model"}', "missing-field"),
    ],
)
def test_an_event_that_names_nothing_fit_is_a_dead_letter_and_changes_nothing(
    scene: Scene, value: bytes, reason: str
) -> None:
    lacking = replace(NEW, version="lacking", relations=("Something else", *GRAPH.relations[1:]))
    scene.store.put("g", lacking, None)
    scene.log.mixed(10)
    event = scene.log.append(value)
    scene.log.mixed(10)
    scene.settle()
    assert scene.letters() == [(str(event), reason)]
    assert list(scene.versions().values()) == ["v1"] * 10


def test_an_event_that_follows_another_version_than_the_present_one_is_a_late_repeat(scene: Scene) -> None:
    for version in ("v2", "v3"):
        scene.store.put("g", replace(NEW, version=version), None)
    for version, after in (("v2", "v1"), ("v3", "v2"), ("v2", "v1"), ("v3", "v3")):
        scene.log.append(orjson.dumps({"v": 1, "kind": "model", "version": version, "after": after}))
        scene.log.query()
    scene.store.make_present("g", "v3")
    scene.settle()
    assert list(scene.versions().values()) == ["v2", "v3", "v3", "v3"] and scene.letters() == []


def test_what_a_graph_has_missed_at_an_event_is_answered_and_others_do_not_wait(scene: Scene) -> None:
    other = next(name for name in map(str, range(99)) if name != "g" and partition_of(name, PARTITIONS) == HERE)
    scene.store.put(other, replace(NEW, version="other-1"), None)
    scene.store.make_present(other, "other-1")
    scene.store.put("g", NEW, None)
    scene.log.mixed(20)
    event = scene.log.append(b'{"v":1,"kind":"model","version":"v2"}')
    for _ in range(50):
        scene.log.query()
        scene.log.query(other.encode())
    scene.deliver()
    models = [answer["model"] for answer in scene.answers().values()]
    assert models.count("other-1") == 50 and models.count("v1") == 10 and models.count("v2") == 0
    assert scene.save() == event, "what it has not answered must come again after a crash"
    scene.settle()
    assert list(scene.versions().values()).count("v2") == 50
    assert scene.save() == len(scene.log.records)


def test_a_bundle_that_lacks_a_relation_is_refused_and_the_present_one_goes_on(scene: Scene) -> None:
    scene.log.facts(20)
    scene.deliver()
    with capture_logs() as said:
        scene.promote(replace(NEW, relations=("Something else", *GRAPH.relations[1:])))
    (refused,) = (line for line in said if line["event"] == "model_refused")
    assert f"lacks relation '{GRAPH.relations[0]}'" in refused["problem"] and refused["present"] == "v1"
    assert scene.metric("adatkg_model_refusals_total") == 1 and len(scene.log.records) == 20
    scene.log.query()
    scene.settle()
    assert list(scene.versions().values()) == ["v1"]


def test_a_bundle_that_was_judged_worse_is_refused(scene: Scene) -> None:
    scene.log.facts(20)
    scene.deliver()
    scene.put(NEW)
    scene.hear(announced("v2", verdict=Verdict("all", 0.0, 0.1, 0.2)))
    assert scene.metric("adatkg_model_refusals_total") == 1 and len(scene.log.records) == 20


@pytest.mark.parametrize("what", ["the log cannot be read", "the event cannot be written"])
def test_brokers_that_are_away_delay_a_swap_and_no_more(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    scene.log.facts(20)
    scene.deliver()
    failures = iter(range(2))

    def away() -> None:
        if next(failures, None) is not None:
            raise AdatkgError("the brokers are away")

    def append(connection: object, topics: object, graph: str, value: bytes) -> int:
        away()
        return scene.log.append(value)

    if what == "the log cannot be read":
        scene.log.meanwhile = away
    else:
        monkeypatch.setattr(model_swap, "append_event", append)
    with capture_logs() as said:
        scene.promote(NEW)
    assert [line["problem"] for line in said if line["event"] == "swap_failed"] == ["the brokers are away"] * 2
    assert scene.metric("adatkg_model_refusals_total") == 0
    scene.settle()
    assert scene.version() == "v2" and len(scene.log.records) == 21


def test_a_graph_that_leaves_during_a_swap_ends_it_without_a_word(scene: Scene) -> None:
    scene.log.facts(100)
    scene.deliver()
    elsewhere = [(HERE + 1) % PARTITIONS]
    scene.log.meanwhile = lambda: scene.on_device(lambda: scene.parts.host.keep_only(elsewhere))
    with capture_logs() as said:
        scene.promote(NEW)
    assert scene.version() is None and len(scene.log.records) == 100
    assert [line["event"] for line in said] == ["swap_begins"]


def test_a_graph_without_a_model_gets_its_first_one_at_its_next_event(scene: Scene) -> None:
    (Path(scene.store.url) / "g" / "present.json").unlink()
    scene.log.facts(2)
    scene.deliver(1)
    assert scene.version() is None
    scene.promote(NEW)
    assert scene.version() is None and scene.log.reads == 0, "nothing has come for it yet"
    scene.deliver()
    assert scene.version() == "v2"


@pytest.mark.parametrize(
    "said", ["of an earlier version", "of the present version", "of a candidate", "of another graph", "of nobody"]
)
def test_an_announcement_that_does_not_matter_changes_nothing(scene: Scene, said: str) -> None:
    scene.log.facts(1)
    scene.deliver()
    scene.store.put("g", NEW, None)
    what: dict[str, bytes] = {
        "of an earlier version": announced("v0"),  # since overtaken: v1 is present
        "of the present version": announced("v1"),
        "of a candidate": announced("v2", status="candidate"),
        "of another graph": announced("v2", graph="elsewhere"),
        "of nobody": b"rubbish",
    }
    with capture_logs() as lines:
        scene.hear(what[said])
    assert [line["event"] for line in lines] == (["announcement_unusable"] if said == "of nobody" else [])
    assert scene.version() == "v1" and scene.log.reads == 0 and len(scene.log.records) == 1
    assert scene.metric("adatkg_swaps_total") == scene.metric("adatkg_model_refusals_total") == 0


class Announcing:
    """A consumer of announcements to which the brokers have one to give as soon as it is let go."""

    def __init__(self, announcement: bytes, arrived: asyncio.Event) -> None:
        self._value, self._arrived, self.stopped = announcement, arrived, False

    async def start(self) -> None: ...

    def assign(self, partitions: object) -> None: ...

    async def stop(self) -> None:
        self.stopped = True

    def __aiter__(self) -> Announcing:
        return self

    async def __anext__(self) -> Any:
        await self._arrived.wait()
        self._arrived.clear()
        return SimpleNamespace(value=self._value)


def test_an_announcement_that_comes_while_the_worker_ends_is_no_crash(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        arrived = asyncio.Event()
        consumer = Announcing(announced("v2"), arrived)
        monkeypatch.setattr(model_swap, "AIOKafkaConsumer", lambda **_: consumer)
        running = asyncio.create_task(scene.swap.run())
        await asyncio.sleep(0.01)
        await scene.swap.stop()
        scene.parts.device.close()
        arrived.set()
        await asyncio.wait([running], timeout=5)
        assert running.done() and (running.cancelled() or running.exception() is None)
        assert consumer.stopped

    asyncio.run(scenario())


def test_a_swap_under_way_is_given_up_when_the_worker_ends(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.log.facts(100)
    scene.deliver()
    scene.put(NEW)

    async def scenario() -> None:
        arrived = asyncio.Event()
        arrived.set()
        monkeypatch.setattr(model_swap, "AIOKafkaConsumer", lambda **_: Announcing(announced("v2"), arrived))
        reading, go_on = threading.Event(), threading.Event()

        def hold() -> None:
            reading.set()
            go_on.wait(30)

        scene.log.meanwhile = hold
        running = asyncio.create_task(scene.swap.run())
        await asyncio.to_thread(reading.wait, 30)
        stopping = asyncio.create_task(scene.swap.stop())
        await asyncio.sleep(0.01)
        go_on.set()
        await stopping
        assert running.cancelled()

    asyncio.run(scenario())
    assert scene.version() == "v1" and len(scene.log.records) == 100


def test_what_was_announced_in_a_topic_that_was_made_anew_unheard_is_found_in_the_store(scene: Scene) -> None:
    scene.log.facts(10)
    scene.deliver()
    scene.put(NEW)

    async def scenario() -> None:
        await asyncio.gather(*await scene.swap.hear_anew())

    asyncio.run(scenario())
    scene.settle()
    assert scene.version() == "v2"

"""Which version answers is a function of the log: crashes, replicas and re-runs find the same one for every query."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adatkg_core.errors import InputError
from adatkg_core.evaluation import LoggedEvent, answer_log
from adatkg_core.events import Source
from adatkg_core.storage import Bundle, ModelStore
from streams.worker import IncidentKind, graph_host
from tests.support.fake_worker import GRAPH, HERE, settings_with_model, whole
from tests.support.running_system import assert_same_answer
from tests.support.small_graph import small_config, small_model
from tests.support.swap_scene import NEW, KeptLog, Scene, announced, settings_of, use_log

pytestmark = pytest.mark.slow  # seconds of models in all

MODEL = '{{"v":1,"kind":"model","version":"{}"}}'
Start = Callable[..., Scene]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> KeptLog:
    made = KeptLog()
    use_log(monkeypatch, made)
    return made


@pytest.fixture
def start(tmp_path: Path, log: KeptLog) -> Iterator[Start]:
    """Starts workers over one log and one store, whose first version is v1 and which has v2."""
    settings_with_model(tmp_path)
    ModelStore(str(tmp_path / "models")).put("g", NEW, None)
    scenes: list[Scene] = []

    def begin(at: int = 0, **options: Any) -> Scene:
        scenes.append(Scene(settings_of(tmp_path, **options), log, at))
        return scenes[-1]

    yield begin
    for scene in scenes:
        scene.close()


def promote(scene: Scene, version: str = "v2") -> None:
    scene.store.make_present("g", version)
    scene.hear(announced(version))


def offline(scene: Scene) -> dict[int, dict[str, Any]]:
    """What the log says by itself, by the offset of the query."""
    events = [LoggedEvent(Source(HERE, one.offset), one.value) for one in scene.log.records]
    return {answer.source.offset: answer.raw for answer in answer_log(scene.store, "g", events)}


def assert_same_answers(found: dict[int, dict[str, Any]], wanted: dict[int, dict[str, Any]]) -> None:
    assert found.keys() == wanted.keys()
    for offset, answer in found.items():
        assert_same_answer(answer, wanted[offset])


@pytest.mark.parametrize("crash_at", ["before the event", "at the event", "behind the event"])
def test_after_a_crash_across_a_promotion_the_same_queries_get_the_same_answers(
    start: Start, log: KeptLog, crash_at: str
) -> None:
    first = start()
    log.mixed(40)
    first.settle()
    committed = first.save()
    log.mixed(20)
    first.deliver()
    promote(first)
    event = len(log.records) - 1
    log.mixed(20)
    if crash_at == "at the event":
        first.deliver(1)
    elif crash_at == "behind the event":
        first.settle()
    second = start(committed)
    second.settle()
    both = first.answers().keys() & second.answers().keys()
    assert_same_answers(
        {offset: second.answers()[offset] for offset in both}, {offset: first.answers()[offset] for offset in both}
    )
    assert len(both) == (20 if crash_at == "behind the event" else 10)
    together = first.answers() | second.answers()
    assert_same_answers(together, offline(second))
    assert {answer["model"] for offset, answer in together.items() if offset > event} == {"v2"}
    assert {answer["model"] for offset, answer in together.items() if offset < event} == {"v1"}


def test_a_snapshot_from_behind_the_event_is_loaded_with_the_version_that_made_it(start: Start, log: KeptLog) -> None:
    first = start()
    log.mixed(40)
    first.settle()
    promote(first)
    log.mixed(10)
    first.settle()
    committed = first.save()
    first.store.make_present("g", "v1")  # whatever the store says is present now
    log.query()
    second = start(committed)
    second.deliver()
    assert second.versions() == {committed: "v2"}


def test_replicas_switch_at_the_same_event_and_share_the_answers_of_one(start: Start, log: KeptLog) -> None:
    replicas = [start(replica=number, replicas=2) for number in (1, 2)]
    log.mixed(40)
    for replica in replicas:
        replica.settle()
    promote(replicas[0])  # the other one hears of it too late
    log.mixed(40)
    replicas[0].deliver()
    replicas[1].deliver()
    replicas[1].hear(announced("v2"))
    for replica in (*replicas, *replicas):
        replica.settle()
    answers = [replica.answers() for replica in replicas]
    assert all(answers) and not answers[0].keys() & answers[1].keys()
    assert_same_answers(answers[0] | answers[1], offline(replicas[0]))
    assert {answer["model"] for answer in answers[1].values()} == {"v1", "v2"}


def test_a_replay_that_was_published_before_any_worker_belongs_to_the_first_version(start: Start, log: KeptLog) -> None:
    log.mixed(40)
    scene = start()
    scene.store.make_present("g", "v2")
    scene.settle()
    log.mixed(10)
    scene.settle()
    assert list(scene.versions().values()) == ["v1"] * 20 + ["v2"] * 5, "the store's wish was carried out behind it"
    assert_same_answers(scene.answers(), offline(scene))


def test_a_worker_without_snapshots_walks_through_all_versions_of_the_log(start: Start, log: KeptLog) -> None:
    for version in ("v2", "v1", "nowhere", "v2"):
        log.mixed(20)
        log.append(MODEL.format(version).encode())
    log.mixed(20)
    answering, late = start(), start(len(log.records) - 10)
    answering.store.make_present("g", "v2")
    for scene in (answering, late):
        scene.settle()
    assert list(answering.versions().values()) == [*["v1"] * 10, *["v2"] * 10, *["v1"] * 20, *["v2"] * 10]
    assert_same_answers(answering.answers(), offline(answering))
    assert len(late.versions()) == 5, "what stands before was answered by others"
    assert_same_answers(late.answers(), {offset: answering.answers()[offset] for offset in late.answers()})
    assert answering.letters() == [("62", "unknown-model")] and late.letters() == []


def test_a_graph_far_behind_that_comes_to_a_model_event_answers_what_waited_with_that_version(
    start: Start, log: KeptLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_host, "NEAR", 4)
    log.mixed(20)
    log.append(MODEL.format("v2").encode())
    log.mixed(20)
    scene = start(31)
    scene.deliver()
    waiting = scene.parts.host.waiting.next()
    assert waiting is not None and scene.parts.host.capture().waiting == {HERE: 31}
    asyncio.run(scene.parts.recovery.bring_back(waiting))
    scene.attend()
    assert set(scene.versions().values()) == {"v2"} and scene.parts.host.capture().waiting == {}
    assert_same_answers(scene.answers(), {offset: one for offset, one in offline(scene).items() if offset >= 31})


def test_a_version_that_cannot_be_read_is_an_incident_of_its_graph_until_it_is_restored(
    start: Start, log: KeptLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = start()
    place = Path(scene.store.url) / "g" / "bundles" / "v2" / "meta.json"
    sound, told = place.read_bytes(), list[Any]()
    place.write_bytes(sound.replace(b"version", b"Version", 1))
    report = scene.parts.incidents.report

    def told_and_restored(*incident: Any) -> None:
        report(*incident)
        told.append([(one.graph, one.kind) for one in scene.parts.incidents.open()])
        place.write_bytes(sound)

    monkeypatch.setattr(scene.parts.incidents, "report", told_and_restored)
    log.mixed(10)
    log.append(MODEL.format("v2").encode())
    log.mixed(10)
    scene.deliver()
    capture = scene.parts.host.capture()
    assert (capture.positions, capture.waiting) == ({HERE: 21}, {HERE: 10}), "others go on, and it comes again"
    scene.attend()
    assert told == [[("g", IncidentKind.BAD_ARTIFACT)]] and scene.parts.incidents.open() == []
    assert list(scene.versions().values()) == ["v1"] * 5 + ["v2"] * 5
    assert_same_answers(scene.answers(), offline(scene))


def test_a_log_without_model_events_and_a_store_that_names_no_first_version_work_as_before(
    start: Start, log: KeptLog
) -> None:
    scene = start()
    place = Path(scene.store.url) / "g" / "present.json"
    place.write_text(json.dumps({"version": "v2", "before": ["v1"]}))
    log.mixed(20)
    scene.settle()
    assert set(scene.versions().values()) == {"v2"} and len(log.records) == 20
    promote(scene, "v1")
    assert scene.store.first("g") == "v2", "what was answered so far stays with the version that answered it"
    assert_same_answers(scene.answers(), {k: v for k, v in offline(scene).items() if k < 20})


def test_a_version_is_answered_from_its_files_and_what_they_hold_is_known(start: Start, log: KeptLog) -> None:
    scene = start()
    learned = start().parts.loader.graph("g", replace(NEW, graph="g"), None, "cpu")
    log.facts(10)
    from_files = replace(whole(learned.capture(0, "")), known_through=4, version="v3")
    scene.store.put("g", replace(NEW, version="v3"), from_files)
    scene.store.make_present("g", "v3")
    log.append(MODEL.format("v3").encode())
    log.query()
    scene.settle()
    (answer,) = scene.answers().values()
    assert (answer["model"], answer["interactions"]) == ("v3", 5)
    assert_same_answers(scene.answers(), offline(scene))


def test_a_log_of_a_graph_without_a_model_has_no_answers(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="graph g has no model; train one"):
        next(answer_log(ModelStore(str(tmp_path)), "g", []))


def test_a_version_that_a_log_may_name_is_never_pruned(tmp_path: Path) -> None:
    store = ModelStore(str(tmp_path))
    model = small_model(small_config())
    for number in range(1, 8):
        store.put("g", Bundle(model, GRAPH.relations, (), f"v{number}"), None)
        store.add_note("g", f"v{number}", created=f"2024-01-0{number}")
    for number in (1, 3, 5):
        store.make_present("g", f"v{number}")
    store.roll_back("g")
    assert store.prune("g", keep=1) == ["v2", "v4", "v6"]
    assert store.versions("g") == ["v1", "v3", "v5", "v7"] and store.first("g") == "v1"

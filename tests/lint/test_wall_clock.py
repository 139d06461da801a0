"""Nothing waits by the clock on the wall, which may be set back or forward; what reads it says why it may."""

from __future__ import annotations

import ast
import os
import time
from pathlib import Path

import pytest

from adatkg_core.storage import Bundle, ModelStore
from adatkg_core.storage.artifact import sweep_partials
from tests.support.small_graph import shared_model, small_graph

ROOT = Path(__file__).parents[2]
PACKAGES = ("adatkg_core", "streams", "trainer", "replay", "adatkg")
READERS = {("time", "time"), ("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")}
# Where the wall clock may be read, and what for. Deadlines, pauses and ages are by `time.monotonic` or the event loop.
ALLOWED = {
    "adatkg_core/storage/model_store.py": "a note says when a bundle was made",
    "adatkg_core/storage/artifact.py": "the age of what a dead writer left, against the file's own time",
    "streams/kafka/producer.py": "Kafka wants the time of a record",
    "streams/worker/incident.py": "since when something is wrong, as it is shown",
    "streams/dashboard/feed.py": "samples are shown by the time of day",
    "streams/dashboard/live_api.py": "when the worker was started, as it is shown",
    "adatkg/demo/conductor.py": "which lines of a log are of this run",
}


def wall_clock_readers() -> set[str]:
    found = set()
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
                base = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
                if (base, node.attr) in READERS:
                    found.add(str(path.relative_to(ROOT)))
    return found


def test_only_these_files_read_the_clock_on_the_wall() -> None:
    assert wall_clock_readers() == set(ALLOWED)


def test_a_clock_set_back_an_hour_removes_no_bundle_that_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ModelStore(str(tmp_path))
    bundles = [Bundle(shared_model("default"), small_graph().relations, (), f"v{i}") for i in range(3)]
    hours = iter(("2026-01-01T12:00:00", "2026-01-01T13:00:00", "2026-01-01T11:00:00"))
    for bundle in bundles:
        store.put("g", bundle, None)
        store.add_note("g", bundle.version, created=next(hours))  # the last was made after the clock was set back
        if bundle.version != "v0":
            store.make_present("g", bundle.version)
    assert store.prune("g", keep=1) == ["v0"]
    assert store.present("g") == "v2" and store.roll_back("g") == "v1"


def test_a_clock_set_back_an_hour_leaves_what_is_being_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    living, dead = tmp_path / ".a.partial", tmp_path / ".b.partial"
    for folder in (living, dead):
        folder.mkdir()
    now = time.time()
    os.utime(dead, (now - 7_200, now - 7_200))
    monkeypatch.setattr(time, "time", lambda: now - 3_600)
    sweep_partials(str(tmp_path))
    assert living.exists() and not dead.exists()

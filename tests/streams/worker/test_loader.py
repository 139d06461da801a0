"""What is kept of snapshots, and from what a graph begins."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from adatkg_core.errors import AdatkgError
from adatkg_core.state import state_capture
from streams.settings import StreamSettings
from streams.worker import LiveGraph, Loader, Replica, live_graph
from streams.worker.state_check import StateCheck
from tests.support.fake_worker import HERE, fact, host_of, save_all, settings_with_model
from tests.support.small_graph import assert_same_snapshot

LOG = f"first-{HERE}"


def save_at(loader: Loader, settings: StreamSettings, *ends: int) -> None:
    """One snapshot after another, each with the log up to such an offset."""
    host, begin = host_of(settings), 0
    for end in ends:
        host.process([fact(offset) for offset in range(begin, end)])
        save_all(host, loader)
        begin = end


def kept(settings: StreamSettings) -> list[int]:
    """The offsets of the snapshots that are there."""
    return sorted(int(path.name.partition("@")[0]) for path in (Path(settings.snapshots) / "g" / LOG).iterdir())


def begin(loader: Loader, end: int) -> tuple[LiveGraph, int]:
    """The graph as it is loaded when its log reaches so far."""
    begun = loader.begin("g", StateCheck(LOG, 0, end, lambda last: True), end)
    assert begun is not None
    return begun


@pytest.mark.parametrize("keep", [2, 3])
def test_old_snapshots_are_removed_and_the_newest_are_kept(tmp_path: Path, keep: int) -> None:
    settings = settings_with_model(tmp_path, keep_snapshots=keep)
    loader = Loader(settings, Replica())
    save_at(loader, settings, 3, 9, 11, 20, 100)
    assert kept(settings)[-keep:] == [9, 11, 20, 100][-keep:]
    assert len(kept(settings)) <= keep + 2, "besides these only whole ones, upon which others build"
    graph, offset = begin(loader, 1_000)
    assert offset == 100 and graph.engine.watermark == 99


def kinds(settings: StreamSettings) -> list[str]:
    """Of the snapshots that are there, the newest last."""
    places = sorted((Path(settings.snapshots) / "g" / LOG).iterdir())
    return [json.loads((place / "manifest.json").read_text())["kind"] for place in places]


def test_between_whole_snapshots_only_what_changed_is_written_and_a_start_finds_all_of_it(tmp_path: Path) -> None:
    settings = settings_with_model(tmp_path, keep_snapshots=9)
    loader, host = Loader(settings, Replica()), host_of(settings)
    host.process([fact(offset) for offset in range(60)])
    save_all(host, loader)
    for offset in (60, 61):
        host.process([fact(offset)])
        save_all(host, loader)
    assert kinds(settings) == ["snapshot", "increment", "increment"]
    hosted = host.find("g")
    graph, offset = begin(loader, 1_000)
    assert hosted is not None and offset == 62
    assert_same_snapshot(graph.engine.snapshot(), hosted.graph.engine.snapshot())


def test_large_copies_are_made_beside_the_store_and_a_start_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_capture, "LARGE", 0)
    settings = settings_with_model(tmp_path)
    loader, host = Loader(settings, Replica()), host_of(settings)
    for begins, ends in ((0, 60), (60, 64)):
        host.process([fact(offset) for offset in range(begins, ends)])
        save_all(host, loader)
    (hosted,) = host.hosted()
    assert kinds(settings) == ["snapshot", "increment"]
    assert_same_snapshot(begin(loader, 64)[0].engine.snapshot(), hosted.graph.engine.snapshot())
    assert [path.name for path in Path(settings.snapshots).iterdir()] == ["g"]


def test_a_copy_without_room_is_a_snapshot_that_cannot_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_capture, "LARGE", 0)
    settings = settings_with_model(tmp_path)
    loader, host = Loader(settings, Replica()), host_of(settings)
    host.process([fact(offset) for offset in range(9)])
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=0))
        with pytest.raises(AdatkgError, match="no room for a copy"):
            save_all(host, loader)
    assert not loader.has_snapshot("g", LOG)
    host.process([fact(9)])
    save_all(host, loader)
    assert kept(settings) == [10]


def test_after_a_snapshot_that_was_not_written_and_after_one_that_outgrew_the_whole_one_the_next_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_with_model(tmp_path, keep_snapshots=9)
    loader, host = Loader(settings, Replica()), host_of(settings)
    for offset in range(3):
        host.process([fact(offset)])
        if offset == 1:
            host.capture()  # and then something fails
        save_all(host, loader)
    assert kinds(settings) == ["snapshot", "snapshot", "increment"]
    monkeypatch.setattr(live_graph, "OUTGROWN", 0.0)
    for offset in range(3, 5):
        host.process([fact(offset)])
        save_all(host, loader)
    assert kinds(settings)[3:] == ["increment", "snapshot"]


def test_a_snapshot_beyond_the_end_of_the_log_is_of_another_log(tmp_path: Path) -> None:
    settings = settings_with_model(tmp_path)
    loader = Loader(settings, Replica())
    save_at(loader, settings, 5, 20)
    assert begin(loader, 10)[1] == 5


def test_replicas_keep_their_snapshots_apart(tmp_path: Path) -> None:
    settings = settings_with_model(tmp_path)
    first, second = (Loader(settings, Replica(replica, 2)) for replica in (1, 2))
    save_at(first, settings, 5)
    assert begin(first, 10)[1] == 5
    assert begin(second, 10)[1] == 0

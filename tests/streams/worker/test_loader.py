"""What is kept of snapshots, and from what a graph begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.settings import StreamSettings
from streams.worker import LiveGraph, Loader, Replica
from streams.worker.state_check import StateCheck
from tests.support.fake_worker import HERE, fact, host_of, settings_with_model

LOG = f"first-{HERE}"


def save_at(loader: Loader, settings: StreamSettings, *ends: int) -> None:
    """One snapshot after another, each with the log up to such an offset."""
    host, begin = host_of(settings), 0
    for end in ends:
        host.process([fact(offset) for offset in range(begin, end)])
        capture, begin = host.capture(), end
        for state in capture.states:
            loader.save(state)
        host.saved(capture)


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
    assert kept(settings) == [9, 11, 20, 100][-keep:]
    graph, offset = begin(loader, 1_000)
    assert offset == 100 and graph.engine.watermark == 99


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

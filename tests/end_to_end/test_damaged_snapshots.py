"""A damaged snapshot costs time, never an answer: the one before is used, and the log fills the gap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.running_system import GRAPH, World, assert_same_answer, ids_of, stream_of
from tests.support.small_graph import assert_same_snapshot

HALF = len(GRAPH.facts) // 2


def truncate(snapshot: Path) -> None:
    file = snapshot / "tensors.safetensors"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def corrupt(snapshot: Path) -> None:
    file = snapshot / "tensors.safetensors"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(bytes(data))


def cut_manifest(snapshot: Path) -> None:
    (snapshot / "manifest.json").write_bytes(b'{"format"')


def saved(world: World) -> list[Path]:
    """The snapshots of the graph, the newest last."""
    (log_folder,) = (world.saved / "g").iterdir()
    return sorted(log_folder.iterdir())


@pytest.mark.parametrize(("which", "damage"), [("newest", truncate), ("newest", cut_manifest), ("all", corrupt)])
def test_after_damage_the_answers_and_the_state_are_the_same(
    world: World, which: str, damage: Callable[[Path], None]
) -> None:
    world.add_model("g", "twin")
    worker = world.start_worker(snapshot_events=100, batch_events=50)
    first = list(stream_of(GRAPH, "g", slice(0, HALF)))
    world.publish(first)
    world.await_answers(ids_of(first))
    worker.stop()
    snapshots = saved(world)
    assert len(snapshots) >= 2
    offsets = [int(path.name.partition("@")[0]) for path in snapshots]
    for path in snapshots if which == "all" else snapshots[-1:]:
        damage(path)

    again = world.start_worker()
    second = [(g, value.replace(b'"g-', b'"second-')) for g, value in stream_of(GRAPH, "g", slice(HALF, None))]
    world.publish(second)
    world.await_answers(ids_of(second))
    twin = [("twin", value) for _, value in (*first, *second)]
    twin = [(g, value.replace(b'"id":"', b'"id":"twin-')) for g, value in twin]
    world.publish(twin)
    answers = world.await_answers(ids_of(twin))
    again.stop()

    start = 0 if which == "all" else offsets[-2]
    assert again.said("graph_loaded")[0]["snapshot"] == start
    assert len(again.said("snapshot_unusable")) == (len(snapshots) if which == "all" else 1)
    assert [line["start"] for line in again.said("caught_up")][:1] == [start]
    for query in ids_of(second):
        elsewhere = {key: answers[query][0][key] for key in ("id", "graph", "source", "query")}
        assert_same_answer(answers[query][0], answers[f"twin-{query}"][0] | elsewhere)
    mine, theirs = world.newest_snapshot("g"), world.newest_snapshot("twin")
    assert_same_snapshot(mine.snapshot, theirs.snapshot)

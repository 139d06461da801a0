"""A model store and a snapshot store do the same in a folder and at any URL that fsspec knows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest

from adatkg_core.errors import InputError
from adatkg_core.storage import Bundle, ModelStore, Saved, SnapshotStore
from tests.support.small_graph import (
    assert_same_bits,
    assert_same_snapshot,
    engine_with_past,
    shared_model,
    small_graph,
)

GRAPH = 'a/b: "odd" & 李'  # a name that is no name of a folder


@pytest.fixture(params=["path", "file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "memory":
        yield f"memory://{tmp_path.name}/store"
        fsspec.filesystem("memory").rm(f"/{tmp_path.name}", recursive=True)
    else:
        yield f"{tmp_path}/store" if request.param == "path" else f"{tmp_path.as_uri()}/store"


def bundle(version: str) -> Bundle:
    return Bundle(shared_model("default"), small_graph().relations, ("Ann",), version)


def saved(offset: int, version: str = "v1") -> Saved:
    return Saved(
        engine_with_past().snapshot(), graph=GRAPH, version=version, offset=offset, known_through=7, log="log-1"
    )


def test_what_was_put_is_there_and_answers_once_it_is_present(url: str) -> None:
    store = ModelStore(url)
    assert store.graphs() == [] and store.versions(GRAPH) == [] and store.present(GRAPH) is None
    state = saved(0)
    assert store.put(GRAPH, bundle("v1"), state) == store.bundle_url(GRAPH, "v1")
    assert store.graphs() == [GRAPH] and store.versions(GRAPH) == ["v1"]
    assert store.present(GRAPH) is None, "putting it is not yet making it answer"
    store.make_present(GRAPH, "v1")
    again = ModelStore(url)  # as another process would see it
    assert again.present(GRAPH) == "v1"
    loaded = again.bundle(GRAPH, "v1")
    assert_same_bits(loaded.model.state_dict(), shared_model("default").state_dict())
    assert (loaded.graph, loaded.version, loaded.entities) == (GRAPH, "v1", ("Ann",))
    kept = again.state(GRAPH, "v1")
    assert kept is not None and replace(kept, snapshot=state.snapshot) == state
    assert_same_snapshot(kept.snapshot, state.snapshot)
    described = again.state_meta(GRAPH, "v1")
    assert described is not None and described[0]["known_through"] == 7
    assert again.bundle_meta(GRAPH, "v1")[0]["version"] == "v1"


def test_a_version_is_written_once_and_only_one_that_is_there_can_be_present(url: str) -> None:
    store = ModelStore(url)
    store.put(GRAPH, bundle("v1"), None)
    with pytest.raises(InputError, match="there already"):
        store.put(GRAPH, bundle("v1"), None)
    with pytest.raises(InputError, match="has no bundle v2; it has v1"):
        store.make_present(GRAPH, "v2")
    assert store.state(GRAPH, "v1") is None and store.state_meta(GRAPH, "v1") is None


def test_the_one_before_can_be_gone_back_to_and_is_never_pruned(url: str) -> None:
    store = ModelStore(url)
    for number in range(1, 5):
        store.put(GRAPH, bundle(f"v{number}"), saved(0, f"v{number}"))
        store.add_note(GRAPH, f"v{number}", created=f"2024-01-0{number}")
    store.make_present(GRAPH, "v1")
    store.make_present(GRAPH, "v2")
    assert store.line(GRAPH) == ["v2", "v1"]
    assert store.prune(GRAPH, keep=1) == ["v3"]
    assert store.versions(GRAPH) == ["v1", "v2", "v4"]
    assert store.state(GRAPH, "v3") is None
    assert store.roll_back(GRAPH) == "v1" and store.present(GRAPH) == "v1"
    with pytest.raises(InputError, match="no bundle before the present one"):
        store.roll_back(GRAPH)
    store.add_note(GRAPH, "v4", reason="better")
    assert store.note(GRAPH, "v4") == {"created": "2024-01-04", "reason": "better"}


def test_the_newest_snapshots_are_kept_and_come_newest_first(url: str) -> None:
    store = SnapshotStore(url, GRAPH, "log-1", keep=2)
    assert list(store.newest_first("v1", "cpu")) == []
    for offset in (9, 10, 100):  # as numbers in their order, as texts not
        store.save(saved(offset))
    again = SnapshotStore(url, GRAPH, "log-1", keep=2)
    found = list(again.newest_first("v1", "cpu"))
    assert [one.offset for one in found] == [100, 10]
    assert_same_snapshot(found[0].snapshot, saved(100).snapshot)
    assert list(again.newest_first("v2", "cpu")) == [], "another bundle's state is of no use"
    assert list(SnapshotStore(url, GRAPH, "log-2").newest_first("v1", "cpu")) == []


def test_a_damaged_snapshot_is_passed_over_for_the_one_before(url: str) -> None:
    store = SnapshotStore(url, GRAPH, "log-1")
    store.save(saved(1))
    newest = store.save(saved(2))
    fs, path = fsspec.url_to_fs(newest)
    fs.pipe_file(f"{path}/tensors.safetensors", b"cut off")
    assert [one.offset for one in store.newest_first("v1", "cpu")] == [1]

"""A store that fails for a moment is not a store with damage in it, and one that is full keeps what it had."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from safetensors import torch as safetensors_torch
from structlog.testing import capture_logs

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.storage import (
    Bundle,
    ModelStore,
    Saved,
    SnapshotStore,
    artifact,
    artifact_exists,
    read_document,
    save_bundle,
    write_document,
)
from tests.support.small_graph import engine_with_past, shared_model, small_graph


class ClientError(Exception):
    """As botocore has them: no OSError."""


class Flaky(MemoryFileSystem):  # type: ignore[misc]
    """A store in memory that raises what a test says, as long as it says so."""

    protocol = "flaky"
    cachable = False
    store: dict[str, Any] = {}  # noqa: RUF012
    pseudo_dirs = [""]  # noqa: RUF012
    problem: Exception | None = None

    def _check(self) -> None:
        if Flaky.problem is not None:
            raise Flaky.problem

    def info(self, path: str, **options: Any) -> Any:
        self._check()
        return super().info(path, **options)

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        self._check()
        return super().ls(path, detail, **options)

    def cat_file(self, path: str, *arguments: Any, **options: Any) -> Any:
        self._check()
        return super().cat_file(path, *arguments, **options)

    def pipe_file(self, path: str, *arguments: Any, **options: Any) -> Any:
        self._check()
        return super().pipe_file(path, *arguments, **options)


fsspec.register_implementation("flaky", Flaky, clobber=True)
PROBLEMS = [ClientError("SlowDown"), TimeoutError("timed out"), ConnectionResetError("reset"), PermissionError("no")]


@pytest.fixture
def url() -> Iterator[str]:
    yield "flaky://store"
    Flaky.problem = None
    Flaky.store.clear()
    Flaky.pseudo_dirs[:] = [""]


def saved(offset: int) -> Saved:
    return Saved(engine_with_past().snapshot(), graph="g", version="v1", offset=offset, log="log-1")


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
def test_a_read_that_fails_passes_over_no_snapshot_and_calls_nothing_damaged(url: str, problem: Exception) -> None:
    store = SnapshotStore(url, "g", "log-1")
    store.save(saved(1))
    store.save(saved(2))
    Flaky.problem = problem
    with capture_logs() as said, pytest.raises(AdatkgError, match=type(problem).__name__) as raised:
        next(iter(store.newest_first("v1", "cpu")))
    assert not isinstance(raised.value, InputError) and "damaged" not in str(raised.value) and said == []
    Flaky.problem = None
    assert [one.offset for one in store.newest_first("v1", "cpu")] == [2, 1]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
def test_a_model_store_that_fails_says_so_and_has_no_fewer_models(url: str, problem: Exception) -> None:
    store = ModelStore(url)
    store.put("g", Bundle(shared_model("default"), small_graph().relations, (), "v1"), saved(0))
    store.make_present("g", "v1")
    Flaky.problem = problem
    for ask in (
        lambda: store.line("g"),
        lambda: store.bundle("g", "v1"),
        lambda: store.state("g", "v1"),
        lambda: store.versions("g"),
        store.graphs,
        lambda: store.make_present("g", "v1"),
        lambda: store.add_note("g", "v1", why="because"),
        lambda: artifact_exists(store.bundle_url("g", "v1")),
        lambda: SnapshotStore(url, "g", "log-1").save(saved(9)),
    ):
        with pytest.raises(AdatkgError, match="flaky://store") as raised:
            ask()
        assert not isinstance(raised.value, InputError)
    Flaky.problem = None
    assert store.line("g") == ["v1"] and store.bundle("g", "v1").version == "v1"


@pytest.mark.parametrize(
    "document", [{"version": "v1", "before": None}, {"version": 1}, {"version": "v", "before": [2]}]
)
def test_a_list_of_versions_of_wrong_types_is_refused_by_its_name(tmp_path: Path, document: dict[str, Any]) -> None:
    write_document(f"{tmp_path}/g/present.json", document)
    with pytest.raises(InputError, match=r"present\.json: names no version, or no list"):
        ModelStore(str(tmp_path)).line("g")


# -- a full disk ------------------------------------------------------------------------------------------------


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def everything_in(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def test_a_snapshot_for_which_there_is_no_room_leaves_nothing_and_the_one_before_is_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SnapshotStore(str(tmp_path), "g", "log-1")
    store.save(saved(1))
    before = everything_in(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(safetensors_torch, "save_file", lambda tensors, path: full(path.write_bytes(b"part")))
        with pytest.raises(AdatkgError, match=r"No space left on device.*has room"):
            store.save(saved(2))
    assert everything_in(tmp_path) == before
    assert [one.offset for one in store.newest_first("v1", "cpu")] == [1]
    store.save(saved(2))
    assert [one.offset for one in store.newest_first("v1", "cpu")] == [2, 1]


def test_a_bundle_for_which_there_is_no_room_replaces_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle, url = Bundle(shared_model("default"), small_graph().relations, (), "v1"), str(tmp_path / "bundle")
    save_bundle(bundle, url)
    before = everything_in(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(artifact, "move_into", full)
        with pytest.raises(AdatkgError, match="No space left on device"):
            save_bundle(bundle, url, replace=True)
    assert everything_in(tmp_path) == before


def test_a_document_for_which_there_is_no_room_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"{tmp_path}/note.json"
    write_document(place, {"is": 1})
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(AdatkgError, match="No space left on device"):
            write_document(place, {"is": 2})
    assert read_document(place) == {"is": 1} and len(everything_in(tmp_path)) == 1

"""Snapshots that hold what changed since a whole one: read as one, damaged as one, and pruned with care."""

from __future__ import annotations

import posixpath
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from structlog.testing import capture_logs

from adatkg_core.engine import Engine, Snapshot
from adatkg_core.errors import AdatkgError
from adatkg_core.events import Fact
from adatkg_core.state import ChangedRows
from adatkg_core.storage import Saved, SavedIncrement, SnapshotStore, read_snapshot
from tests.support.small_graph import assert_same_snapshot, engine_with_past, small_graph

GRAPH = small_graph()
START = int(GRAPH.facts[-1, 3]) + 1


@pytest.fixture(params=["path", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "path":
        yield f"{tmp_path}/store"
    else:
        yield f"memory://{tmp_path.name}/store"
        fsspec.filesystem("memory").rm(f"/{tmp_path.name}", recursive=True)


class Writer:
    """Saves states of one engine, whole or as what changed since the last whole one."""

    def __init__(self, url: str, keep: int = 3) -> None:
        self.store, self.engine = SnapshotStore(url, "g", "log-1", keep), engine_with_past()
        self.offset, self.states = 0, dict[int, Snapshot]()
        self._base: tuple[int, ChangedRows] | None = None

    def save(self, *, whole: bool) -> str:
        """Takes in a fact with a new name, then saves."""
        self.offset += 10
        names = GRAPH.entities[self.offset % 7], f"newcomer {self.offset}"
        self.engine.observe([Fact(*names[:1], GRAPH.relations[0], names[1], START + self.offset)])
        self.states[self.offset] = self.engine.snapshot()
        if whole or self._base is None:
            self._base = self.offset, self.engine.state.watch_changes()
            return self.store.save(Saved(self.engine.snapshot(), **self._standing()))
        capture = self.engine.capture(self._base[1])
        capture.state.finish()
        return self.store.save(SavedIncrement(capture.increment(), self._base[0], **self._standing()))

    def _standing(self) -> dict[str, Any]:
        return {"graph": "g", "version": "v1", "offset": self.offset, "log": "log-1"}

    def found(self) -> list[int]:
        """The offsets of what can be read, all of which is as it was when it was saved."""
        found = list(SnapshotStore(self._url, "g", "log-1").newest_first("v1", "cpu"))
        for saved in found:
            assert_same_snapshot(saved.snapshot, self.states[saved.offset])
        return [saved.offset for saved in found]

    @property
    def _url(self) -> str:
        return posixpath.dirname(posixpath.dirname(self.store._folder))


def damage(url: str, file: str = "tensors.safetensors") -> None:
    fs, path = fsspec.url_to_fs(url)
    fs.pipe_file(f"{path}/{file}", fs.cat_file(f"{path}/{file}")[:-1] + b"?")


def test_an_increment_upon_a_whole_snapshot_is_bitwise_the_state_that_was_saved(url: str) -> None:
    writer = Writer(url)
    for whole in (True, False, False):
        writer.save(whole=whole)
    assert writer.found() == [30, 20, 10]
    newest = next(writer.store.newest_first(None, "cpu"))
    assert (newest.graph, newest.version, newest.log) == ("g", "v1", "log-1")
    again: Engine = engine_with_past()
    again.restore(newest.snapshot)
    again.observe([Fact("newcomer 30", GRAPH.relations[1], "newcomer 20", START + 99)])
    writer.engine.observe([Fact("newcomer 30", GRAPH.relations[1], "newcomer 20", START + 99)])
    assert_same_snapshot(again.snapshot(), writer.engine.snapshot())


@pytest.mark.parametrize("file", ["tensors.safetensors", "meta.json"])
def test_a_damaged_increment_is_passed_over_for_the_one_before(url: str, file: str) -> None:
    writer = Writer(url)
    writer.save(whole=True)
    writer.save(whole=False)
    damage(writer.save(whole=False), file)
    with capture_logs() as said:
        assert writer.found() == [20, 10]
    assert [line["event"] for line in said] == ["snapshot_unusable"]


def test_a_damaged_whole_snapshot_takes_its_increments_along_but_not_the_whole_one_before(url: str) -> None:
    writer = Writer(url, keep=2)
    writer.save(whole=True)
    base = writer.save(whole=True)
    for _ in range(3):
        writer.save(whole=False)
    assert writer.found() == [50, 40, 20, 10]
    damage(base)
    with capture_logs() as said:
        assert writer.found() == [10]
    assert len(said) == 3


def test_an_increment_is_not_read_upon_another_snapshot_of_the_same_name(tmp_path: Path) -> None:
    writer, other = Writer(f"{tmp_path}/one"), Writer(f"{tmp_path}/other")
    other.engine.observe([Fact("somebody else", GRAPH.relations[0], "elsewhere", START)])
    base, stranger = Path(writer.save(whole=True)), other.save(whole=True)
    increment = writer.save(whole=False)
    shutil.rmtree(base)
    shutil.copytree(stranger, base)
    with pytest.raises(AdatkgError, match="is gone or was changed"):
        read_snapshot(increment)


def test_what_a_kept_increment_builds_upon_is_kept_and_so_is_the_whole_one_before(url: str) -> None:
    writer = Writer(url, keep=2)
    for whole in (True, True, True, False, False, False, False):
        writer.save(whole=whole)
    assert writer.found() == [70, 60, 30, 20]
    writer.save(whole=True)
    assert writer.found() == [80, 70, 30], "30 is one of the two newest whole ones, and 70 builds upon it"
    writer.save(whole=True)
    assert writer.found() == [90, 80]


def test_an_increment_upon_nothing_is_not_written(url: str) -> None:
    writer = Writer(url)
    fs, path = fsspec.url_to_fs(writer.save(whole=True))
    fs.rm_file(f"{path}/manifest.json")
    with pytest.raises(AdatkgError, match="it is gone"):
        writer.save(whole=False)
    assert writer.found() == []
    writer.save(whole=True)
    assert writer.found() == [30]


@pytest.mark.parametrize("name", ["..", "../elsewhere", "/etc", ""])
def test_an_increment_that_leads_out_of_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    writer = Writer(str(tmp_path))
    base = Path(writer.save(whole=True)).name
    manifest = Path(writer.save(whole=False)) / "manifest.json"
    manifest.write_text(manifest.read_text().replace(f'"{base}"', f'"{name}"'))
    with pytest.raises(AdatkgError, match="outside its folder"):
        read_snapshot(str(manifest.parent))

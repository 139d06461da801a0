"""The steps by which a finished artifact takes its place: a reader sees all of it or nothing at every one of them."""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

from adatkg_core.storage.manifest import MANIFEST
from adatkg_core.storage.place import Place


def make_stage(place: Place) -> Path:
    """A new hidden folder, in which the artifact is made before anyone can see it."""
    if not place.is_local:
        return Path(tempfile.mkdtemp(prefix="adatkg-"))
    target = Path(place.path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # A sibling is on the same file system, where a rename is one step.
    stage = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.partial")
    stage.mkdir()
    return stage


def move_to(target: Path, stage: Path) -> None:
    """Publish a new artifact: the finished folder takes its name in one step, once its bytes are on disk."""
    for path in stage.iterdir():
        _sync(path)
    _sync(stage)
    try:
        os.rename(stage, target)
    except OSError:
        if not (target / MANIFEST).is_file():  # else another writer of the same thing was faster
            raise
    _sync(target.parent)


def move_into(target: Path, stage: Path, names: list[str]) -> None:
    """Publish a replacement: its files join the old ones, then its manifest takes the old one's place."""
    for path in stage.iterdir():
        _sync(path)
    try:
        for name in names:
            os.rename(stage / name, target / name)
        _sync(target)
        os.replace(stage / MANIFEST, target / MANIFEST)
    except BaseException:
        if not _published((target / MANIFEST).read_bytes, names):
            for name in names:
                (target / name).unlink(missing_ok=True)
        raise
    _sync(target)


def upload(place: Place, stage: Path, names: list[str]) -> None:
    """Publish to a store without rename: the files first, the manifest last."""
    try:
        place.fs.makedirs(place.path, exist_ok=True)
        for name in names:
            place.fs.put_file(str(stage / name), place.file(name))
        place.fs.pipe_file(place.file(MANIFEST), (stage / MANIFEST).read_bytes())
    except BaseException:
        if not _published(lambda: place.fs.cat_file(place.file(MANIFEST)), names):
            for name in names:
                with contextlib.suppress(Exception):
                    place.fs.rm_file(place.file(name))
        raise


def _published(read_manifest: Callable[[], bytes], names: list[str]) -> bool:
    """Whether the manifest names these files, or cannot be asked: a step that seemed to fail may have been done."""
    try:
        return any(name.encode() in read_manifest() for name in names)
    except FileNotFoundError:
        return False
    except Exception:
        return True


def sweep_replaced(place: Place, keep: set[str]) -> None:
    """Remove the files of replaced artifacts, and of writers that died while replacing."""
    with contextlib.suppress(Exception):  # a store may raise anything; what stays is removed with the next one
        for path in place.fs.ls(place.path, detail=False):
            name = posixpath.basename(str(path))
            if re.fullmatch(r"(meta.*\.json|tensors.*\.safetensors)", name) and name not in keep:
                place.fs.rm_file(place.file(name))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Artifacts (bundles, snapshots): folders of tensors and metadata that are wholly there or not there at all.

An artifact exists once its `manifest.json`, always written last, is there; the manifest holds the size and
checksum of every other file. A store is any folder or URL that fsspec can open.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import posixpath
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

import orjson
import torch
from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem
from safetensors import SafetensorError
from safetensors import torch as safetensors_torch
from torch import Tensor

from adatkg_core.errors import AdatkgError, InputError

FORMAT = "adatkg-artifact"
VERSION = 1
MANIFEST = "manifest.json"
_REMEDY = "restore it from a copy or make it again"
_JSON = orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2


@dataclass(frozen=True)
class _Place:
    """Where an artifact is: the URL as the user wrote it, for messages, and what fsspec makes of it."""

    url: str
    fs: AbstractFileSystem
    path: str

    @property
    def is_local(self) -> bool:
        return isinstance(self.fs, LocalFileSystem)

    def file(self, name: str) -> str:
        return posixpath.join(self.path, name)


@dataclass(frozen=True)
class _File:
    """What the manifest says about one file of the artifact."""

    name: str
    size: int
    sha256: str


def write_artifact(
    url: str | os.PathLike[str],
    kind: str,
    tensors: Mapping[str, Tensor],
    meta: Mapping[str, Any],
    *,
    replace: bool = False,
) -> None:
    """Write an artifact so that a reader sees all of it or nothing, whenever the writer dies; with `replace`,
    one of the same kind that is already there gives way in a single step."""
    place = _locate(url)
    replaces = _check_free(place, kind, replace)
    # A replacement's files get names of their own: the old manifest stays true until the new one is there.
    mark = f"-{uuid.uuid4().hex[:12]}" if replaces else ""
    names = {"meta": f"meta{mark}.json", "tensors": f"tensors{mark}.safetensors"}
    encoded_meta = orjson.dumps(dict(meta), option=_JSON)
    stage: Path | None = None
    try:
        stage = _make_stage(place)
        (stage / names["meta"]).write_bytes(encoded_meta)
        safetensors_torch.save_file(_storable(tensors), stage / names["tensors"])
        files = {role: asdict(_describe(stage / name)) for role, name in names.items()}
        manifest = {"format": FORMAT, "version": VERSION, "kind": kind, "files": files}
        (stage / MANIFEST).write_bytes(orjson.dumps(manifest, option=_JSON))
        if not place.is_local:
            _upload(place, stage, list(names.values()))
        elif replaces:
            _move_into(Path(place.path), stage, list(names.values()))
        else:
            _move_to(Path(place.path), stage)
    except (OSError, SafetensorError) as error:
        raise AdatkgError(
            f"{place.url}: the {kind} could not be written ({_one_line(error)}); "
            "check that the place is writable and has room"
        ) from error
    finally:
        if stage is not None:
            shutil.rmtree(stage, ignore_errors=True)
    if replaces:
        _sweep(place, keep=set(names.values()))


def read_artifact(
    url: str | os.PathLike[str], kind: str, *, device: torch.device | str = "cpu"
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors, on `device`, and the metadata of an artifact whose every checksum holds; any damage is an
    InputError that says what is wrong."""
    place = _locate(url)
    files, meta = _read_described(place, kind)
    data = _read_verified(place, kind, files["tensors"])
    try:
        with torch.device("cpu"):  # the library would make empty tensors on the default device
            tensors = safetensors_torch.load(data)
    except (SafetensorError, AssertionError, KeyError, RuntimeError, ValueError) as error:
        _refuse(place, kind, f"{files['tensors'].name} is not a safetensors file ({_one_line(error)})")
    return {name: tensor.to(device) for name, tensor in tensors.items()}, meta


def read_meta(url: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], int]:
    """The metadata of an artifact and the size of all its files in bytes; its tensors stay unread and unchecked."""
    files, meta = _read_described(_locate(url), kind)
    return meta, sum(file.size for file in files.values())


def artifact_exists(url: str | os.PathLike[str]) -> bool:
    """Whether an artifact was written there to its end; only reading it tells whether it is still sound."""
    place = _locate(url)
    return bool(place.fs.isfile(place.file(MANIFEST)))


def list_artifacts(root_url: str | os.PathLike[str], kind: str) -> list[str]:
    """The URLs of the finished artifacts of one kind right under a folder, by name, so that growing names put
    the newest last; one with an unreadable manifest is listed too, for `read_artifact` to say so."""
    root = _locate(root_url)
    try:
        paths = root.fs.ls(root.path, detail=False) if root.fs.isdir(root.path) else []
    except OSError as error:
        raise InputError(f"{root.url}: cannot be listed ({_one_line(error)}); check its permissions") from error
    found = []
    for name in sorted(posixpath.basename(str(path).rstrip("/")) for path in paths):
        place = _Place(posixpath.join(root.url, name), root.fs, root.file(name))
        # A hidden folder is one that a writer is still filling, or died while filling.
        if not name.startswith(".") and place.fs.isfile(place.file(MANIFEST)):
            manifest = _parse_file(place, MANIFEST)
            if manifest is None or (manifest.get("format"), manifest.get("kind")) == (FORMAT, kind):
                found.append(place.url)
    return found


def remove_artifact(url: str | os.PathLike[str]) -> None:
    """Remove an artifact: its manifest first, so that it is never half there."""
    place = _locate(url)
    with contextlib.suppress(OSError):
        place.fs.rm_file(place.file(MANIFEST))
        place.fs.rm(place.path, recursive=True)


def sweep_partials(root_url: str | os.PathLike[str], older_than: float = 600.0) -> None:
    """Remove what writers that died have left right under a folder; a living one is younger than `older_than` s."""
    root = _locate(root_url)
    if root.is_local and os.path.isdir(root.path):
        for entry in os.scandir(root.path):
            if entry.name.startswith(".") and entry.name.endswith(".partial"):
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat().st_mtime > older_than:
                        shutil.rmtree(entry.path)


def safe_name(text: str) -> str:
    """Any text as the name of one file or folder that is not hidden."""
    name = quote(text, safe="")
    return f"%2E{name[1:]}" if name.startswith(".") else name


def require_finite(tensors: Mapping[str, Tensor], where: str) -> None:
    """Refuse tensors with NaN or infinity; `where` names their artifact in the message."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise InputError(f"{where}: tensor {name!r} holds NaN or infinity; use an earlier one or {_REMEDY}")


def _locate(url: str | os.PathLike[str]) -> _Place:
    text = os.fspath(url)
    try:
        fs, path = url_to_fs(text)
    except (ImportError, ValueError) as error:
        raise InputError(
            f"{text}: no such kind of store ({_one_line(error)}); use a folder, or install what the URL needs"
        ) from error
    # Another process may have written since a listing was cached.
    fs.invalidate_cache()
    return _Place(text, fs, os.path.realpath(path) if isinstance(fs, LocalFileSystem) else path)


def _check_free(place: _Place, kind: str, replace: bool) -> bool:
    """Whether an artifact of this kind is there to be replaced; anything else in the way is refused."""
    if place.fs.isfile(place.file(MANIFEST)):
        manifest = _parse_file(place, MANIFEST) or {}
        if (manifest.get("format"), manifest.get("kind")) != (FORMAT, kind):
            raise InputError(f"{place.url}: holds something other than a {kind}; choose another place or remove it")
        if not replace:
            raise InputError(f"{place.url}: a {kind} is there already; choose another place or remove it")
        return True
    if place.is_local and os.path.exists(place.path) and (os.path.isfile(place.path) or os.listdir(place.path)):
        raise InputError(f"{place.url}: holds something other than a {kind}; choose another place or remove it")
    return False


def check_free(url: str | os.PathLike[str], kind: str, *, replace: bool = False) -> None:
    """Refuse now what `write_artifact` would refuse later."""
    _check_free(_locate(url), kind, replace)


def _make_stage(place: _Place) -> Path:
    if not place.is_local:
        return Path(tempfile.mkdtemp(prefix="adatkg-"))
    target = Path(place.path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # A sibling is on the same file system, where a rename is one step.
    stage = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.partial")
    stage.mkdir()
    return stage


def _storable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Dense CPU tensors that share no storage, which is all that safetensors takes."""
    storable: dict[str, Tensor] = {}
    storages: set[int] = set()
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        if tensor.untyped_storage().data_ptr() in storages:
            tensor = tensor.clone()
        storages.add(tensor.untyped_storage().data_ptr())
        storable[name] = tensor
    return storable


def _describe(path: Path) -> _File:
    with path.open("rb") as file:
        return _File(path.name, path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def _move_to(target: Path, stage: Path) -> None:
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


def _move_into(target: Path, stage: Path, names: list[str]) -> None:
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


def _upload(place: _Place, stage: Path, names: list[str]) -> None:
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


def _sweep(place: _Place, keep: set[str]) -> None:
    """Remove the files of replaced artifacts, and of writers that died while replacing."""
    for path in place.fs.ls(place.path, detail=False):
        name = posixpath.basename(str(path))
        if re.fullmatch(r"(meta.*\.json|tensors.*\.safetensors)", name) and name not in keep:
            with contextlib.suppress(OSError):
                place.fs.rm_file(place.file(name))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_described(place: _Place, kind: str) -> tuple[dict[str, _File], dict[str, Any]]:
    files = _read_manifest(place, kind)
    meta = _parse(_read_verified(place, kind, files["meta"]))
    if meta is None:
        _refuse(place, kind, f"{files['meta'].name} is not a JSON object")
    return files, meta


def _read_manifest(place: _Place, kind: str) -> dict[str, _File]:
    if not place.fs.exists(place.path):
        raise InputError(f"{place.url}: no {kind} is there; check the path, or make one first")
    if not place.fs.isfile(place.file(MANIFEST)):
        _refuse(place, kind, f"{MANIFEST} is missing (writing it never ended, or this is something else)")
    manifest = _parse_file(place, MANIFEST)
    if manifest is None:
        _refuse(place, kind, f"{MANIFEST} is not a JSON object")
    version = manifest.get("version")
    if manifest.get("format") != FORMAT or not isinstance(version, int):
        _refuse(place, kind, f"{MANIFEST} is not of the format {FORMAT}")
    if version > VERSION:
        raise InputError(
            f"{place.url}: this {kind} has format version {version} and this program reads up to {VERSION}; "
            "upgrade adatkg"
        )
    if manifest.get("kind") != kind:
        raise InputError(f"{place.url}: this is a {manifest.get('kind')}, not a {kind}; give the path of a {kind}")
    try:
        files = {role: _File(**manifest["files"][role]) for role in ("meta", "tensors")}
    except (KeyError, TypeError):
        _refuse(place, kind, f"{MANIFEST} does not list its files")
    return files


def _read_verified(place: _Place, kind: str, file: _File) -> bytes:
    # A manifest made by hand must not lead outside its folder.
    if not isinstance(file.name, str) or posixpath.basename(file.name) != file.name:
        _refuse(place, kind, f"{MANIFEST} names a file outside its folder")
    try:
        data = bytes(place.fs.cat_file(place.file(file.name)))
    except FileNotFoundError:
        _refuse(place, kind, f"{file.name} is missing")
    except OSError as error:
        _refuse(place, kind, f"{file.name} cannot be read ({_one_line(error)})")
    if len(data) != file.size:
        _refuse(place, kind, f"{file.name} has {len(data)} bytes instead of {file.size}")
    if hashlib.sha256(data).hexdigest() != file.sha256:
        _refuse(place, kind, f"{file.name} does not match its checksum")
    return data


def _parse_file(place: _Place, name: str) -> dict[str, Any] | None:
    try:
        return _parse(place.fs.cat_file(place.file(name)))
    except OSError:
        return None


def _parse(data: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _refuse(place: _Place, kind: str, problem: str) -> NoReturn:
    raise InputError(f"{place.url}: the {kind} is damaged: {problem}; {_REMEDY}")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())

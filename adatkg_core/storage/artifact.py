"""Artifacts (bundles, snapshots): folders of tensors and metadata that are wholly there or not there at all.

An artifact exists once its `manifest.json`, always written last, is there; the manifest holds the size and
checksum of every other file. A store is any folder or URL that fsspec can open.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import shutil
import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import torch
from safetensors import SafetensorError
from safetensors import torch as safetensors_torch
from torch import Tensor

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.storage.manifest import (
    FORMAT,
    MANIFEST,
    REMEDY,
    VERSION,
    describe_file,
    parse_file,
    read_described,
    read_verified,
    refuse,
)
from adatkg_core.storage.place import NOT_THERE, Place, locate, one_line, store_errors
from adatkg_core.storage.publishing import make_stage, move_into, move_to, sweep_replaced, upload
from adatkg_core.storage.tensor_file import read_tensor_file

_LONGEST_NAME = 255  # bytes, of all usual file systems
_JSON = orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2


def write_artifact(
    url: str | os.PathLike[str],
    kind: str,
    tensors: Mapping[str, Tensor],
    meta: Mapping[str, Any],
    *,
    replace: bool = False,
    upon: Mapping[str, str] | None = None,
) -> None:
    """Write an artifact so that a reader sees all of it or nothing, whenever the writer dies; with `replace`,
    one of the same kind that is already there gives way in a single step. `upon`, from `refer_to`, is another one
    beside it that this one is of no use without."""
    place = locate(url)
    replaces = _check_free(place, kind, replace)
    # A replacement's files get names of their own: the old manifest stays true until the new one is there.
    mark = f"-{uuid.uuid4().hex[:12]}" if replaces else ""
    names = {"meta": f"meta{mark}.json", "tensors": f"tensors{mark}.safetensors"}
    encoded_meta = orjson.dumps(dict(meta), option=_JSON)
    stage: Path | None = None
    try:
        stage = make_stage(place)
        (stage / names["meta"]).write_bytes(encoded_meta)
        safetensors_torch.save_file(_storable(tensors), stage / names["tensors"])
        files = {role: asdict(describe_file(stage / name)) for role, name in names.items()}
        manifest = {"format": FORMAT, "version": VERSION, "kind": kind, "files": files}
        manifest |= {"upon": dict(upon)} if upon else {}
        (stage / MANIFEST).write_bytes(orjson.dumps(manifest, option=_JSON))
        if not place.is_local:
            upload(place, stage, list(names.values()))
        elif replaces:
            move_into(Path(place.path), stage, list(names.values()))
        else:
            move_to(Path(place.path), stage)
    except AdatkgError:
        raise
    except Exception as error:  # a store may raise anything
        raise AdatkgError(
            f"{place.url}: the {kind} could not be written ({one_line(error)}); "
            "check that the place is writable and has room"
        ) from error
    finally:
        if stage is not None:
            shutil.rmtree(stage, ignore_errors=True)
    if replaces:
        sweep_replaced(place, keep=set(names.values()))


def read_artifact(
    url: str | os.PathLike[str], kind: str, *, device: torch.device | str = "cpu"
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors, on `device`, and the metadata of an artifact whose every checksum holds; any damage is an
    InputError that says what is wrong."""
    place = locate(url)
    files, meta = read_described(place, kind)
    tensors = read_tensor_file(place, kind, files["tensors"])
    if tensors is None:
        data = read_verified(place, kind, files["tensors"])
        try:
            with torch.device("cpu"):  # the library would make empty tensors on the default device
                tensors = safetensors_torch.load(data)
        except (SafetensorError, AssertionError, KeyError, RuntimeError, ValueError) as error:
            refuse(place, kind, f"{files['tensors'].name} is not a safetensors file ({one_line(error)})")
    return {name: tensor.to(device) for name, tensor in tensors.items()}, meta


def read_meta(url: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], int]:
    """The metadata of an artifact and the size of all its files in bytes; its tensors stay unread and unchecked."""
    files, meta = read_described(locate(url), kind)
    return meta, sum(file.size for file in files.values())


def artifact_exists(url: str | os.PathLike[str]) -> bool:
    """Whether an artifact was written there to its end; only reading it tells whether it is still sound."""
    return locate(url).has_file(MANIFEST)


def list_artifacts(root_url: str | os.PathLike[str], *kinds: str) -> list[str]:
    """The URLs of the finished artifacts of these kinds right under a folder, by name, so that growing names put
    the newest last; one with an unreadable manifest is listed too, for `read_artifact` to say so."""
    root = locate(root_url)
    try:
        with store_errors(root.url):
            paths = root.fs.ls(root.path, detail=False) if root.is_folder else []
    except NOT_THERE:  # it has just been removed
        paths = []
    found = []
    for name in sorted(posixpath.basename(str(path).rstrip("/")) for path in paths):
        place = Place(posixpath.join(root.url, name), root.fs, root.file(name))
        # A hidden folder is one that a writer is still filling, or died while filling.
        if not name.startswith(".") and place.has_file(MANIFEST):
            manifest = parse_file(place, MANIFEST)
            if manifest is None or (manifest.get("format") == FORMAT and manifest.get("kind") in kinds):
                found.append(place.url)
    return found


def remove_artifact(url: str | os.PathLike[str]) -> None:
    """Remove an artifact: its manifest first, so that it is never half there."""
    place = locate(url)
    with contextlib.suppress(Exception):  # what cannot be removed now is removed with the next one
        place.fs.rm_file(place.file(MANIFEST))
        place.fs.rm(place.path, recursive=True)


def sweep_partials(root_url: str | os.PathLike[str], older_than: float = 600.0) -> None:
    """Remove what writers that died have left right under a folder; a living one is younger than `older_than` s."""
    root = locate(root_url)
    if root.is_local and os.path.isdir(root.path):
        for entry in os.scandir(root.path):
            if entry.name.startswith(".") and entry.name.endswith(".partial"):
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat().st_mtime > older_than:
                        shutil.rmtree(entry.path)


def safe_name(text: str) -> str:
    """Any text as the name of one file or folder that is not hidden; one that no file system takes is refused."""
    name = quote(text, safe="")
    if len(name) > _LONGEST_NAME:
        raise InputError(f"{text[:40]}…: has {len(name)} bytes as the name of a folder; take a shorter name")
    return f"%2E{name[1:]}" if name.startswith(".") else name


def require_finite(tensors: Mapping[str, Tensor], where: str) -> None:
    """Refuse tensors with NaN or infinity; `where` names their artifact in the message."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise InputError(f"{where}: tensor {name!r} holds NaN or infinity; use an earlier one or {REMEDY}")


def check_free(url: str | os.PathLike[str], kind: str, *, replace: bool = False) -> None:
    """Refuse now what `write_artifact` would refuse later."""
    _check_free(locate(url), kind, replace)


def _check_free(place: Place, kind: str, replace: bool) -> bool:
    """Whether an artifact of this kind is there to be replaced; anything else in the way is refused."""
    if place.has_file(MANIFEST):
        manifest = parse_file(place, MANIFEST) or {}
        if (manifest.get("format"), manifest.get("kind")) != (FORMAT, kind):
            raise InputError(f"{place.url}: holds something other than a {kind}; choose another place or remove it")
        if not replace:
            raise InputError(f"{place.url}: a {kind} is there already; choose another place or remove it")
        return True
    if place.is_local and os.path.exists(place.path) and (os.path.isfile(place.path) or os.listdir(place.path)):
        raise InputError(f"{place.url}: holds something other than a {kind}; choose another place or remove it")
    return False


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

"""The manifest of an artifact: what is there, and the size and checksum of every other file."""

from __future__ import annotations

import hashlib
import posixpath
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import orjson

from adatkg_core.errors import InputError
from adatkg_core.storage.place import NOT_THERE, Place, store_errors

FORMAT = "adatkg-artifact"
VERSION = 1
MANIFEST = "manifest.json"
REMEDY = "restore it from a copy or make it again"


@dataclass(frozen=True)
class ArtifactFile:
    """What the manifest says about one file of the artifact."""

    name: str
    size: int
    sha256: str


def describe_file(path: Path) -> ArtifactFile:
    """What a manifest says about this file."""
    with path.open("rb") as file:
        return ArtifactFile(path.name, path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def read_described(place: Place, kind: str) -> tuple[dict[str, ArtifactFile], dict[str, Any]]:
    """The files of an artifact, and its metadata; damage and a version from the future are refused."""
    files = _read_manifest(place, kind)
    meta = _parse(read_verified(place, kind, files["meta"]))
    if meta is None:
        refuse(place, kind, f"{files['meta'].name} is not a JSON object")
    return files, meta


def _read_manifest(place: Place, kind: str) -> dict[str, ArtifactFile]:
    if not place.is_there:
        raise InputError(f"{place.url}: no {kind} is there; check the path, or make one first")
    if not place.has_file(MANIFEST):
        refuse(place, kind, f"{MANIFEST} is missing (writing it never ended, or this is something else)")
    manifest = parse_file(place, MANIFEST)
    if manifest is None:
        refuse(place, kind, f"{MANIFEST} is not a JSON object")
    version = manifest.get("version")
    if manifest.get("format") != FORMAT or not isinstance(version, int):
        refuse(place, kind, f"{MANIFEST} is not of the format {FORMAT}")
    if version > VERSION:
        raise InputError(
            f"{place.url}: this {kind} has format version {version} and this program reads up to {VERSION}; "
            "upgrade adatkg"
        )
    if manifest.get("kind") != kind:
        raise InputError(f"{place.url}: this is a {manifest.get('kind')}, not a {kind}; give the path of a {kind}")
    try:
        files = {role: ArtifactFile(**manifest["files"][role]) for role in ("meta", "tensors")}
    except (KeyError, TypeError):
        refuse(place, kind, f"{MANIFEST} does not list its files")
    return files


def check_listed(place: Place, kind: str, file: ArtifactFile) -> None:
    """Refuse a file that is not where the manifest says, or not of the size that it says."""
    # A manifest made by hand must not lead outside its folder.
    if not isinstance(file.name, str) or posixpath.basename(file.name) != file.name:
        refuse(place, kind, f"{MANIFEST} names a file outside its folder")
    try:
        with store_errors(place.file(file.name)):
            # Asked first, because a pipe or a device in its place would be read without end.
            found = place.fs.info(place.file(file.name))
    except NOT_THERE:
        refuse(place, kind, f"{file.name} is missing")
    if found["type"] != "file":
        refuse(place, kind, f"{file.name} is no file")
    if found["size"] is not None and found["size"] != file.size:
        refuse(place, kind, f"{file.name} has {found['size']} bytes instead of {file.size}")


def read_verified(place: Place, kind: str, file: ArtifactFile) -> bytes:
    """The content of one file, of the size and checksum that the manifest says; a failed read is no damage."""
    check_listed(place, kind, file)
    try:
        with store_errors(place.file(file.name)):
            data = bytes(place.fs.cat_file(place.file(file.name)))
    except NOT_THERE:
        refuse(place, kind, f"{file.name} is missing")
    if len(data) != file.size:
        refuse(place, kind, f"{file.name} has {len(data)} bytes instead of {file.size}")
    if hashlib.sha256(data).hexdigest() != file.sha256:
        refuse(place, kind, f"{file.name} does not match its checksum")
    return data


def parse_file(place: Place, name: str) -> dict[str, Any] | None:
    """The JSON object in a file of the artifact; None if there is none. A store that fails raises."""
    try:
        with store_errors(place.file(name)):
            return _parse(place.fs.cat_file(place.file(name)))
    except NOT_THERE:
        return None


def _parse(data: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def refuse(place: Place, kind: str, problem: str) -> NoReturn:
    """Say what is wrong with the artifact, where, and what to do."""
    raise InputError(f"{place.url}: the {kind} is damaged: {problem}; {REMEDY}")

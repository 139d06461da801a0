"""How one artifact names another beside it, without which it is of no use: by its name and its manifest's digest."""

from __future__ import annotations

import hashlib
import os
import posixpath

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.storage.manifest import MANIFEST, REMEDY, parse_file
from adatkg_core.storage.place import NOT_THERE, locate, store_errors


def refer_to(url: str | os.PathLike[str]) -> dict[str, str]:
    """What an artifact beside this one is to say of it; one that is gone is refused."""
    digest = _digest(os.fspath(url))
    if digest is None:
        raise AdatkgError(f"{os.fspath(url)}: what is to be built upon it cannot be: it is gone")
    return {"name": posixpath.basename(os.fspath(url)), "sha256": digest}


def read_reference(url: str | os.PathLike[str]) -> dict[str, str] | None:
    """What an artifact says of another one; None where it stands alone."""
    manifest = parse_file(locate(url), MANIFEST) or {}
    reference = manifest.get("upon")
    if reference is None:
        return None
    if not isinstance(reference, dict) or not all(isinstance(reference.get(key), str) for key in ("name", "sha256")):
        raise InputError(f"{os.fspath(url)}: its {MANIFEST} does not say upon what it builds; {REMEDY}")
    return reference


def referred_artifact(url: str | os.PathLike[str], reference: dict[str, str]) -> str:
    """The URL of the artifact that is meant; another one in its place is refused."""
    folder, name = posixpath.dirname(os.fspath(url).rstrip("/")), reference["name"]
    # A manifest made by hand must not lead outside its folder.
    if posixpath.basename(name) != name or name in ("", ".", ".."):
        raise InputError(f"{os.fspath(url)}: its {MANIFEST} builds upon something outside its folder")
    found = posixpath.join(folder, name)
    if _digest(found) != reference["sha256"]:
        raise InputError(f"{os.fspath(url)}: {name}, upon which it builds, is gone or was changed; {REMEDY}")
    return found


def _digest(url: str) -> str | None:
    place = locate(url)
    try:
        with store_errors(place.file(MANIFEST)):
            return hashlib.sha256(place.fs.cat_file(place.file(MANIFEST))).hexdigest()
    except NOT_THERE:
        return None

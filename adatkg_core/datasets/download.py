"""Downloading a data set: all of it, as its checksum says, or nothing."""

from __future__ import annotations

import hashlib
import lzma
import re
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO

import fsspec

from adatkg_core.datasets.dataset import Dataset
from adatkg_core.datasets.folder import load_folder
from adatkg_core.datasets.unpack_limit import AT_LEAST, RATIO
from adatkg_core.errors import AdatkgError, InputError

_BLOCK = 1 << 20
_MOST_FILES = 10_000
# What the libraries raise over an archive that is none, is packed in a way they lack, or wants a password.
_DAMAGE = (
    *(tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, struct.error),
    *(ValueError, RuntimeError, LookupError),
)


def fetch_dataset(
    url: str, out: Path, sha256: str, on_progress: Callable[[int, int | None], None] | None = None
) -> Dataset:
    """Download an archive of a folder in the usual layout, verify it, and unpack it as the new `out`."""
    if not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise InputError(f"--sha256 {sha256!r} is not a SHA-256 checksum: give its 64 hex digits")
    if out.exists():
        raise InputError(f"{out} exists already: choose a new folder or remove it")
    out.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, because only a rename inside one file system is atomic.
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as scratch:
        archive = Path(scratch, "archive")
        found = _download(url, archive, on_progress)
        if found != sha256.lower():
            raise InputError(f"{url} has the checksum {found}, not {sha256.lower()}: check the address and the digits")
        content = Path(scratch, "content")
        _unpack(url, archive, content)
        inside = list(content.iterdir())
        if len(inside) == 1 and inside[0].is_dir():
            content = inside[0]
        dataset = load_folder(content)
        content.rename(out)
    return replace(dataset, name=out.name)


def _download(url: str, target: Path, on_progress: Callable[[int, int | None], None] | None) -> str:
    digest = hashlib.sha256()
    try:
        with fsspec.open(url, "rb") as source, target.open("wb") as sink:
            total = getattr(source, "size", None)
            done = 0
            while block := source.read(_BLOCK):
                digest.update(block)
                sink.write(block)
                done += len(block)
                if on_progress:
                    on_progress(done, total)
    except (FileNotFoundError, ValueError, ImportError) as error:
        raise InputError(f"cannot fetch {url}: {error or 'not found'}; check the address") from error
    except Exception as error:  # each protocol's library has errors of its own
        raise AdatkgError(f"cannot fetch {url}: {error or type(error).__name__}; try again later") from error
    return digest.hexdigest()


def _unpack(url: str, archive: Path, target: Path) -> None:
    target.mkdir()
    room = max(AT_LEAST, RATIO * archive.stat().st_size)
    try:
        for number, (name, stream) in enumerate(_members(url, archive)):
            if number == _MOST_FILES:
                raise InputError(f"{url} holds more than {_MOST_FILES} files: this is no data set")
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name:
                raise InputError(f"{url} holds the unsafe path {name!r}: do not use this archive")
            file = target / path
            file.parent.mkdir(parents=True, exist_ok=True)
            with stream, file.open("wb") as sink:
                while block := stream.read(min(_BLOCK, room + 1)):
                    room -= sink.write(block)
                    if room < 0:
                        raise InputError(
                            f"{url} unpacks into more than {RATIO} times its size: do not use this archive"
                        )
    except (*_DAMAGE, OSError) as error:
        raise InputError(f"{url} cannot be unpacked ({error}): it must be a sound .tar.gz, .tar or .zip") from error


def _members(url: str, archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Regular files only: links and devices have no place in a data set."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for info in zipped.infolist():
                if not info.is_dir():
                    yield info.filename, zipped.open(info)
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tar:
            for member in tar:
                stream = tar.extractfile(member) if member.isreg() else None
                if stream is not None:
                    yield member.name, stream
    else:
        raise InputError(f"{url} is not an archive: it must be a .tar.gz, .tar or .zip")

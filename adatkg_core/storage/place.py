"""Where an artifact is: a folder or any URL that fsspec can open."""

from __future__ import annotations

import os
import posixpath
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from adatkg_core.errors import AdatkgError, InputError

NOT_THERE = (FileNotFoundError, IsADirectoryError, NotADirectoryError)  # what a sound store says of a missing file


@dataclass(frozen=True)
class Place:
    """Where an artifact is: the URL as the user wrote it, for messages, and what fsspec makes of it."""

    url: str
    fs: AbstractFileSystem
    path: str

    @property
    def is_local(self) -> bool:
        """Whether it is on a file system of this machine, where a rename is one step."""
        return isinstance(self.fs, LocalFileSystem)

    def file(self, name: str) -> str:
        """The path of one file of the artifact, for `fs`."""
        return posixpath.join(self.path, name)

    def has_file(self, name: str) -> bool:
        """Whether a file of the artifact is there; a store that cannot say raises, unlike fsspec's own `isfile`."""
        return self._type_of(self.file(name)) == "file"

    @property
    def is_there(self) -> bool:
        """Whether anything is there."""
        return self._type_of(self.path) is not None

    @property
    def is_folder(self) -> bool:
        """Whether a folder is there."""
        return self._type_of(self.path) == "directory"

    def _type_of(self, path: str) -> str | None:
        with store_errors(self.url):
            try:
                return str(self.fs.info(path)["type"])
            except NOT_THERE:
                return None


def locate(url: str | os.PathLike[str]) -> Place:
    """Find the file system that a URL or path means; nothing has to be there yet."""
    text = os.fspath(url)
    try:
        fs, path = url_to_fs(text)
    except (ImportError, ValueError) as error:
        raise InputError(
            f"{text}: no such kind of store ({one_line(error)}); use a folder, or install what the URL needs"
        ) from error
    # Another process may have written since a listing was cached.
    fs.invalidate_cache()
    return Place(text, fs, os.path.realpath(path) if isinstance(fs, LocalFileSystem) else path)


def folder_for_copies(url: str) -> str:
    """Where large copies are made for a store: beside what it holds, which is a disk of this machine, else with other
    temporary files."""
    place = locate(url)
    return place.path if place.is_local else tempfile.gettempdir()


@contextmanager
def store_errors(url: str) -> Iterator[None]:
    """Around calls of a store: whatever it raises becomes an error that names it, and that is no damage.

    A store may raise anything, not only an OSError. A file that is not there is an answer and stays what it is.
    """
    try:
        yield
    except (AdatkgError, *NOT_THERE):
        raise
    except Exception as error:
        raise AdatkgError(
            f"{url}: the store fails ({type(error).__name__}: {one_line(error)}); "
            "check that it is reachable, that it may be read and written, and that it has room"
        ) from error


def one_line(error: BaseException) -> str:
    """An error's text for the middle of a sentence."""
    return " ".join(str(error).split())

"""Where an artifact is: a folder or any URL that fsspec can open."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass

from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from adatkg_core.errors import InputError


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


def one_line(error: BaseException) -> str:
    """An error's text for the middle of a sentence."""
    return " ".join(str(error).split())

"""Python functions over arrays, compiled by numba when they are first called, and kept on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from adatkg_core.runtime.cache_dir import default_cache

P = ParamSpec("P")
T = TypeVar("T")


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """The function as machine code that runs without the interpreter's lock.

    What is compiled is kept in a folder named after everything that stands beside the function: numba itself would not
    notice a change in a file from which it calls.
    """
    import numba  # not at the top: commands that compute nothing start without it

    settings: Any = numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(default_cache() / "compiled" / _version(Path(function.__code__.co_filename).parent))
    made: Callable[P, T]
    try:
        made = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # there is no folder that can be written to
        made = numba.njit(nogil=True)(function)
    finally:
        settings.CACHE_DIR = before
    return made


@cache
def _version(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]

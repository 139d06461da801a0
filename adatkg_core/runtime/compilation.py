"""Python functions over arrays, compiled by numba when they are first called, and kept on disk."""

from __future__ import annotations

import fcntl
import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar, cast

from adatkg_core.runtime.cache_dir import default_cache

P = ParamSpec("P")
T = TypeVar("T")
# As in numpy: a loop with a division that may raise would reckon one element after the other, never several at once.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """The function as machine code that runs without the interpreter's lock; a division by zero is no error in it.

    What is compiled is kept in a folder named after everything that stands beside the function and one level above it:
    numba itself would not notice a change in a file from which it calls, or takes a constant. Of processes that want it
    at the same time one compiles; the others wait and take what it has kept.
    """
    import numba  # not at the top: commands that compute nothing start without it

    settings: Any = numba.config
    before = settings.CACHE_DIR
    folder = default_cache() / "compiled" / _version(Path(function.__code__.co_filename).parent)
    settings.CACHE_DIR = str(folder)
    made: Any
    try:
        made = numba.njit(**_OPTIONS, cache=True)(function)
        made.compile = _one_at_a_time(made.compile, folder / "lock")
        made._cache.save_overload = _where_there_is_room(made._cache.save_overload)
    except RuntimeError:  # there is no folder that can be written to
        made = numba.njit(**_OPTIONS)(function)
    finally:
        settings.CACHE_DIR = before
    return cast(Callable[P, T], made)


_COMPILING = threading.RLock()
_holders: dict[Path, int] = {}  # how often the thread that compiles has gone into each folder: functions call others


def _one_at_a_time(compile_it: Callable[..., Any], lock: Path) -> Callable[..., Any]:
    """numba looks on disk before it compiles, so whoever had to wait finds what it wants."""

    @wraps(compile_it)
    def alone(signature: Any) -> Any:
        with _COMPILING, _held(lock):
            return compile_it(signature)

    return alone


def _where_there_is_room(save: Callable[..., None]) -> Callable[..., None]:
    """What is compiled can be called all the same when a disk is full: numba would have its first call fail."""

    @wraps(save)
    def tried(signature: Any, made: Any) -> None:
        with suppress(OSError):
            save(signature, made)

    return tried


@contextmanager
def _held(lock: Path) -> Iterator[None]:
    """No other process is in here; one that dies is out."""
    depth = _holders.get(lock, 0)
    _holders[lock] = depth + 1
    try:
        if depth:
            yield
            return
        with _file_for(lock) as file:
            if file is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield
    finally:
        _holders[lock] = depth


@contextmanager
def _file_for(lock: Path) -> Iterator[IO[bytes] | None]:
    """The file that is locked; None where nothing can be written, so that each compiles for itself."""
    try:
        file = lock.open("ab")
    except OSError:
        yield None
        return
    with file:
        yield file


@cache
def _version(folder: Path) -> str:
    digest = hashlib.sha256(repr(sorted(_OPTIONS.items())).encode())
    for path in (*sorted(folder.glob("*.py")), *sorted(folder.parent.glob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]

"""What the C library does with memory that was freed."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

KEPT = 1 << 30  # bytes: far above what the tensors of a batch take, far below what a machine has
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # the numbers of mallopt's parameters in glibc
_PAGES = Path("/proc/self/statm")


def keep_freed_memory() -> None:
    """Let the tensors of one batch have the memory of the batch before, instead of giving it back in between.

    Large blocks would go back to the system at once and come again page by page, each page emptied by the kernel: a
    fifth of the time of scoring. Where the C library has no such choice, nothing changes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(TRIM_THRESHOLD, KEPT)
    mallopt(MMAP_THRESHOLD, KEPT)


def give_back_freed_memory() -> None:
    """Give the system what `keep_freed_memory` keeps: blocks so large that none like them may ever be wanted again."""
    if (trim := _trim()) is not None:
        trim(0)


class ScatteredMemory:
    """Gives back what is free between the blocks in use, of which tensors of ever other sizes leave more and more.

    That takes a moment, so it is done only when the process holds `least` bytes more than twice what it held when it
    was done last. What is kept is so at most about what is in use, and the times grow rare.
    """

    def __init__(self, least: int = KEPT) -> None:
        self._least = least
        self._held = 0  # bytes, when it was last done
        self._trim = _trim() if _PAGES.exists() else None

    def give_back(self) -> None:
        """Look, which costs microseconds, and give back if there is much."""
        if self._trim is None or _own() <= 2 * self._held + self._least:
            return
        self._trim(0)
        self._held = _own()


def _trim() -> Callable[[int], Any] | None:
    """That function of glibc, where it is there."""
    try:
        found: Callable[[int], Any] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
    return found


def _own() -> int:
    """Bytes that are here and of no file: a copy of a state in a file says nothing about blocks that were freed."""
    resident, shared = map(int, _PAGES.read_bytes().split()[1:3])
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")

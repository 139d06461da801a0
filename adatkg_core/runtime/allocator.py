"""What the C library does with memory that was freed."""

from __future__ import annotations

import ctypes

KEPT = 1 << 30  # bytes: far above what the tensors of a batch take, far below what a machine has
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # the numbers of mallopt's parameters in glibc


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

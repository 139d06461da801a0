"""Large tensors that stay for long, in memory of their own: in huge pages, and no page is there before it is wanted.

What compiled commits touch lies all over such tensors. In small pages the processor would look up for most of it where
it is, which a state of a million entities makes dearer than one of a thousand; and making each page costs a stop.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # commands that compute nothing start without it
    import torch
    from torch import Tensor

LEAST = 4 << 20  # bytes: what is smaller is made as any tensor
_HUGE = 2 << 20  # bytes of a huge page


def lasting_zeros(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """A tensor of zeros on the CPU; a large one goes back to the system as soon as nobody has it."""
    import torch

    count = math.prod(shape)
    size = count * dtype.itemsize
    if size < LEAST:
        return torch.zeros(tuple(shape), dtype=dtype, device="cpu")
    # Private: else growing it in a forked process would be seen here.
    room = mmap.mmap(-1, size + _HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a system without huge pages
            room.madvise(mmap.MADV_HUGEPAGE)
    start = -torch.frombuffer(room, dtype=torch.uint8).data_ptr() % _HUGE
    return torch.frombuffer(room, dtype=dtype, count=count, offset=start).view(tuple(shape))

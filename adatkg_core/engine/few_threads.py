"""How many threads a read gets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

FEW = 1 << 17  # scores; for fewer, waking another thread up takes longer than it would save


@contextmanager
def threads_for(scores: int) -> Iterator[None]:
    """One thread while it lasts if few scores are made. Not for what changes a state: threads decide how sums round."""
    threads = torch.get_num_threads()
    if scores >= FEW or threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)

"""What only a GPU needs: sums in a fixed order, and copies that nobody waits for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


@contextmanager
def ordered_sums(device: torch.device) -> Iterator[None]:
    """While this lasts, sums on a GPU are made in an order of their own choice but always the same one.

    An operation that knows no such order warns and goes on.
    """
    if device.type != "cuda":
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else its products warn, too
    before = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warns)


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """A tensor of the host's on a device; to a GPU it goes from pinned memory, while the host goes on."""
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values.to(device)

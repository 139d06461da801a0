"""What is computed of rows, kept from read to read until somebody says which of them are stale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from adatkg_core.state import grown

Index = Any  # a slice or a tensor of rows


class KeptRows:
    """Rows of entities, computed when they are first wanted, and again when they are stale."""

    def __init__(self) -> None:
        self._tensors: tuple[Tensor, ...] = ()
        self._known = 0
        self._stale: list[Tensor] = []
        self._several = 0  # rows in these

    def renew(self, rows: Tensor) -> None:
        """These are stale."""
        if not self._tensors or rows.shape[0] == 0:
            return
        self._stale.append(rows)
        self._several += rows.shape[0]
        if 2 * self._several > self._known:  # or nobody has asked for long: all are as quickly computed
            self._forget()

    def get(self, entities: int, n: int, compute: Callable[[Index], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """The first n rows; those from `entities` on belong to strangers and are computed each time."""
        if not self._tensors:
            self._tensors = tuple(grown(part, n) for part in compute(slice(0, n)))
        else:
            if self._known < n:
                self._write(slice(self._known, n), compute)
            if self._stale:
                self._write(torch.cat(self._stale), compute)
        self._stale.clear()
        self._known, self._several = entities, 0
        return tuple(part[:n] for part in self._tensors)

    def _forget(self) -> None:
        self._tensors, self._several = (), 0
        self._stale.clear()

    def _write(self, rows: Index, compute: Callable[[Index], tuple[Tensor, ...]]) -> None:
        if isinstance(rows, slice):
            self._tensors = tuple(grown(part, rows.stop) for part in self._tensors)
        for part, values in zip(self._tensors, compute(rows), strict=True):
            part[rows] = values

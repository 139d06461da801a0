"""What changed of a graph's state since an earlier snapshot of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from adatkg_core.engine.snapshot import Snapshot
from adatkg_core.errors import InputError
from adatkg_core.state import NAME_TENSORS


@dataclass(frozen=True)
class Increment:
    """Rows that were written since a snapshot, and those that are new; with that snapshot it gives a whole one."""

    tensors: dict[str, Tensor]  # the changed rows of each, then the new ones; all of those that have no kind
    rows: dict[str, Tensor]  # by kind: which rows changed [n], ascending
    kinds: dict[str, str]  # by tensor
    meta: dict[str, Any]  # as of a snapshot, with the new entities only

    def upon(self, base: Snapshot) -> Snapshot:
        """The whole snapshot, for which the base gives its tensors away; what does not fit together is refused."""
        try:
            entities = [*base.meta["entities"], *self.meta["entities"]]
            tensors = {name: self._merged(name, base.tensors) for name in self.tensors}
        except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as error:
            raise InputError(f"snapshot: what changed does not fit what it changes ({error!s:.200})") from error
        return Snapshot(tensors, self.meta | {"entities": entities})

    def _merged(self, name: str, base: dict[str, Tensor]) -> Tensor:
        values, kind = self.tensors[name], self.kinds.get(name)
        if kind is None:
            return values
        old, rows = base.pop(name), _changed(name, self.rows[kind])
        if (
            old.dtype != values.dtype
            or old.shape[1:] != values.shape[1:]
            or rows.dtype != torch.int64
            or len(values) < len(rows)
        ):
            raise ValueError(f"tensor {name} has another shape, length or type")
        if rows.numel() and not 0 <= int(rows.min()) <= int(rows.max()) < old.shape[0]:
            raise ValueError(f"tensor {name} changes rows that are not there")
        merged = torch.cat((old, values[rows.shape[0] :]))
        merged[rows] = values[: rows.shape[0]]
        return merged


def _changed(name: str, rows: Tensor) -> Tensor:
    """Which rows of a tensor changed: none where they are had by name alone."""
    return rows[:0] if name in NAME_TENSORS else rows

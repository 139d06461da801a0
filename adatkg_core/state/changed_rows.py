"""Which rows of a state were written since a moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

_NOTED = 256  # writes that are noted one by one before they are summed up


class ChangedRows:
    """Of the rows in use at a moment, those written since then; whatever is behind these is new altogether."""

    def __init__(self, used: Mapping[str, int], device: torch.device) -> None:
        """`used` says how many rows of each kind there were."""
        self.used = dict(used)
        self._written = {kind: torch.zeros(rows, dtype=torch.bool, device=device) for kind, rows in used.items()}
        self._noted: dict[str, list[Tensor]] = {kind: [] for kind in used}

    def note(self, kind: str, index: Any) -> None:
        """Rows of a kind are written; of a kind that it does not know nothing is kept."""
        noted = self._noted.get(kind)
        if noted is None:
            return
        rows = index[0] if isinstance(index, tuple) else index
        if not noted or noted[-1] is not rows:  # several tensors of a kind are written at the same rows
            noted.append(rows)
        if len(noted) >= _NOTED:
            self._sum_up(kind)

    def between(self, kind: str, start: int, end: int) -> Tensor:
        """The written rows of a kind in a range, ascending [n]."""
        self._sum_up(kind)
        return self._written[kind][start:end].nonzero().squeeze(1) + start

    def _sum_up(self, kind: str) -> None:
        if noted := self._noted[kind]:
            rows = torch.cat(noted)
            self._written[kind][rows[rows < self.used[kind]]] = True
            noted.clear()

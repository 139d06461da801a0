"""Which rows of a state were written since a moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from adatkg_core.runtime import lasting_zeros

_NOTED = 256  # writes that are noted one by one before they are summed up
_ROWS = 1 << 16  # rows of them: a copy begins with what is not summed up, and the stream waits for that


class ChangedRows:
    """Of the rows in use at a moment, those written since then; whatever is behind these is new altogether."""

    def __init__(self, used: Mapping[str, int], device: torch.device) -> None:
        """`used` says how many rows of each kind there were."""
        self.used = dict(used)
        # Made while the stream waits, so on the CPU a page of them takes no time before a row in it is written.
        self._written = {
            kind: lasting_zeros((rows,), torch.bool)
            if device.type == "cpu"
            else torch.zeros(rows, dtype=torch.bool, device=device)
            for kind, rows in used.items()
        }
        self._noted: dict[str, list[Tensor]] = {kind: [] for kind in used}
        self._waiting = dict.fromkeys(used, 0)  # rows in these

    def note(self, kind: str, index: Any) -> None:
        """Rows of a kind are written; of a kind that it does not know nothing is kept."""
        noted = self._noted.get(kind)
        if noted is None:
            return
        rows = index[0] if isinstance(index, tuple) else index
        if not noted or noted[-1] is not rows:  # several tensors of a kind are written at the same rows
            noted.append(rows)
            self._waiting[kind] += rows.shape[0]
        if len(noted) >= _NOTED or self._waiting[kind] >= _ROWS:
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
            self._waiting[kind] = 0

"""What the recall head reads of a state once: it stays as it is until a commit, so all queries between two share it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from adatkg_core.state import ragged


@dataclass(frozen=True)
class FarEnd:
    """Who was seen at the far end of some relations, one relation after the other."""

    owner: Tensor  # [M] which of the relations asked for, ascending
    other: Tensor  # [M]
    features: Tensor  # [M, …]
    value: Tensor  # [M] what that is worth


class FarEnds:
    """Far ends as of one time, each relation's read when it is first asked for."""

    def __init__(self, time: int) -> None:
        self.time = time
        self._kept: FarEnd | None = None
        self._start = self._size = torch.empty(0, dtype=torch.int64)  # [2R]; a start of -1: not read yet

    def of(self, kinds: Tensor, relations: int, read: Callable[[Tensor], FarEnd]) -> FarEnd:
        """Those of distinct relations [Q] out of `relations`; `read` gets the ones that are not here yet."""
        if self._kept is None:
            self._kept = found = read(kinds)
            self._start, self._size = torch.full((2, relations), -1, device=kinds.device)
            self._note(kinds, found, 0)
            return found
        missing = kinds[self._start[kinds] < 0]
        if missing.shape[0]:
            before, more = self._kept, read(missing)
            self._note(missing, more, before.other.shape[0])
            self._kept = FarEnd(
                torch.cat((before.owner, more.owner)),
                torch.cat((before.other, more.other)),
                torch.cat((before.features, more.features)),
                torch.cat((before.value, more.value)),
            )
        owner, offset = ragged(self._size[kinds])
        at = self._start[kinds][owner] + offset
        return FarEnd(owner, self._kept.other[at], self._kept.features[at], self._kept.value[at])

    def _note(self, kinds: Tensor, found: FarEnd, start: int) -> None:
        size = torch.bincount(found.owner, minlength=kinds.shape[0])
        self._size[kinds] = size
        self._start[kinds] = start + size.cumsum(0) - size


@dataclass
class RecallView:
    """What has been read so far of so many entities; it belongs to a state as it stands, and to certain parameters."""

    entities: int
    _far_ends: dict[str, FarEnds] = field(default_factory=dict)
    _names: Tensor | None = None

    def far_ends(self, table: str, time: int) -> FarEnds:
        """Those of a table, as of a time; of another time before, nothing is kept."""
        if table not in self._far_ends or self._far_ends[table].time != time:
            self._far_ends[table] = FarEnds(time)
        return self._far_ends[table]

    def names(self, text: Tensor, project: Callable[[Tensor], Tensor]) -> Tensor:
        """The projected names of `text` [n, T]: of the entities once, of strangers behind them each time."""
        if self._names is None:
            self._names = project(text[: self.entities])
        strangers = text[self.entities :]
        return torch.cat((self._names, project(strangers))) if strangers.shape[0] else self._names

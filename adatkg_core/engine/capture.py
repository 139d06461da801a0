"""A snapshot in the making: what it is to hold is fixed at once, and copied while the engine goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from adatkg_core.engine.increment import Increment
from adatkg_core.engine.snapshot import Snapshot
from adatkg_core.state import StateCapture


@dataclass(frozen=True)
class EngineCapture:
    """Everything needed to go on from one moment; `copy` runs on the engine's thread, `finished` on any."""

    state: StateCapture
    pending: Tensor  # [n, 3]
    names: list[str]  # of the catalog, which only grows: the first of them are those of the moment
    meta: dict[str, Any]  # of the snapshot, without its entities

    def copy(self) -> Iterator[None]:
        """Copies in small steps, between which the engine may be used."""
        return self.state.copy()

    @property
    def size(self) -> int:
        """Bytes of its tensors, once they are copied."""
        return self.state.size

    def let_go(self) -> None:
        """The copies are not wanted any more; giving back what a large one takes is a moment's work, on any thread."""
        self.state.let_go()

    @property
    def is_whole(self) -> bool:
        """Whether it is of all, not only of what changed."""
        return self.state.since is None

    def snapshot(self) -> Snapshot:
        """What was captured of all, once the copy has come to its end."""
        return Snapshot(self._tensors(), self._meta())

    def increment(self) -> Increment:
        """What was captured of the changes, once the copy has come to its end."""
        kinds = {name: kind for name, kind in self.state.kinds.items() if kind is not None}
        return Increment(self._tensors(), self.state.rows, kinds, self._meta())

    def _tensors(self) -> dict[str, Tensor]:
        return self.state.tensors() | {"pending": self.pending}

    def _meta(self) -> dict[str, Any]:
        names = self.names[self.state.first_new("entity") : self.state.used["entity"]]
        return self.meta | {"pages": self.state.pages, "entities": names}

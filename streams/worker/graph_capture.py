"""The state of one graph as of one moment, which is copied while batches go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from adatkg_core.engine import EngineCapture
from adatkg_core.state import ChangedRows
from adatkg_core.storage import Saved, SavedIncrement, Standing


@dataclass(frozen=True)
class SnapshotBase:
    """A whole snapshot that is durable, and what changed since."""

    offset: int
    size: int  # bytes
    changes: ChangedRows


@dataclass(frozen=True)
class GraphCapture(Standing):
    """All of a state, or what changed since the snapshot `base`."""

    engine: EngineCapture
    base: SnapshotBase | None
    changes: ChangedRows  # since the moment of the whole snapshot

    def copy(self) -> Iterator[None]:
        """Copies in small steps, on the device's thread."""
        return self.engine.copy()

    def saved(self) -> Saved | SavedIncrement:
        """What is to be written, once the copy has come to its end; touches no device."""
        if self.base is None:
            return Saved(self.engine.snapshot(), **self.standing())
        return SavedIncrement(self.engine.increment(), self.base.offset, **self.standing())

    def let_go(self) -> None:
        """It is written, or cannot be."""
        self.engine.let_go()

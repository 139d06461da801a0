"""The state of one graph as of one moment, which is copied while batches go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from adatkg_core.engine import EngineCapture
from adatkg_core.state import ChangedRows
from adatkg_core.storage import LastEvent, Saved, SavedIncrement


@dataclass(frozen=True)
class SnapshotBase:
    """A whole snapshot that is durable, and what changed since."""

    offset: int
    size: int  # bytes
    changes: ChangedRows


@dataclass(frozen=True)
class GraphCapture:
    """All of a state, or what changed since the snapshot `base`; the rest is as in `Saved`."""

    engine: EngineCapture
    base: SnapshotBase | None
    changes: ChangedRows  # since the moment of the whole snapshot
    graph: str
    version: str
    offset: int
    known_through: int | None
    log: str
    origins: tuple[tuple[int, int], ...]
    last: LastEvent | None

    def copy(self) -> Iterator[None]:
        """Copies in small steps, on the device's thread."""
        return self.engine.copy()

    def saved(self) -> Saved | SavedIncrement:
        """What is to be written, once the copy has come to its end; touches no device."""
        place = (self.graph, self.version, self.offset, self.known_through, self.log, self.origins, self.last)
        if self.base is None:
            return Saved(self.engine.snapshot(), *place)
        return SavedIncrement(self.engine.increment(), self.base.offset, *place)

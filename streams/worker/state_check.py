"""Whether a state is of the log as it is now: an unclean election, or a disk that was put back, takes events away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from adatkg_core.storage import LastEvent, Place, Saved

log = structlog.get_logger()


@dataclass
class StateCheck:
    """One partition's log, with which the states of a graph are compared."""

    log_id: str
    first: int  # the first offset that is still kept
    end: int  # the offset that the next event will get
    holds: Callable[[LastEvent], bool]  # whether this event stands where it stood
    refused: list[Place] = field(default_factory=list)  # states with events that this log has lost, the newest first

    def accepts(self, saved: Saved) -> bool:
        """Whether a state holds events of this log alone, as far as its end and its last event tell."""
        if saved.log in ("", self.log_id) and saved.offset <= self.end and self._has_last_of(saved):
            return True
        log.warning("snapshot_of_another_log", graph=saved.graph, offset=saved.offset, end=self.end)
        if saved.log == self.log_id:
            self.refused.append(saved.place)
        return False

    def _has_last_of(self, saved: Saved) -> bool:
        return saved.last is None or saved.last.offset < self.first or self.holds(saved.last)

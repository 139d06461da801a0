"""Keeps a demonstration live on a machine that is slower than its stream."""

from __future__ import annotations

MOST = 2_000  # events that may wait in the log; a day of the stream has some hundreds
CAUGHT_UP = 200


class Pace:
    """Holds the stream back from when too many events wait for the worker until it has caught up."""

    def __init__(self) -> None:
        self._holds = False

    def heed(self, lag: float | None) -> None:
        """So many events wait; None: nobody knows, and all stays as it is."""
        if lag is not None:
            self._holds = lag > (CAUGHT_UP if self._holds else MOST)

    def holds(self) -> bool:
        """Whether nothing more should be published for now."""
        return self._holds

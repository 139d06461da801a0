"""Waiting for brokers and stores that are away: they come back, and no event may be lost meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import structlog

from adatkg_core.errors import AdatkgError

PAUSE = 2.0  # seconds before loading or catching up is tried again
T = TypeVar("T")
log = structlog.get_logger()


class Retry:
    """Tries again until it works or the worker ends."""

    def __init__(self) -> None:
        self._ended = threading.Event()

    @property
    def ended(self) -> bool:
        """Whether the worker ends."""
        return self._ended.is_set()

    def run(self, work: Callable[[], T], what: str) -> T:
        """The result of some work on what is named; raises its error only when the worker ends."""
        while True:
            try:
                return work()
            except AdatkgError as error:
                log.error("loading_failed", what=what, problem=str(error), again_in=PAUSE)
                if self._ended.wait(PAUSE):
                    raise

    def end(self) -> None:
        """Called from any thread when the worker ends: what waits for a broker or a store waits no longer."""
        self._ended.set()

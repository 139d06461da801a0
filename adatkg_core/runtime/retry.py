"""Waiting for brokers and stores that are away: they come back, and nothing may be lost meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

import structlog

from adatkg_core.errors import AdatkgError

PAUSE = 1.0  # seconds before what failed is tried again where pauses grow: twice as long after each further failure
LONGEST = 60.0  # seconds: no pause is longer, so that what is mended is noticed within a minute
T = TypeVar("T")
log = structlog.get_logger()


class Retry:
    """Does work again, after a pause, for as long as it fails because something is away; each failure is told."""

    def __init__(
        self,
        event: str,
        away: type[Exception] = AdatkgError,
        pause: float = 2.0,
        level: Literal["warning", "error"] = "error",
    ) -> None:
        """`event` names the log line, `away` the errors that another attempt can help; pauses are in seconds."""
        self._event, self._away, self._pause, self._level = event, away, pause, level
        self._ended = threading.Event()

    @property
    def ended(self) -> bool:
        """Whether nothing is waited for any more."""
        return self._ended.is_set()

    def run(self, work: Callable[[], T], what: str) -> T:
        """The result of some work on what is named; raises its error only after `end`."""
        while True:
            try:
                return work()
            except self._away as error:
                self._tell(error, what)
                if self._ended.wait(self._pause):
                    raise

    async def run_async(self, work: Callable[[], Awaitable[T]], what: str) -> T:
        """The same on an event loop, where whoever waits no longer cancels it."""
        while True:
            try:
                return await work()
            except self._away as error:
                self._tell(error, what)
                await asyncio.sleep(self._pause)

    def end(self) -> None:
        """Called from any thread: what waits in `run` waits no longer."""
        self._ended.set()

    def _tell(self, error: Exception, what: str) -> None:
        # Errors of ours say all in their text, those of libraries often only in their name.
        problem = str(error) if isinstance(error, AdatkgError) else repr(error)
        getattr(log, self._level)(self._event, what=what, problem=problem, again_in=self._pause)


def growing_pause(failures: int) -> float:
    """Seconds to wait after so many failures before the latest one."""
    return min(LONGEST, PAUSE * 2.0 ** min(failures, 32))


def wait_until(holds: Callable[[], bool], within: float, every: float) -> bool:
    """Look every so many seconds whether something holds; False if it does not within the time."""
    deadline = time.monotonic() + within
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True

"""How far long work has come: a bar with rate and time left on a terminal, elsewhere a log line a minute."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Task as RichTask
from rich.text import Text

from adatkg.console.output import stderr

# Stage, done, of how many; None where nobody knows.
Report = Callable[[str, int, int | None], None]

_INTERVAL = 60.0  # seconds from one log line to the next

log = structlog.get_logger()


@contextmanager
def progress_bar() -> Iterator[Report]:
    """Gives a function (stage, done, total) that draws, or logs where nobody could see a drawing."""
    if not stderr.is_terminal:
        yield ProgressLog()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr, transient=True) as bars:
        yield _Bar(bars)


class ProgressLog:
    """A log line a minute at most; work that takes less than one is silent.

    What the worker on it has bound to the log's context, such as the epoch of a training, stands in the line too.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said = clock()
        self._stage, self._done = "", 0
        self._began, self._first = self._said, 0  # when this stage was first heard of, and what was done by then

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Take the news, and log them if it is time."""
        now = self._clock()
        if stage != self._stage or done < self._done:
            self._stage, self._began, self._first = stage, now, done
        self._done = done
        if now - self._said < _INTERVAL:
            return
        self._said = now
        log.info("progress", stage=stage, done=done, total=total, **self._outlook(now, done, total))

    def _outlook(self, now: float, done: int, total: int | None) -> dict[str, float]:
        """The share that is done and the seconds left in this stage, as far as they can be told."""
        if not total:
            return {}
        share = {"share": round(done / total, 3)}
        fresh = done - self._first
        return share if fresh <= 0 else share | {"seconds_left": round((total - done) * (now - self._began) / fresh)}


class _Bar:
    """The present stage's bar; a new stage, or the same one from its beginning, starts a new bar."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task = bars.add_task("", total=None)
        self._stage = ""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if stage != self._stage:
            self._bars.remove_task(self._task)
            self._task = self._bars.add_task(stage, total=total)
        self._bars.update(self._task, completed=done, total=total)
        self._stage = "" if total is not None and done >= total else stage


class _Rate(ProgressColumn):
    """How many a second."""

    def render(self, task: RichTask) -> Text:
        """The rate of this task."""
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")

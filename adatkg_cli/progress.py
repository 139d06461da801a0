"""A progress bar with rate and time left, shown on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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

from adatkg_cli.output import stderr

Report = Callable[[str, int, int], None]


class _Rate(ProgressColumn):
    """How many a second."""

    def render(self, task: RichTask) -> Text:
        """The rate of this task."""
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")


@contextmanager
def progress_bar() -> Iterator[Report]:
    """Gives a function (stage, done, total) that draws; a new stage starts a new bar."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as bars:
        task = bars.add_task("", total=None)
        stage = ""

        def report(name: str, done: int, total: int) -> None:
            nonlocal stage, task
            if name != stage:
                bars.remove_task(task)
                task = bars.add_task(name, total=total)
                stage = name
            bars.update(task, completed=done, total=total)
            if done >= total:
                stage = ""

        yield report

"""A running demonstration as a panel in the terminal, or as log lines where there is none."""

from __future__ import annotations

import time
import webbrowser
from typing import TYPE_CHECKING

import structlog
from rich.console import Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from adatkg.console.output import printable, stderr
from adatkg.console.times import asked_about
from adatkg.demo.observer import Watch
from adatkg.demo.plan import DATASET
from adatkg.demo.system import System
from adatkg_core.clock import readable

if TYPE_CHECKING:
    from adatkg_core.clock import Clock
    from streams.client import Prediction

_NEWS = 3  # of what happened lately
_CANDIDATES = 3
_BEHIND = 2_000  # events from which on the worker counts as behind; a day comes at once and has some 750
_SUBJECT, _RELATION = "Police (Kenya)", "Make statement"  # are in the data throughout
_LINE = 10.0  # seconds between two log lines
log = structlog.get_logger()


class Terminal:
    """A panel that is drawn anew at each look."""

    level = "warning"

    def __init__(self, browser: bool) -> None:
        self._browser = browser
        self._live = Live(console=stderr, auto_refresh=False)

    def begin(self, system: System) -> None:
        """Says what the bar that comes is about."""
        stderr.print(f"a first model learns from {system.past:,} facts; meanwhile Kafka and the worker start …")

    def welcome(self, system: System) -> None:
        """Where things are; the browser opens."""
        stderr.print(f"Kafka      {system.connection.bootstrap}")
        stderr.print(f"Dashboard  {system.dashboard}")
        stderr.print(f"Token      {system.token}  for whatever changes something in the dashboard")
        stderr.print("Ask it from a second terminal:")
        stderr.print(f"  {entrance(system)}", soft_wrap=True, markup=False)
        stderr.print(f"  adatkg ask {DATASET} {_SUBJECT!r} {_RELATION!r}", soft_wrap=True, markup=False)
        self._live.start()
        if self._browser:
            webbrowser.open(system.dashboard)

    def show(self, system: System, watch: Watch) -> None:
        """Draw it."""
        self._live.update(panel(system, watch), refresh=True)

    def farewell(self) -> None:
        """The last picture stays."""
        self._live.stop()
        stderr.show_cursor()  # also where the training of the first model was interrupted
        stderr.print("stopping everything …")


class Log:
    """A line now and then, and one for each thing that happened."""

    level = "info"

    def __init__(self) -> None:
        self._told, self._next = 0, 0.0

    def begin(self, system: System) -> None:
        """Log lines of the training follow."""
        log.info("demo_learns", facts=system.past)

    def welcome(self, system: System) -> None:
        """Where things are."""
        log.info(
            "demo_begins",
            bootstrap=system.connection.bootstrap,
            dashboard=system.dashboard,
            second_terminal=entrance(system),
        )

    def show(self, system: System, watch: Watch) -> None:
        """Tell what is new."""
        for news in watch.story.news[self._told :]:
            log.info("demo_news", news=news)
        self._told = len(watch.story.news)
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _LINE
        pages = watch.pages
        log.info(
            "demo",
            time=_date(system.clock, pages.watermark),
            facts=system.facts,
            predictions=watch.predictions,
            events_per_second=round(pages.pace, 1),
            lag=pages.lag,
            mrr=watch.mrr,
            mrr_of_late=pages.score.get("mrr"),
            heuristic_of_late=(pages.heuristic or {}).get("mrr"),
            version=pages.version,
            trainer=watch.story.doing,
        )

    def farewell(self) -> None:
        """It ends."""
        log.info("demo_ends")


def entrance(system: System) -> str:
    """What a second terminal is told, so that commands there find this system."""
    return f"export ADATKG_BOOTSTRAP={system.connection.bootstrap}"


def panel(system: System, watch: Watch) -> RenderableType:
    """All there is to see, in one frame."""
    pages, story = watch.pages, watch.story
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column(overflow="fold")
    bar = Table.grid(padding=(0, 2))
    bar.add_row(_date(system.clock, pages.watermark), ProgressBar(1.0, system.share, width=30), f"{system.share:.0%}")
    rows.add_row("stream", bar)
    behind = f", {pages.lag:,.0f} events behind" if pages.lag and pages.lag > _BEHIND else ""
    refused = f", {pages.refused:,.0f} refused" if pages.refused else ""
    rows.add_row("taken in", f"{system.facts:,} facts, {pages.pace:,.0f} events/s{behind}{refused}")
    rows.add_row("predicted", f"{watch.predictions:,}, MRR {_score(watch.mrr)}")
    count = pages.score.get("count") or 0
    rows.add_row(f"last {count:,}", f"MRR {_score(pages.score.get('mrr'))}{_heuristic(pages.heuristic)}")
    rows.add_row("model", f"{pages.version or '–'}{f', the {story.swaps + 1}. in use' if story.swaps else ''}")
    rows.add_row("trainer", story.doing)
    rows.add_row("latest", Text("\n").join(_latest(watch.last)))
    news = [Text(line, style="dim", overflow="fold") for line in story.news[-_NEWS:]]
    end = "the stream has ended, all stays up; " if system.is_published else ""
    return Panel(Group(rows, *news), title="AdaTKG on ICEWS14", subtitle=f"{system.dashboard}   {end}Ctrl-C stops all")


def _latest(forecast: Prediction | None) -> list[Text]:
    """The question, the best answers, and what then happened where the question asked for its rank."""
    if forecast is None:
        return [Text("–")]
    query = forecast.query
    asked = [query.get("s") or "?", query["r"], query.get("o") or "?"]
    best = [f"{answer.entity} {answer.probability:.0%}" for answer in forecast.top[:_CANDIDATES]]
    truth = [f"{entity}, place {rank:g}" for entity, rank in forecast.ranks.items()]
    lines = [(f"{asked_about(forecast)}: {' | '.join(asked)}", ""), ("  ".join(best), "dim")]
    if truth:
        lines.append((f"it was {'; '.join(truth)}", ""))
    return [Text(printable(line), style=style) for line, style in lines]


def _heuristic(scores: dict[str, float] | None) -> str:
    return "" if scores is None else f", recurrency heuristic {_score(scores.get('mrr'))}"


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _date(clock: Clock | None, tick: int | None) -> str:
    return "–" if tick is None else readable(clock, tick)

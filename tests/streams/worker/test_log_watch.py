"""A log that is not the one that was read is noticed, and nothing of it is taken for the old one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adatkg_core.errors import AdatkgError
from streams.kafka import Connection, EventLog, Topics
from streams.worker import IncidentKind, Incidents, LogRemade, LogWatch
from streams.worker.log_watch import _Look


class Watched(LogWatch):
    """Sees what a test says."""

    def __init__(
        self, reached: dict[int, int | None], *looks: _Look | AdatkgError, known: EventLog | None = None
    ) -> None:
        self.abandoned: list[dict[int, int]] = []
        self.incidents, self._looks = Incidents(), list(looks)
        parts = Connection("127.0.0.1:1"), Topics(), self.incidents
        super().__init__(*parts, lambda: reached, self._give_up, lambda: known)

    async def _give_up(self, offsets: dict[int, int]) -> None:
        self.abandoned.append(offsets)

    def _look(self, partitions: Any) -> _Look:
        look = self._looks.pop(0)
        if isinstance(look, AdatkgError):
            raise look
        return look


def seen(log_id: str, *ends: int, models: str | None = None) -> _Look:
    bounds = {number: (2, end) for number, end in enumerate(ends)}
    return _Look(EventLog(log_id, len(ends)), bounds, EventLog(models, 1) if models else None)


async def look(watch: LogWatch, times: int) -> None:
    for _ in range(times):
        await watch.look()


def test_a_topic_that_was_made_anew_is_read_from_its_beginning() -> None:
    watch = Watched({0: 5, 1: None}, seen("a", 9, 9), AdatkgError("the topic is not there"), seen("b", 30, 30))
    asyncio.run(look(watch, 2))
    assert watch.abandoned == [] and watch.incidents.open() == [], "what is not seen tells nothing"
    with pytest.raises(LogRemade, match="its id was a and is b"):
        asyncio.run(look(watch, 1))
    assert watch.abandoned == [{}], "what is committed names the log before, so nothing has to be committed"
    assert [(one.graph, one.kind) for one in watch.incidents.open()] == [("", IncidentKind.LOG_REMADE)]


def test_a_partition_that_ends_before_what_was_read_of_it_was_cut() -> None:
    watch = Watched({0: 9, 1: 4}, seen("a", 9, 4), seen("a", 7, 5))
    with pytest.raises(LogRemade, match="partition 0 was read up to 9 and now ends at 7"):
        asyncio.run(look(watch, 2))
    assert watch.abandoned == [{0: 7}]


def test_the_ends_are_known_before_anything_is_delivered_and_unknown_ones_are_not_zero() -> None:
    watch = Watched({0: None}, seen("a", 9))
    assert watch.end(0) is None and watch.first(0) is None
    asyncio.run(look(watch, 1))
    assert (watch.first(0), watch.end(0), watch.end(1)) == (2, 9, None)


def test_a_topic_that_was_made_anew_between_loading_and_the_first_look_is_noticed() -> None:
    watch = Watched({0: None}, seen("b", 9), known=EventLog("a", 1))
    with pytest.raises(LogRemade, match="its id was a and is b"):
        asyncio.run(look(watch, 1))


def test_a_look_says_whether_the_log_was_seen() -> None:
    watch = Watched({0: None}, seen("a", 9), AdatkgError("the topic is not there"))
    assert [asyncio.run(watch.look()) for _ in range(2)] == [True, False]


def test_an_announcements_topic_that_was_made_anew_is_noticed_once_and_ends_nothing() -> None:
    looks = [seen("a", 9, models=models) for models in ("m", None, "n", "n")]
    watch = Watched({0: None}, *looks)
    heard: list[int] = []

    async def hear() -> None:
        heard.append(len(watch._looks))

    watch.on_models_remade = hear
    asyncio.run(look(watch, 4))
    assert heard == [1] and watch.abandoned == []

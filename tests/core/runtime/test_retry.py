"""What is away is waited for, and nobody is when the program ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from adatkg_core.errors import AdatkgError
from adatkg_core.runtime import Retry, wait_until


class Store:
    """Is away twice, then here."""

    def __init__(self) -> None:
        self._found: Iterator[AdatkgError | str] = iter([AdatkgError("away"), AdatkgError("still away"), "here"])

    def read(self) -> str:
        found = next(self._found)
        if isinstance(found, AdatkgError):
            raise found
        return found

    async def read_async(self) -> str:
        return self.read()


@pytest.mark.parametrize("on_a_loop", [False, True])
def test_what_is_away_is_waited_for_and_each_attempt_is_told(on_a_loop: bool) -> None:
    retry, store = Retry("loading_failed", pause=0.01), Store()
    with capture_logs() as said:
        if on_a_loop:
            assert asyncio.run(retry.run_async(store.read_async, "graph g")) == "here"
        else:
            assert retry.run(store.read, "graph g") == "here"
    told = [(line["event"], line["log_level"], line["what"], line["problem"]) for line in said]
    line = ("loading_failed", "error", "graph g")
    assert told == [(*line, "away"), (*line, "still away")]


def test_an_error_of_a_library_is_told_by_its_name_and_at_the_level_that_was_asked_for() -> None:
    failures = iter([KeyError("x")])

    def work() -> None:
        for failure in failures:
            raise failure

    with capture_logs() as said:
        Retry("read_failed", KeyError, 0.0, level="warning").run(work, "a file")
    assert [(line["log_level"], line["problem"]) for line in said] == [("warning", "KeyError('x')")]


def test_a_program_that_ends_waits_for_nobody() -> None:
    waiting = Retry("loading_failed", pause=60.0)
    failed = threading.Event()

    def away() -> None:
        failed.set()
        raise AdatkgError("away")

    raised: list[BaseException] = []

    def load() -> None:
        try:
            waiting.run(away, "graph g")
        except AdatkgError as error:
            raised.append(error)

    thread = threading.Thread(target=load)
    thread.start()
    assert failed.wait(10)
    waiting.end()
    thread.join(30)
    assert [str(error) for error in raised] == ["away"] and waiting.ended


def test_a_mistake_of_ours_is_not_tried_again() -> None:
    with pytest.raises(ZeroDivisionError):
        Retry("loading_failed").run(lambda: 1 / 0, "graph g")


def test_a_look_follows_a_look_until_something_holds_or_the_time_is_up() -> None:
    looks = iter([False, False, True])
    assert wait_until(lambda: next(looks), within=60.0, every=0.0)
    assert next(looks, "none") == "none"
    assert not wait_until(lambda: False, within=0.0, every=0.0)

"""Loading waits for stores and brokers that are away, and for nobody when the worker ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from adatkg_core.errors import AdatkgError
from streams.worker import Retry, retry


def test_what_is_away_is_waited_for_and_each_attempt_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "PAUSE", 0.01)
    attempts: Iterator[AdatkgError | str] = iter([AdatkgError("away"), AdatkgError("still away"), "here"])

    def work() -> str:
        found = next(attempts)
        if isinstance(found, AdatkgError):
            raise found
        return found

    with capture_logs() as said:
        assert Retry().run(work, "graph g") == "here"
    assert [(line["what"], line["problem"]) for line in said] == [("graph g", "away"), ("graph g", "still away")]


def test_a_worker_that_ends_waits_for_nobody() -> None:
    waiting = Retry()
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
    thread.join(retry.PAUSE * 0.9)
    assert [str(error) for error in raised] == ["away"] and waiting.ended


def test_a_mistake_of_ours_is_not_tried_again() -> None:
    with pytest.raises(ZeroDivisionError):
        Retry().run(lambda: 1 / 0, "graph g")

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from streams import service

Say = Callable[[float, str], list[str]]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch) -> Say:
    """Lets a library say something at a moment; returns what of it reaches the log."""
    handler = service._Forward()

    def at(moment: float, message: str) -> list[str]:
        monkeypatch.setattr("time.monotonic", lambda: moment)
        with capture_logs() as said:
            handler.emit(logging.LogRecord("library", logging.ERROR, "", 0, message, None, None))
        return [str(entry["message"]) for entry in said]

    return at


def test_what_a_library_repeats_is_told_once_in_a_while(say: Say) -> None:
    assert say(1.0, "away") == ["away"]
    assert say(1.1, "away") == []
    assert say(1.2, "back") == ["back"]
    assert say(1.0 + service.QUIET, "away") == ["away"]


def test_a_new_broker_that_is_not_there_yet_for_groups_is_no_error_unless_it_stays_so(say: Say) -> None:
    message = "Group Coordinator Request failed: [Error 15] GroupCoordinatorNotAvailableError"
    assert say(1.0, message) == []
    assert say(1.5, message) == []
    assert say(1.0 + service.QUIET, message) == [message]

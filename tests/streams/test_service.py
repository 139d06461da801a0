from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import IllegalGenerationError, KafkaConnectionError
from structlog.testing import capture_logs

from streams import service
from streams.kafka import Connection, Topics
from streams.settings import StreamSettings
from streams.worker import LogRemade

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


# -- brokers that are lost --------------------------------------------------------------------------------------


class Replaced(Exception):
    """Stands in for the moment at which another program takes the process over."""


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """Runs the service with a Faust that ends with this; no signal handler, log or timer of it is left behind."""
    monkeypatch.setattr(service, "create_app", lambda *_: SimpleNamespace(conf=SimpleNamespace(id="group")))
    monkeypatch.setattr(service, "_quiet_libraries", lambda: None)
    monkeypatch.setattr(service, "PAUSE", 0.0)
    monkeypatch.setattr(sys, "setswitchinterval", lambda _: None)
    loop = asyncio.new_event_loop()
    monkeypatch.setattr(asyncio, "new_event_loop", lambda: loop)
    monkeypatch.setenv(service.AGAIN, "")
    monkeypatch.delenv(service.AGAIN)

    def run(end: BaseException, asked: float | None = None) -> int:
        def execute() -> None:
            try:
                raise end
            except Exception:  # as the library does it
                sys.exit(1)

        runner = SimpleNamespace(execute_from_commandline=execute, _signal_stop_time=asked)
        monkeypatch.setattr("faust.Worker", lambda *_, **__: runner)
        return service.serve(StreamSettings(), Connection("127.0.0.1:1"), Topics())

    yield run
    asyncio.set_event_loop(None)
    loop.close()


# What the client says when a rebalance takes partitions away from one who looks for its place in them.
NOT_OURS = AssertionError("Partition is not assigned")


@pytest.mark.parametrize("lost", [KafkaConnectionError("gone"), IllegalGenerationError(), NOT_OURS])
def test_a_worker_that_lost_its_brokers_starts_itself_anew_as_it_was_started(
    serve: Callable[..., int], lost: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, list[str]]] = []

    def execv(program: str, arguments: list[str]) -> Any:
        started.append((program, arguments))
        raise Replaced

    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.setattr(sys, "orig_argv", ["python", "-X", "dev", "-m", "adatkg", "worker", "--group", "mine"])
    with capture_logs() as said, pytest.raises(Replaced):
        serve(lost)
    anew = [sys.executable, "-X", "dev", "-m", "adatkg", "worker", "--group", "mine"]
    assert started == [(sys.executable, anew)]
    assert os.environ[service.AGAIN] == "1", "the next one must know to wait for its brokers"
    assert [line["problem"] for line in said if line["event"] == "broker_lost"] == [repr(lost)]


@pytest.mark.parametrize("asked", [None, 12.5])
def test_a_worker_that_failed_for_another_reason_or_was_asked_to_end_as_brokers_were_lost_ends(
    serve: Callable[..., int], asked: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("it starts itself anew"))
    assert serve(AssertionError("a mistake of ours") if asked is None else KafkaConnectionError("gone"), asked) == 1


def test_a_worker_whose_log_was_made_anew_starts_itself_anew(
    serve: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def execv(*_: Any) -> Any:
        raise Replaced

    monkeypatch.setattr(os, "execv", execv)
    with capture_logs() as said, pytest.raises(Replaced):
        serve(LogRemade("the topic was made anew"))
    assert [line["event"] for line in said if line["log_level"] == "error"] == ["log_remade"]


def test_a_worker_that_stays_stalled_starts_anew_and_one_that_was_stopped_for_a_while_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service, "LOOK_EVERY", 0.001)
    looks, anew = [True, True, False, True, True, True], threading.Event()
    service.watch_for_stalls(lambda: looks.pop(0), anew.set)
    assert anew.wait(30) and looks == []


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (None, 0), (3, 3)])
def test_a_worker_that_was_asked_to_end_does_not_start_again(
    serve: Callable[..., int], code: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("it starts itself anew"))
    assert serve(SystemExit(code)) == expected
    assert service.AGAIN not in os.environ

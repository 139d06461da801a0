"""Running the worker as a process: signals, logs, and a new start when the brokers were away for too long."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

import faust
import structlog
from aiokafka.errors import KafkaError

from streams.app import create_app
from streams.kafka import Connection, Topics
from streams.settings import StreamSettings
from streams.worker import LogRemade

# The device's thread gives the interpreter up at every tensor operation; with the default of 5 ms it would wait that
# long to get it back whenever the event loop is busy.
SWITCH = 0.0002  # seconds
AGAIN = "ADATKG_STARTED_AGAIN"  # set for a process that has lost its brokers and waits for them
LEAVE_WITHIN = 15.0  # seconds
QUIET = 10.0  # seconds before a library's message is repeated
PASSING = "CoordinatorNotAvailable"  # a new broker says so while it makes the topic of its groups; told if it goes on
PAUSE = 3.0  # seconds before the process starts itself anew
LOOK_EVERY = 5.0  # seconds between looks at whether the worker is stalled
STALLED_LOOKS = 3  # in a row: a process that was stopped for a while looks stalled once, when it goes on
log = structlog.get_logger()


def serve(settings: StreamSettings, connection: Connection, topics: Topics) -> int:
    """Run until SIGINT or SIGTERM; returns the exit code."""
    _quiet_libraries()
    sys.setswitchinterval(SWITCH)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    app = create_app(settings, connection, topics, _end_soon, watch_for_stalls)
    pages = f"http://{settings.web_host}:{settings.web_port}" if settings.web_port else None
    log.info("worker", group=app.conf.id, bootstrap=connection.bootstrap, models=settings.models, pages=pages)
    runner = faust.Worker(app, loop=loop, redirect_stdouts=False, override_logging=False, quiet=True)
    runner.spinner = None  # it writes to stdout, terminal or not
    try:
        runner.execute_from_commandline()
    except SystemExit as end:
        error = end.__context__  # Faust makes an exit code of what ended it
        if isinstance(error, LogRemade):
            log.error("log_remade", problem=str(error), again_in=PAUSE)
        elif runner._signal_stop_time is not None or not _is_passing(error):
            return int(end.code or 0)
        else:
            # Faust gives up when a commit fails. All that matters is in snapshots and in the log, so begin again.
            log.error("broker_lost", problem=repr(error), again_in=PAUSE)
    time.sleep(PAUSE)
    start_anew()


def _is_passing(error: BaseException | None) -> bool:
    """Whether what ended Faust has to do with brokers and partitions that come and go."""
    # The client asserts so when partitions are taken away while Faust looks for its place in them.
    return isinstance(error, KafkaError) or (isinstance(error, AssertionError) and "not assigned" in str(error))


def _end_soon() -> None:
    """Everything is saved: Faust may leave the group, but where no broker answers it would wait for ever."""

    def end() -> None:
        log.warning("left_without_goodbye", within=LEAVE_WITHIN)
        os._exit(0)

    timer = threading.Timer(LEAVE_WITHIN, end)
    timer.daemon = True
    timer.start()


def start_anew() -> NoReturn:
    """Put a new process in the place of this one, whoever watches over it or does not."""
    os.environ[AGAIN] = "1"
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def watch_for_stalls(stalled: Callable[[], bool], then: Callable[[], None] = start_anew) -> None:
    """Start anew when the worker is stalled, because not everybody who asks for `/health` acts on the answer.

    On a thread of its own, because the event loop may be what has stopped. Nothing is lost by a new start.
    """

    def watch() -> None:
        looks = 0
        while looks < STALLED_LOOKS:
            time.sleep(LOOK_EVERY)
            looks = looks + 1 if stalled() else 0
        log.error("stalled", problem="there is something to do and nothing is done; the worker starts anew")
        then()

    threading.Thread(target=watch, name="stalled", daemon=True).start()


def _quiet_libraries() -> None:
    """What the libraries have to say comes as our log lines, from warnings on."""
    logging.basicConfig(handlers=[_Forward()], level=logging.WARNING, force=True)


class _Forward(logging.Handler):
    """Passes a message on once in a while, however often a library repeats it."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, str], float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Say it, unless the same was said a moment ago."""
        key, now = (record.name, str(record.msg)), time.monotonic()
        first = key not in self._said
        if not first and now - self._said[key] < QUIET:
            return
        if len(self._said) > 1_000:
            self._said.clear()
        self._said[key] = now
        if first and PASSING in record.getMessage():
            return
        problem = repr(record.exc_info[1]) if record.exc_info and record.exc_info[1] else None
        say = log.error if record.levelno >= logging.ERROR else log.warning
        say("library", source=record.name, message=record.getMessage(), problem=problem)

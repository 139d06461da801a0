"""When rounds of training happen: once, after some time, after some number of facts, or when the score drops."""

from __future__ import annotations

import os
import re
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import structlog

from adatkg_core.errors import AdatkgError, InputError
from trainer.drop import DropWatch
from trainer.from_log import LogTrainer
from trainer.loop import Report
from trainer.round import Round

POLL = 10.0  # seconds between looks at the log while facts are counted
RETRY = 30.0  # seconds after a round that failed, for example because a broker was away; then twice as many …
LONGEST = 3_600.0  # … up to this
_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
log = structlog.get_logger()


class Stopped(Exception):
    """Someone asked the process to end; what was done so far is kept."""


@dataclass(frozen=True)
class Every:
    """How much time passes between the beginnings of two rounds, or how many facts or what drop make one due."""

    seconds: float | None = None
    facts: int | None = None
    drop: float | None = None


def parse_every(text: str) -> Every:
    """`6h`, `30m`, `90s`, `1d`, `50000-facts` or `drop-0.03`."""
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text.strip()):
        seconds = float(match[1]) * _UNITS[match[2]]
        if seconds > 0:
            return Every(seconds=seconds)
    elif (match := re.fullmatch(r"(\d+)-facts", text.strip())) and int(match[1]) > 0:
        return Every(facts=int(match[1]))
    elif (match := re.fullmatch(r"drop-(0?\.\d+)", text.strip())) and float(match[1]) > 0:
        return Every(drop=float(match[1]))
    raise InputError(
        f"--every {text}: write a time such as 90s, 30m, 6h or 1d, a number of facts such as 50000-facts, "
        "or a drop of the worker's MRR such as drop-0.03"
    )


class Stop:
    """Whether SIGINT or SIGTERM came; waiting for one costs nothing and ends at once."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self.asked = False

    def ask(self) -> None:
        """Safe inside a signal handler, which may interrupt anything."""
        self.asked = True
        os.write(self._write, b"x")

    def wait(self, seconds: float) -> bool:
        """Whether it was asked for before the time was up."""
        return self.asked or bool(select.select([self._read], [], [], max(0.0, seconds))[0])

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._read)
        os.close(self._write)


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """The first signal asks for a clean stop, the second one ends the process as usual."""
    stop = Stop()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, frame: FrameType | None) -> None:
        signal.signal(number, before[signal.Signals(number)])
        stop.ask()

    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        stop.close()


def run_rounds(
    trainer: LogTrainer,
    every: Every | None,
    stop: Stop,
    tell: Callable[[Round], None],
    report: Report = lambda stage, done, total: None,
    watch: DropWatch | None = None,
) -> None:
    """Rounds until someone stops them, or just one; raises Stopped in the middle of a round."""

    def watched(stage: str, done: int, total: int) -> None:
        if stop.asked:
            raise Stopped
        report(stage, done, total)

    if every is None:
        tell(trainer.round(report=watched))
        return
    wanted, failures = every.facts or 1, 0
    while not stop.asked:
        began = time.monotonic()
        pause = POLL if every.seconds is None else every.seconds
        try:
            if trainer.unfinished() or _is_due(every, trainer, wanted, watched, watch):
                tell(trainer.round(wanted, watched))
                if watch is not None:
                    watch.begin_anew()
            failures = 0
        except InputError:
            raise  # does not get better by itself
        except AdatkgError as error:
            pause = min(RETRY * 2**failures, every.seconds or LONGEST, LONGEST)
            failures += 1
            log.error("trying_again", graph=trainer.plan.graph, problem=str(error), seconds=pause)
        if stop.wait(began + pause - time.monotonic()):
            return


def _is_due(every: Every, trainer: LogTrainer, wanted: int, report: Report, watch: DropWatch | None) -> bool:
    if every.facts is not None:
        return trainer.new_facts(report) >= wanted
    if every.drop is not None:
        return watch is not None and watch.fell()
    return True

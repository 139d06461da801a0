"""When rounds of training happen: once, after some time, after some number of facts, or when the score drops."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.runtime import Stop
from trainer.fit import Report
from trainer.retrain.plan import Round
from trainer.retrain.rounds import LogTrainer
from trainer.retrain.score_drop import DropWatch

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

"""The order of things in a demonstration, from nothing to its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from adatkg.console.progress import progress_bar
from adatkg.demo.mishaps import Mishaps
from adatkg.demo.observer import Watch, watching
from adatkg.demo.plan import Plan
from adatkg.demo.system import System
from adatkg_core.datasets import Dataset
from adatkg_core.errors import AdatkgError
from adatkg_core.runtime import Stop

_LOOK = 0.5  # seconds between two looks at what runs


class Audience(Protocol):
    """Those who see a demonstration."""

    level: str  # of the log lines that training the first model adds to its progress

    def begin(self, system: System) -> None:
        """The first model learns."""

    def welcome(self, system: System) -> None:
        """The stream is about to begin."""

    def show(self, system: System, watch: Watch) -> None:
        """This is what there is to see now."""

    def farewell(self) -> None:
        """All of it is about to end."""


@dataclass(frozen=True)
class Outcome:
    """What came of it; None where nothing was predicted."""

    predictions: int
    seconds_to_first_prediction: float | None
    swaps: int
    mrr: float | None


class _Ended(Exception):
    """Someone asked for the end, or the time is up."""


def conduct(plan: Plan, dataset: Dataset, stop: Stop, audience: Audience) -> Outcome:
    """Run the plan until it is through, its time is up or someone asks for the end; nothing runs on afterwards.

    An audience that fails misses something; the demonstration goes on without it.
    """
    mishaps = Mishaps()
    began, deadline = time.time(), time.monotonic() + (plan.seconds or float("inf"))
    outcome = Outcome(0, None, 0, None)

    def until(holds: Callable[[], bool], pause: float) -> None:
        while not holds():
            if stop.wait(min(pause, deadline - time.monotonic())) or time.monotonic() >= deadline:
                raise _Ended
            system.check()

    with System(plan, dataset) as system:
        try:
            with mishaps.bear("begin"):
                audience.begin(system)
            system.start_learning(audience.level)
            system.start_broker()
            until(lambda: system.has_broker() or system.has_learned(), 0.1)
            if not system.has_broker():  # training, which has a bar of its own, was the first to be done
                with progress_bar() as report:
                    until(lambda: system.has_broker(report), 0.1)
            system.start_worker()
            until(system.has_learned, 0.1)
            system.publish_past()
            with watching(system, mishaps) as watch:
                until(watch.is_ready, 0.1)
                with mishaps.bear("welcome"):
                    audience.welcome(system)
                system.start_stream()
                try:
                    until(lambda: _is_over(plan, system, watch, audience, mishaps), _LOOK)
                finally:
                    first = None if watch.first is None else round(max(0.0, watch.first - began), 1)
                    outcome = Outcome(watch.predictions, first, watch.story.swaps, watch.mrr)
        except _Ended:
            if not outcome.predictions and not stop.asked:
                raise AdatkgError(f"nothing was predicted within {plan.seconds:g} s; give more --seconds") from None
        finally:
            with mishaps.bear("farewell"):
                audience.farewell()
    return outcome


def _is_over(plan: Plan, system: System, watch: Watch, audience: Audience, mishaps: Mishaps) -> bool:
    """Look at it, and begin to train when there is something new to learn; whether it has come to its own end."""
    watch.look()
    system.pace.heed(watch.pages.lag)
    if not system.trains and system.facts - system.past >= plan.every:
        system.start_trainer()
    with mishaps.bear("show"):
        audience.show(system, watch)
    return plan.ends and _is_through(plan, system, watch)


def _is_through(plan: Plan, system: System, watch: Watch) -> bool:
    """Everything is answered, and a new model has taken over or none will come."""
    if not system.is_published or not watch.is_even(system.last):
        return False
    story = watch.story
    comes = (
        story.busy or story.promoted != story.answering or system.facts - max(story.facts, system.past) >= plan.every
    )
    return story.swaps > 0 or not comes

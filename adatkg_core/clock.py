"""What a tick is in the calendar, so that ISO times and ticks can stand for each other."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from typing import Any

from adatkg_core.errors import InputError

DAY = 86_400
WEEK = 7 * DAY

_GRANULARITIES = {1: "second", 60: "minute", 900: "15 minutes", 3600: "hour", DAY: "day", WEEK: "week"}


@dataclass(frozen=True)
class Clock:
    """Tick 0 begins at `origin`, an ISO time; a tick lasts `seconds`."""

    origin: str = "1970-01-01"
    seconds: int = DAY

    @cached_property
    def _begin(self) -> datetime:
        return parse_iso(self.origin)

    def tick(self, iso: str) -> int:
        """The tick in which this time lies; a time without a zone is UTC. Raises ValueError."""
        return (parse_iso(iso) - self._begin) // timedelta(seconds=self.seconds)

    def iso(self, tick: int) -> str:
        """When the tick begins; a date when ticks are whole days. Raises OverflowError far outside the calendar."""
        when = self._begin + timedelta(seconds=self.seconds) * tick
        whole_days = self.seconds % DAY == 0 and when.time() == datetime.min.time()
        return when.date().isoformat() if whole_days else when.isoformat()

    @property
    def granularity(self) -> str:
        """What a tick is, in words."""
        return _GRANULARITIES.get(self.seconds, f"{self.seconds} seconds")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as written into a bundle."""
        return {"origin": self.origin, "seconds": self.seconds}


def iso_of(clock: Clock | None, tick: int | None) -> str | None:
    """When a tick begins; None where there is no tick, no calendar, or none that reaches so far."""
    if clock is None or tick is None:
        return None
    try:
        return clock.iso(tick)
    except OverflowError:
        return None


def clock_from_dict(values: Any, where: str) -> Clock | None:
    """The clock that `as_dict` gave; None stands for ticks that have no place in the calendar."""
    if values is None:
        return None
    try:
        clock = Clock(str(values["origin"]), int(values["seconds"]))
        parse_iso(clock.origin)
        if clock.seconds < 1:
            raise ValueError(f"a tick of {clock.seconds} seconds")
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{where}: not a clock ({error}); it has an ISO `origin` and whole `seconds`") from error
    return clock


def tick_of(text: str, clock: Clock | None, where: str) -> int:
    """A time as a user writes it, a tick or an ISO time, as a tick."""
    try:
        return int(text)
    except ValueError:
        pass
    if clock is None:
        raise InputError(f"{where} {text}: nothing is known of this graph's calendar; give a whole tick")
    try:
        return clock.tick(text)
    except ValueError as error:
        raise InputError(f"{where} {text}: neither a whole tick nor an ISO time such as 2014-03-02") from error


@lru_cache(maxsize=4096)  # the events of a tick say the same time again and again
def parse_iso(text: str) -> datetime:
    """A moment in UTC. Raises ValueError."""
    when = datetime.fromisoformat(text)
    try:
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text} is outside the calendar") from error

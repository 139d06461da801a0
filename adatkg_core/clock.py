"""What a tick is in the calendar, so that ISO times and ticks can stand for each other."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cached_property, lru_cache
from typing import Any

from adatkg_core.errors import InputError
from adatkg_core.zones import zone_of

DAY = 86_400
WEEK = 7 * DAY
LONGEST_ISO = 64  # characters; nothing longer is parsed or remembered
LONGEST = 1000 * 366 * DAY  # seconds of a tick; more has no place in the calendar

_GRANULARITIES = {1: "second", 60: "minute", 900: "15 minutes", 3600: "hour", DAY: "day", WEEK: "week"}
_UNITS = ((WEEK, "week"), (DAY, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


@dataclass(frozen=True)
class Clock:
    """Tick 0 begins at `origin`, an ISO time; a tick lasts `seconds`; times are shown in `zone`, None for UTC.

    Ticks of whole days from a midnight of the zone are its dates, also where a day has 23 or 25 hours. All others
    have the same length.
    """

    origin: str = "1970-01-01"
    seconds: int = DAY
    zone: str | None = None

    @cached_property
    def _zone(self) -> tzinfo:
        return zone_of(self.zone)

    @cached_property
    def _begin(self) -> datetime:
        return parse_iso(self.origin, self._zone)

    @cached_property
    def _first_day(self) -> date | None:
        """The date at which tick 0 begins, where ticks are dates of the zone."""
        begin = self._begin.astimezone(self._zone)
        return begin.date() if self.seconds % DAY == 0 and begin.time() == time.min else None

    def tick(self, iso: str) -> int:
        """The tick in which this time lies; a time without an offset is one of the clock's zone. Raises ValueError."""
        when = parse_iso(iso, self._zone)
        if self.zone is None or self._first_day is None:
            return (when - self._begin) // timedelta(seconds=self.seconds)
        return (when.astimezone(self._zone).date() - self._first_day) // timedelta(seconds=self.seconds)

    def iso(self, tick: int) -> str:
        """When the tick begins; a date when ticks are whole days. Raises OverflowError far outside the calendar."""
        past = timedelta(seconds=self.seconds) * tick
        if self._first_day is not None:
            return (self._first_day + past).isoformat()
        return (self._begin + past).astimezone(self._zone).isoformat()

    @property
    def granularity(self) -> str:
        """What a tick is, in words."""
        return _GRANULARITIES.get(self.seconds, f"{self.seconds} seconds")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as written into a bundle."""
        values = {"origin": self.origin, "seconds": self.seconds}
        return values if self.zone is None else {**values, "zone": self.zone}


def iso_of(clock: Clock | None, tick: int | None) -> str | None:
    """When a tick begins; None where there is no tick, no calendar, or none that reaches so far."""
    if clock is None or tick is None:
        return None
    try:
        return clock.iso(tick)
    except OverflowError:
        return None


def span_of(clock: Clock | None, ticks: int) -> str:
    """How long so many ticks are, in the largest unit that fits: 14 days, 90 minutes; 5 ticks without a calendar."""
    number, unit = ticks, "tick"
    if clock is not None:
        seconds = ticks * clock.seconds
        units = _UNITS if clock.seconds % WEEK == 0 else _UNITS[1:]
        length, unit = next((length, unit) for length, unit in units if seconds % length == 0)
        number = seconds // length
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def readable(clock: Clock | None, tick: int) -> str:
    """A time as people read it: in the calendar, and the bare tick only where that has no place for it."""
    return iso_of(clock, tick) or str(tick)


def clock_from_dict(values: Any, where: str) -> Clock | None:
    """The clock that `as_dict` gave; None stands for ticks that have no place in the calendar."""
    if values is None:
        return None
    try:
        zone = values.get("zone")
        clock = Clock(str(values["origin"]), int(values["seconds"]), None if zone is None else str(zone))
        parse_iso(clock.origin, zone_of(clock.zone))
        if not 1 <= clock.seconds <= LONGEST:
            raise ValueError(f"a tick of {clock.seconds} seconds")
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{where}: not a clock ({error}); it has an ISO `origin`, whole `seconds`, and perhaps a `zone`"
        ) from error
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


def parse_iso(text: str, zone: tzinfo = UTC) -> datetime:
    """A moment in UTC; a text without an offset is a time of this zone. Raises ValueError.

    A local time that comes twice is the first of the two, and one that clocks skip counts as if they had not.
    """
    if len(text) > LONGEST_ISO:
        raise ValueError(f"a text of {len(text)} characters is no ISO time")
    return _parse_iso(text, zone)


@lru_cache(maxsize=4096)  # the events of a tick say the same time again and again
def _parse_iso(text: str, zone: tzinfo) -> datetime:
    when = datetime.fromisoformat(text)
    try:
        return (when.replace(tzinfo=zone) if when.tzinfo is None else when).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text} is outside the calendar") from error

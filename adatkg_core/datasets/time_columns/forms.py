"""How tables write times: each text on its own, the form of a whole column, and the ticks that its times make."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from adatkg_core.clock import DAY, LONGEST, WEEK, Clock, parse_iso
from adatkg_core.datasets.time_columns.local_times import moments, wall_seconds
from adatkg_core.errors import InputError
from adatkg_core.zones import offset_name, zone_of

Integers = NDArray[np.int64]

READABLE = (
    "ISO 8601 dates or times, YYYY/MM/DD, YYYYMMDD, Unix seconds or milliseconds, and whole ticks below "
    "100000000 can be read"
)
GRANULARITIES = {"second": 1, "minute": 60, "15min": 900, "hour": 3600, "day": DAY, "week": WEEK}

_MICRO = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONDAY = 4 * DAY  # the epoch was a Thursday; weeks begin on Mondays
_NUMBER = re.compile(r"([0-9]{1,18})(?:\.([0-9]+))?")
_SLASHES = re.compile(r"([0-9]{4})/([0-9]{1,2})/([0-9]{1,2})(?![0-9])(.*)", re.DOTALL)
# A bare number is told by its size: 10^8 seconds end in March 1973, 10^11 of them in the year 5138, and as many
# milliseconds end in 1973 again.
_FIRST_SECOND, _FIRST_MILLISECOND, _TOO_LARGE = 10**8, 10**11, 10**14
_YEARS = range(1900, 2100)  # of YYYYMMDD; other numbers of eight digits are ticks


class Form(IntEnum):
    """What one text looks like on its own."""

    UNREADABLE = 0
    ISO_DATE = 1
    NAIVE = 2
    ZONED = 3
    SLASH_DATE = 4
    SLASH_TIME = 5
    COMPACT = 6
    SECONDS = 7
    MILLISECONDS = 8
    TICK = 9


@dataclass(frozen=True)
class ColumnForm:
    """What a whole column looks like."""

    name: str
    forms: tuple[Form, ...]  # whose rows speak for it
    also: tuple[Form, ...] = ()  # read by it as well
    dates: bool = False

    @property
    def ticks(self) -> bool:
        """Whether the numbers have no place in the calendar."""
        return Form.TICK in self.forms


_COLUMN_FORMS = (
    ColumnForm("ISO dates", (Form.ISO_DATE,), dates=True),
    ColumnForm("ISO times", (Form.NAIVE, Form.ZONED)),
    ColumnForm("dates YYYY/MM/DD", (Form.SLASH_DATE,), dates=True),
    ColumnForm("times YYYY/MM/DD hh:mm", (Form.SLASH_TIME,)),
    ColumnForm("dates YYYYMMDD", (Form.COMPACT,), dates=True),
    ColumnForm("Unix seconds", (Form.SECONDS,)),
    ColumnForm("Unix milliseconds", (Form.MILLISECONDS,)),
    # Ticks may happen to look like dates of eight digits.
    ColumnForm("whole ticks", (Form.TICK,), (Form.COMPACT,)),
)


def read_time(text: str) -> tuple[Form, int]:
    """The form of a text and its microseconds since 1970; the number as it stands for ticks and YYYYMMDD."""
    text = text.strip()
    number = _NUMBER.fullmatch(text)
    if number:
        return _read_number(number[1], number[2] or "")
    try:
        if slashes := _SLASHES.fullmatch(text):
            year, month, day, rest = slashes.groups()
            form = Form.SLASH_TIME if rest else Form.SLASH_DATE
            return form, _micros(parse_iso(f"{year}-{month:0>2}-{day:0>2}{rest}"))
        when = parse_iso(text)
    except ValueError:
        return Form.UNREADABLE, 0
    if len(text) <= len("2014-01-01"):
        return Form.ISO_DATE, _micros(when)
    zoned = text[-1] in "zZ" or "+" in text[10:] or "-" in text[10:]
    return Form.ZONED if zoned else Form.NAIVE, _micros(when)


def offset_of(text: str) -> str | None:
    """The offset in the text of a time that has one, as the name of a zone; None for UTC."""
    return offset_name(datetime.fromisoformat(text.strip()))


def column_form(counts: dict[Form, int]) -> ColumnForm | None:
    """The form in which most of a column's texts are written, None where none can be read."""
    best = max(_COLUMN_FORMS, key=lambda column: sum(counts.get(form, 0) for form in column.forms))
    return best if any(counts.get(form) for form in best.forms) else None


def parse_granularity(text: str) -> int | None:
    """Seconds of a tick as `--granularity` says it; None means that the times shall tell."""
    lowered = text.strip().lower()
    if lowered == "auto":
        return None
    if lowered in GRANULARITIES:
        return GRANULARITIES[lowered]
    if lowered.isascii() and lowered.isdigit() and 0 < int(lowered[:20]) <= LONGEST:
        return int(lowered)
    raise InputError(f"--granularity {text}: use auto, {', '.join(GRANULARITIES)} or a whole number of seconds")


def to_ticks(
    form: ColumnForm, values: Integers, seconds: int | None, zone: str | None = None
) -> tuple[Integers, Clock | None]:
    """Ticks of the values that `read_time` gave, and their clock, which begins at the first of them floored.

    Ticks of whole days are dates of the zone. Shorter ones begin where its clocks show a multiple of them, as its
    offset is at the first of the times.
    """
    if form.ticks:
        if seconds is not None:
            raise InputError(
                "--granularity: the times are whole ticks, of which no calendar is known; leave it out, or write "
                "the times as ISO times"
            )
        return values, None
    since_1970 = shown = seconds_of(form, values)
    try:
        if zone is not None and form.dates:
            since_1970 = moments(shown * _MICRO, zone_of(zone)).micros // _MICRO
        elif zone is not None:
            shown = wall_seconds(since_1970, zone_of(zone))
    except OverflowError as error:
        raise InputError(
            f"--zone {zone}: a time lies outside its calendar; correct it, or leave the zone out"
        ) from error
    if seconds is None:
        seconds = DAY if form.dates else _coarsest(np.unique(shown))
    if seconds % DAY:
        first = int(np.argmin(since_1970))
        shown = since_1970 + (shown[first] - since_1970[first])
    shift = _MONDAY if seconds % WEEK == 0 else 0
    ticks = (shown - shift) // seconds
    begin = int(ticks.min()) * seconds + shift
    try:
        clock = Clock(_begin(begin, seconds, int((shown - since_1970)[0]), zone), seconds, zone)
    except OverflowError as error:
        raise InputError(f"--granularity {seconds}: ticks of it begin before the year 1; take a finer one") from error
    return ticks - ticks.min(), clock


def seconds_of(form: ColumnForm, values: Integers) -> Integers:
    """Whole seconds since 1970 of the values that `read_time` gave, which are no ticks."""
    if Form.COMPACT not in form.forms:
        return values // _MICRO
    days, where = np.unique(values, return_inverse=True)
    made: Integers = np.array([_micros(parse_iso(str(day))) // _MICRO for day in days.tolist()], np.int64)
    return made[where]


def _begin(shown: int, seconds: int, ahead: int, zone: str | None) -> str:
    """The first tick's beginning, of which clocks show this: a date for ticks of days, else a time with its offset."""
    when = _EPOCH + timedelta(seconds=shown)
    if seconds % DAY == 0:
        return when.date().isoformat()
    return (when - timedelta(seconds=ahead)).astimezone(zone_of(zone)).isoformat()


def _read_number(whole: str, fraction: str) -> tuple[Form, int]:
    value = int(whole)
    if value >= _TOO_LARGE:
        return Form.UNREADABLE, 0
    if value >= _FIRST_MILLISECOND:
        return Form.MILLISECONDS, value * 1000
    if value >= _FIRST_SECOND:
        return Form.SECONDS, value * _MICRO + int(f"{fraction:0<6.6}")
    if fraction.strip("0"):
        return Form.UNREADABLE, 0
    if len(whole) == 8 and value // 10_000 in _YEARS:
        try:
            date(value // 10_000, value // 100 % 100, value % 100)
        except ValueError:
            return Form.TICK, value
        return Form.COMPACT, value
    return Form.TICK, value


def _coarsest(times: Integers) -> int:
    """The longest of a second, a minute, 15 minutes, an hour and a day that divides every gap between the times."""
    gaps = np.diff(times) if len(times) > 1 else times  # a single time shall lie on a mark itself
    return max(seconds for seconds in GRANULARITIES.values() if seconds < WEEK and not (gaps % seconds).any())


def _micros(when: datetime) -> int:
    since = when - _EPOCH
    return (since.days * DAY + since.seconds) * _MICRO + since.microseconds

"""The time column of a data set: bare numbers, Unix seconds, dates and times, or years; and interval ends beside it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adatkg_core.clock import DAY, Clock
from adatkg_core.datasets.layouts.quadruples import Column, Integers, Part
from adatkg_core.datasets.layouts.text_files import bad_line
from adatkg_core.datasets.time_columns import READABLE, Form, column_form, read_time, to_ticks

# YAGO and Wikidata write what they do not know of a date as #, and the year alone for most facts.
_PARTIAL = re.compile(r'"?(-?\d{1,4}|[\d#]{4})-(?:\d\d|##)-(?:\d\d|##)"?')
_UNKNOWN = -1
_HOUR = 3600


@dataclass(frozen=True, eq=False)
class Times:
    """The times of all facts; `granularity` is None for bare numbers, whose unit only habits can tell."""

    values: Integers  # [n]
    granularity: str | None = None
    clock: Clock | None = None
    known: NDArray[np.bool_] | None = None  # [n], where some facts have no time
    notes: tuple[str, ...] = ()


def read_times(parts: Sequence[Part]) -> Times:
    """The times of all files, which must be written in the same way."""
    columns = [part.times for part in parts]
    numbers = [column for column in columns if isinstance(column, np.ndarray)]
    if len(numbers) == len(columns):
        values = np.concatenate(numbers)
        if len(values) and values.min() < 0:
            place = int(np.argmax(values < 0))
            bad_line(*_where(parts, place), f"time {values[place]} is negative", "times start at 0")
        return of_numbers(values)
    texts = [text for column in columns for text in _texts(column)]
    if any("#" in text for text in texts):
        return _years(parts, texts)
    return _dates(parts, texts)


def fifth_column(parts: Sequence[Part]) -> tuple[str, ...]:
    """What a fifth column seems to be, where it says anything: it is never used."""
    columns = [part.fifth for part in parts]
    told = [column for column in columns if column is not None and len(column)]
    if not told or len({text for column in told for text in _some(column)}) == 1:
        return ()  # none, or the 0 or -1 that files carry from elsewhere
    begins = [part.times for part in parts if part.fifth is not None and len(part.fifth)]
    if all(_ends_after(begin, end) for begin, end in zip(begins, told, strict=True)):
        return ("the fifth column is taken for the end of an interval: each fact counts at its beginning",)
    return ("the fifth column is ignored",)


def of_numbers(values: Integers) -> Times:
    """Numbers as they stand, unless all of them are Unix seconds or dates as YYYYMMDD."""
    distinct = np.unique(values)
    forms = Counter(read_time(str(value))[0] for value in distinct.tolist())
    form = column_form(forms) if len(forms) == 1 else None
    if form is None or form.ticks:
        return Times(values)
    if Form.SECONDS in form.forms and _are_midnights(distinct):
        days = (values + DAY // 2) // DAY
        return Times(days - days.min(), "day", Clock(Clock().iso(int(days.min()))))
    unit = {Form.SECONDS: 1_000_000, Form.MILLISECONDS: 1_000}.get(form.forms[0], 1)
    ticks, clock = to_ticks(form, values * unit, None)
    return Times(ticks, clock.granularity if clock else None, clock)


def _are_midnights(seconds: Integers) -> bool:
    """Whether they are midnights of one place, summer time or not, as scripts write dates that ran in that place."""
    past_noon = (seconds + DAY // 2) % DAY
    return len(seconds) > 1 and int(past_noon.max() - past_noon.min()) in (0, _HOUR)


def _dates(parts: Sequence[Part], texts: list[str]) -> Times:
    read = {text: read_time(text) for text in set(texts)}
    counts = Counter(read[text][0] for text in texts)
    form = column_form({one: count for one, count in counts.items() if one is not Form.UNREADABLE})
    wanted = form.forms if form else ()
    for place, text in enumerate(texts):
        if read[text][0] not in wanted:
            others = f"; the others are {form.name}" if form else ""
            problem = f"time {text!r} is not a whole number, nor a date or a time{others}"
            bad_line(*_where(parts, place), problem, f"write all times alike: {READABLE}")
    assert form is not None  # else the first text was refused
    ticks, clock = to_ticks(form, np.array([read[text][1] for text in texts], np.int64), None)
    return Times(ticks, clock.granularity if clock else None, clock)


def _years(parts: Sequence[Part], texts: list[str]) -> Times:
    read = {text: _year(text) for text in set(texts)}
    for place, text in enumerate(texts):
        if read[text] is None:
            problem = f"time {text!r} is no date such as 1984-##-## or 1984-05-17"
            bad_line(*_where(parts, place), problem, "write # for what is not known of it")
    years = np.array([read[text] for text in texts], np.int64)
    known = years > _UNKNOWN
    lost = int(len(years) - known.sum())
    notes = (f"{lost} facts whose year is not known, or before our era, are left out",) if lost else ()
    return Times(years, "year", known=known, notes=("dates are taken as years", *notes))


def _year(text: str) -> int | None:
    partial = _PARTIAL.fullmatch(text)
    if partial is None:
        return None
    return int(partial[1]) if partial[1].isdigit() else _UNKNOWN


def _ends_after(begins: Column, ends: Column) -> bool:
    """Whether every second text could be an end to the first."""
    if isinstance(begins, np.ndarray) and isinstance(ends, np.ndarray):
        return bool((ends >= begins).all())
    pairs = zip(_texts(begins), _texts(ends), strict=True)
    read = [(_day(begin), _day(end)) for begin, end in pairs]
    return all(end is not None and (begin is None or "#" in begin + end or end >= begin) for begin, end in read)


def _day(text: str) -> str | None:
    """A date in a form that compares as a text; None for what is none."""
    return text.strip('"') if _PARTIAL.fullmatch(text) else None


def _where(parts: Sequence[Part], place: int) -> tuple[Path, int]:
    for part in parts:
        if place < len(part.lines):
            return part.path, part.lines[place]
        place -= len(part.lines)
    raise IndexError(place)


def _texts(column: Column) -> list[str]:
    return [str(number) for number in column.tolist()] if isinstance(column, np.ndarray) else column


def _some(column: Column) -> set[str]:
    """Its distinct texts, at most two: more than one is all that counts."""
    distinct = np.unique(column)[:2].tolist() if isinstance(column, np.ndarray) else list(dict.fromkeys(column))[:2]
    return {str(one) for one in distinct}

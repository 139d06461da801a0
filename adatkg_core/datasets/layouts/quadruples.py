"""Files of quadruples in ids: subject, relation, object, time, and perhaps a fifth column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adatkg_core.datasets.layouts.text_files import bad_line, numbered_lines, read_bytes

Integers = NDArray[np.int64]
Column = Integers | list[str]  # numbers where all of it are

_LARGEST = 2**53  # beyond it a number no longer survives JSON, and no benchmark comes near
_COLUMNS = ("subject", "relation", "object", "time")
_WHOLE = re.compile(r"(\d+)\.0*")


@dataclass(frozen=True, eq=False)
class Part:
    """The facts of one file, in its order."""

    path: Path
    lines: Sequence[int]  # where each stands
    ids: Integers  # [n, 3] subject, relation, object
    times: Column  # [n]
    fifth: Column | None = None  # [n], where every line has one

    @staticmethod
    def of_texts(
        path: Path, lines: list[int], ids: Sequence[Sequence[int]], times: list[str], fifth: Sequence[str] = ()
    ) -> Part:
        """What was read line by line; a fifth column that some lines lack is none."""
        told = as_column(list(fifth)) if len(fifth) == len(lines) else None
        return Part(path, lines, np.array(ids, np.int64).reshape(-1, 3), as_column(times), told)


def read_quadruples(path: Path, n_entities: int, n_relations: int) -> Part:
    """The facts of a file whose ids are below these numbers."""
    data = read_bytes(path)
    limits = (n_entities, n_relations, n_entities, _LARGEST)
    rows = parse_in_bulk(data)
    if rows is None or (len(rows) and ((rows[:, :4] >= limits) | (rows[:, :4] < 0)).any()):
        return _parse_by_line(path, data, limits)
    fifth = rows[:, 4] if rows.shape[1] == 5 else None
    return Part(path, range(1, len(rows) + 1), rows[:, :3], rows[:, 3], fifth)


def parse_in_bulk(data: bytes) -> Integers | None:  # [n, 4] or [n, 5]
    """All rows at once, or None when any line is not plainly four or five numbers."""
    data = data.rstrip() + b"\n"
    if data == b"\n":
        return np.empty((0, 4), np.int64)
    chars = np.frombuffer(data, np.uint8)
    newline = chars == 10
    blank = newline | (chars == 9) | (chars == 32)
    digit = (chars >= 48) & (chars <= 57)
    starts = ~blank
    starts[1:] &= blank[:-1]
    signs = np.flatnonzero(~blank & ~digit)
    # A sign is no mistake where a number begins with it.
    if len(signs) and not ((chars[signs] == 45).all() and starts[signs].all() and digit[signs + 1].all()):
        return None
    # Numbers on each line: those that start before its end, less those before the end of the line above.
    per_line = np.diff(np.cumsum(starts, dtype=np.int32)[newline], prepend=0)
    columns = int(per_line[0])
    if columns not in (4, 5) or (per_line != columns).any():
        return None
    numbers = np.fromstring(data.decode("ascii"), dtype=np.int64, sep=" ", count=int(per_line.sum()))
    return numbers.reshape(-1, columns)


def as_column(texts: list[str]) -> Column:
    """Numbers where every text is one, else the texts."""
    if all(text.isascii() and text.removeprefix("-").isdigit() and len(text) < 18 for text in texts):
        return np.array([int(text) for text in texts], np.int64)
    return texts


def whole_number(path: Path, line: int, column: str, text: str) -> int:
    """An id or a time that must be written in digits."""
    digits = text.strip()
    if digits.isascii() and digits.isdigit():
        return int(digits[:400])
    if digits.startswith("-") and digits[1:].isascii() and digits[1:].isdigit():
        bad_line(path, line, f"{column} {digits} is negative", "ids and times start at 0")
    bad_line(path, line, f"{column} {digits!r} is not a whole number", "write it in digits only")


def _parse_by_line(path: Path, data: bytes, limits: tuple[int, ...]) -> Part:
    """The slow way: it also takes blank lines, other times and mixed columns, and knows where a mistake is."""
    lines: list[int] = []
    ids: list[list[int]] = []
    times: list[str] = []
    fifth: list[str] = []
    for number, line in numbered_lines(path, data):
        # A time may have a space in it where tabs separate.
        fields = [field.strip() for field in line.strip().split("\t")] if line.count("\t") > 2 else line.split()
        if len(fields) not in (4, 5):
            bad_line(
                path,
                number,
                f"{len(fields)} columns, expected 4 or 5",
                "write subject, relation, object and time separated by tabs",
            )
        ids.append([_id(path, number, *field) for field in zip(_COLUMNS, fields[:3], limits, strict=False)])
        times.append(_time(path, number, fields[3]))
        lines.append(number)
        fifth += fields[4:]
    return Part.of_texts(path, lines, ids, times, fifth)


def _id(path: Path, line: int, column: str, text: str, limit: int) -> int:
    value = whole_number(path, line, column, text)
    if value >= limit:
        remedy = f"ids go from 0 to {limit - 1}, as many as the id file names; correct one of the two"
        bad_line(path, line, f"{column} {value} is out of range", remedy)
    return value


def _time(path: Path, line: int, text: str) -> str:
    """The text of a time; of a number its plain digits."""
    if whole := _WHOLE.fullmatch(text):
        text = whole[1]
    if text.removeprefix("-").isdigit() and whole_number(path, line, "time", text) >= _LARGEST:
        bad_line(path, line, f"time {text} is out of range", f"times must be below {_LARGEST}")
    return text

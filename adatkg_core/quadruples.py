"""The text files of the usual benchmark layout: quadruples of ids, and names with their ids."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from adatkg_core.errors import InputError

Names = tuple[str, ...]

_BOM = b"\xef\xbb\xbf"
_LARGEST = 2**53  # beyond it a number no longer survives JSON, and no benchmark comes near
_COLUMNS = ("subject", "relation", "object", "time")


def read_quadruples(path: Path, n_entities: int, n_relations: int) -> NDArray[np.int64]:  # [n, 4]
    """Facts of one file as written, times in the file's unit; a fifth column is ignored."""
    data = _read(path)
    limits = (n_entities, n_relations, n_entities, _LARGEST)
    rows = _parse_in_bulk(data)
    if rows is None or (len(rows) and (rows.max(axis=0) >= limits).any()):
        rows = _parse_by_line(path, data, limits)
    return rows


def parse_names(path: Path) -> Names:
    """Names in the order of their ids, which must be 0, 1, 2, … in any order of lines."""
    lines = [(n, line) for n, line in enumerate(_decode(path, _read(path)).split("\n"), 1) if line.strip()]
    if not lines:
        raise InputError(f"{path} is empty: expected lines of name<TAB>id")
    names: dict[int, str] = {}
    first_line: dict[str, int] = {}
    for number, line in lines:
        name, tab, text = line.strip().rpartition("\t")
        if not tab or not name.strip():
            _bad(
                path,
                number,
                f"expected name<TAB>id, found {line.strip()!r}",
                "write both, with a tab between",
            )
        name = name.strip()
        key = _integer(path, number, "id", text)
        if key >= len(lines):
            _bad(
                path,
                number,
                f"id {key} is out of range",
                f"number the {len(lines)} names from 0 without gaps",
            )
        if key in names:
            _bad(path, number, f"id {key} is already {names[key]!r}", "give every name an id of its own")
        if name in first_line:
            _bad(path, number, f"{name!r} is already on line {first_line[name]}", "names must be distinct")
        names[key] = name
        first_line[name] = number
    return tuple(names[key] for key in range(len(names)))


def _parse_in_bulk(data: bytes) -> NDArray[np.int64] | None:
    """All rows at once, or None when any line is not plainly four or five numbers."""
    data = data.rstrip() + b"\n"
    if data == b"\n":
        return np.empty((0, 4), np.int64)
    chars = np.frombuffer(data, np.uint8)
    newline = chars == 10
    blank = newline | (chars == 9) | (chars == 32)
    if not (blank | ((chars >= 48) & (chars <= 57))).all():
        return None
    starts = ~blank
    starts[1:] &= blank[:-1]
    # Numbers on each line: those that start before its end, less those before the end of the line above.
    per_line = np.diff(np.cumsum(starts, dtype=np.int32)[newline], prepend=0)
    columns = int(per_line[0])
    if columns not in (4, 5) or (per_line != columns).any():
        return None
    numbers = np.fromstring(data.decode("ascii"), dtype=np.int64, sep=" ", count=int(per_line.sum()))
    return np.ascontiguousarray(numbers.reshape(-1, columns)[:, :4])


def _parse_by_line(path: Path, data: bytes, limits: tuple[int, ...]) -> NDArray[np.int64]:
    """The slow way: it also takes blank lines and mixed column counts, and knows where a mistake is."""
    rows: list[list[int]] = []
    for number, line in enumerate(_decode(path, data).split("\n"), 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) not in (4, 5):
            _bad(
                path,
                number,
                f"{len(fields)} columns, expected 4 or 5",
                "write subject, relation, object and time separated by tabs",
            )
        row = [_integer(path, number, column, text) for column, text in zip(_COLUMNS, fields, strict=False)]
        for column, value, limit in zip(_COLUMNS, row, limits, strict=True):
            if value >= limit:
                remedy = (
                    f"times must be below {limit}"
                    if column == "time"
                    else f"ids go from 0 to {limit - 1}, as many as the id file names; correct one of the two"
                )
                _bad(path, number, f"{column} {value} is out of range", remedy)
        rows.append(row)
    return np.array(rows, np.int64).reshape(-1, 4)


def _integer(path: Path, number: int, column: str, text: str) -> int:
    digits = text.strip()
    if digits.isascii() and digits.isdigit():
        return int(digits[:400])
    if digits.startswith("-") and digits[1:].isascii() and digits[1:].isdigit():
        _bad(path, number, f"{column} {digits} is negative", "ids and times start at 0")
    _bad(path, number, f"{column} {digits!r} is not a whole number", "write it in digits only")


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    data = data.removeprefix(_BOM)
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def _decode(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        _bad(path, data.count(b"\n", 0, error.start) + 1, "not UTF-8 text", "convert the file to UTF-8")


def _bad(path: Path, number: int, problem: str, remedy: str) -> NoReturn:
    raise InputError(f"{path}, line {number}: {problem}; {remedy}")

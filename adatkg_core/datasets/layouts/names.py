"""Files that say which name has which id, as lines or as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

from adatkg_core.datasets.layouts.quadruples import whole_number
from adatkg_core.datasets.layouts.text_files import bad_line, decode, numbered_lines, read_bytes
from adatkg_core.errors import InputError

Names = tuple[str, ...]

_CODE = re.compile(r"[QP]?\d+")  # Wikidata's codes, and bare numbers


def read_names(path: Path) -> Names:
    """Names in the order of their ids, which must be 0, 1, 2, … in any order of lines."""
    return _read_json(path) if path.suffix == ".json" else _read_lines(path)


def plain_names(names: Names) -> Names:
    """Names as a reader would write them, where a whole file wraps them or spells spaces as underscores."""
    # Only where all do: it keeps the names distinct, and a file with spaces means its underscores.
    if all(len(name) > 2 and name[0] == "<" and name[-1] == ">" for name in names):
        names = tuple(name[1:-1] for name in names)
    if not any(" " in name for name in names):
        names = tuple(name.replace("_", " ") for name in names)
    return names


def are_codes(names: Names) -> bool:
    """Whether no name is a word, so that nothing can be learned from them."""
    return all(_CODE.fullmatch(name) for name in names)


def _read_lines(path: Path) -> Names:
    lines = numbered_lines(path, read_bytes(path))
    if lines and lines[0][1].strip().isdecimal() and int(lines[0][1].strip()[:18]) == len(lines) - 1:
        lines = lines[1:]  # some begin with how many there are
    if not lines:
        raise InputError(f"{path} is empty: expected lines of name<TAB>id")
    tabs = any("\t" in line for _, line in lines)
    rows = [(number, _fields(path, number, line, tabs)) for number, line in lines]
    name_at = 1 if _ids_come_first([fields for _, fields in rows]) else 0
    names: dict[int, str] = {}
    first: dict[str, int] = {}
    for number, fields in rows:
        name, key = fields[name_at], whole_number(path, number, "id", fields[1 - name_at])
        if key >= len(rows):
            remedy = f"number the {len(rows)} names from 0 without gaps"
            bad_line(path, number, f"id {key} is out of range", remedy)
        if key in names:
            bad_line(path, number, f"id {key} is already {names[key]!r}", "give every name an id of its own")
        if name in first:
            bad_line(path, number, f"{name!r} is already on line {first[name]}", "names must be distinct")
        names[key] = name
        first[name] = number
    return tuple(names[key] for key in range(len(names)))


def _fields(path: Path, number: int, line: str, tabs: bool) -> list[str]:
    """Name and id, and what may follow them: YAGO's files go on with dates."""
    fields = [field.strip() for field in (line.strip().split("\t") if tabs else line.rsplit(maxsplit=1))]
    if len(fields) < 2 or not fields[0]:
        problem = f"expected name<TAB>id, found {line.strip()!r}"
        bad_line(path, number, problem, "write both, with a tab between")
    return fields


def _ids_come_first(rows: list[list[str]]) -> bool:
    """Told by the first line on which only one of the two is a number, because names can be numbers too."""
    for first, second, *_ in rows:
        if first.isdigit() != second.isdigit():
            return first.isdigit()
    return False


def _read_json(path: Path) -> Names:
    expected = 'expected one object of names with ids, such as {"China": 0}'
    try:
        found = json.loads(decode(path, read_bytes(path)))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON ({error}): {expected}") from error
    if not isinstance(found, dict) or not found or not all(type(key) is int for key in found.values()):
        raise InputError(f"{path}: {expected}")
    names = {key: name.strip() for name, key in found.items()}
    if sorted(names) != list(range(len(found))):
        raise InputError(f"{path}: the ids of its {len(found)} names have gaps or repeat; number them from 0")
    return tuple(names[key] for key in range(len(names)))

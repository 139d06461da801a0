"""Text files of data sets: their bytes and lines, and how a mistake in one is told."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from adatkg_core.errors import InputError

_BOM = b"\xef\xbb\xbf"


def read_bytes(path: Path) -> bytes:
    """What stands in the file, with plain line ends and without a byte order mark."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    data = data.removeprefix(_BOM)
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def decode(path: Path, data: bytes) -> str:
    """Its text, which must be UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        bad_line(path, data.count(b"\n", 0, error.start) + 1, "not UTF-8 text", "convert the file to UTF-8")


def numbered_lines(path: Path, data: bytes) -> list[tuple[int, str]]:
    """The lines that are not blank, each with its number."""
    return [(number, line) for number, line in enumerate(decode(path, data).split("\n"), 1) if line.strip()]


def first_line(path: Path) -> str:
    """The first line that is not blank, or nothing; only the file's beginning is looked at."""
    with path.open("rb") as file:
        head = file.read(1 << 16).removeprefix(_BOM)
    return next((line for line in head.decode("utf-8", "replace").splitlines() if line.strip()), "")


def bad_line(path: Path, number: int, problem: str, remedy: str) -> NoReturn:
    """Refuse a file for one of its lines."""
    raise InputError(f"{path}, line {number}: {problem}; {remedy}")

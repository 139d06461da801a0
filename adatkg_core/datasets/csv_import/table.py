"""Tables of events as rows: opening and unpacking, the delimiter, and which column is what."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO, cast

from adatkg_core.datasets.time_columns import Form, read_time
from adatkg_core.datasets.unpack_limit import LimitedReader
from adatkg_core.errors import InputError

Row = list[str]
NumberedRow = tuple[int, Row | csv.Error]
Progress = Callable[[int, int], None]

ROLES = ("subject", "relation", "object", "time")
ALIASES = {
    "subject": ("subject", "source", "actor1", "s", "from", "head", "source name"),
    "relation": ("relation", "predicate", "event", "type", "action", "r", "event text"),
    "object": ("object", "target", "actor2", "o", "to", "tail", "target name"),
    "time": ("time", "date", "timestamp", "t", "datetime", "event date"),
}
DELIMITERS = {"comma": ",", "tab": "\t", "semicolon": ";", "pipe": "|"}

_GZIP = b"\x1f\x8b"
_HEADER_LINES = 20  # a header may have line breaks in quotes, but one that never ends is a stray quote
_BLANK_LINES = 1_000  # before the header; more is a file of nothing
_LONGEST_LINE = 1 << 22  # characters; what has no line breaks is no table, and would fill the memory
_UNDECODED = re.compile("[\udc80-\udcff\x00]")
_TELL_EVERY = 4096  # rows; a system call for each would take longer than the row


class Table:
    """The rows of one file after its header. Iterating gives `(line, row)`, with an error in place of a broken row."""

    def __init__(
        self, name: str, lines: Iterator[str], delimiter: str, encoding: str, columns: Mapping[str, str]
    ) -> None:
        self.name = name
        self._blank, head = _header_lines(lines)
        where = f"{name}, line {self._blank + 1}"
        if not head:
            raise InputError(f"{name} is empty: expected a header line and rows of events")
        if _UNDECODED.search("".join(head)):
            raise InputError(f"{where}: not {encoding} text; give its --encoding, such as utf-16 or latin-1")
        self._delimiter = _delimiter(name, head, delimiter)
        try:
            self.header = next(csv.reader(head, delimiter=self._delimiter, strict=True))
        except csv.Error as error:
            raise InputError(f"{where}: not a header ({error}); correct its quotes") from error
        self.columns = find_columns(where, self.header, columns)
        numbers_only = all(columns.get(role, "").isdigit() for role in ROLES)
        self.has_header = not (numbers_only and read_time(self.header[self.columns[3]])[0] is not Form.UNREADABLE)
        self._lines = itertools.chain(head, lines)

    def __iter__(self) -> Iterator[NumberedRow]:
        reader = csv.reader(self._lines, delimiter=self._delimiter, strict=True)
        if self.has_header:
            next(reader)
        following = self._blank + reader.line_num + 1
        while True:
            try:
                for row in reader:
                    if row:
                        yield following, row
                    following = self._blank + reader.line_num + 1
                return
            except csv.Error as error:
                if "unexpected end" in str(error) or "field larger" in str(error):
                    raise InputError(
                        f"{self.name}, line {following}: a quote opens here that never closes; "
                        "close it, or write it twice where it is part of a name"
                    ) from error
                yield following, error
                following = self._blank + reader.line_num + 1


@contextmanager
def open_table(
    source: Path | BinaryIO,
    columns: Mapping[str, str],
    delimiter: str = "auto",
    encoding: str = "utf-8",
    on_progress: Progress | None = None,
) -> Iterator[tuple[Table, Iterator[NumberedRow]]]:
    """The table in a file or stream, plain or gzip, and its rows, which tell the progress by bytes."""
    name = str(source) if isinstance(source, Path) else "standard input"
    try:
        "".encode(encoding)
    except (LookupError, UnicodeError) as error:
        raise InputError(f"--encoding {encoding}: {error}; use utf-8, utf-16, latin-1, cp1252, …") from error
    # With its byte order mark, UTF-8 has a name of its own.
    codec = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    with ExitStack() as stack:
        try:
            raw = stack.enter_context(source.open("rb", buffering=0)) if isinstance(source, Path) else source
            data = io.BufferedReader(cast(io.RawIOBase, raw), 1 << 20)
            # By its first bytes: the name need not tell, and standard input has none.
            packed = data.peek(2)[:2] == _GZIP
        except OSError as error:
            raise InputError(
                f"cannot read {name}: {error.strerror}; give a CSV file, or - for standard input"
            ) from error
        binary = cast(BinaryIO, data)
        if packed:
            unpacked = LimitedReader(name, cast(IO[bytes], gzip.GzipFile(fileobj=data)), data.tell)
            binary = cast(BinaryIO, io.BufferedReader(unpacked, 1 << 20))
        text = io.TextIOWrapper(binary, codec, errors="surrogateescape", newline="")
        table = Table(name, _lines(text, name, encoding), delimiter, encoding, columns)
        if on_progress is not None and isinstance(source, Path) and source.is_file():
            yield table, _telling(table, lambda: raw.tell(), source.stat().st_size, on_progress)
        else:
            yield table, iter(table)


def find_columns(where: str, header: Row, wanted: Mapping[str, str]) -> tuple[int, int, int, int]:
    """Where subject, relation, object and time stand: as wanted, by name or number from 1, else by usual names."""
    shown = ", ".join(repr(cell) for cell in header)
    found = {role: _wanted(where, header, role, wanted[role], shown) for role in ROLES if wanted.get(role)}
    plain = [" ".join(re.split(r"[\s_-]+", cell.casefold())).strip() for cell in header]
    taken = set(found.values())
    problems: dict[str, str] = {}
    for role in ROLES:
        if role in found:
            continue
        fitting = [i for i, cell in enumerate(plain) if cell in ALIASES[role] and i not in taken]
        if len(fitting) == 1:
            found[role] = fitting[0]
        elif fitting:
            problems[role] = f"columns {' and '.join(repr(header[i]) for i in fitting)} could each be the {role}"
        else:
            problems[role] = f"no column for the {role}"
    if problems:
        flags = ", ".join(f"--{role}" for role in problems)
        said = ", ".join(problems.values())
        raise InputError(f"{where}: {said}; name it or its number with {flags}; the header is {shown}")
    if len(set(found.values())) < len(ROLES):
        twice = next(role for role in ROLES if list(found.values()).count(found[role]) > 1)
        raise InputError(
            f"{where}: column {header[found[twice]]!r} would stand for two things; "
            f"give another with --{twice}; the header is {shown}"
        )
    subject, relation, object_, time = (found[role] for role in ROLES)
    return subject, relation, object_, time


def _wanted(where: str, header: Row, role: str, text: str, shown: str) -> int:
    key = text.strip()
    if key.isascii() and key.isdigit() and 1 <= int(key[:9]) <= len(header):
        return int(key) - 1
    for fold in (str, str.casefold):
        fitting = [i for i, cell in enumerate(header) if fold(cell.strip()) == fold(key)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise InputError(
                f"{where}: --{role} {text} fits {len(fitting)} columns; give its number; the header is {shown}"
            )
    raise InputError(f"{where}: no column for --{role} {text}; the header is {shown}")


def _lines(text: IO[str], name: str, encoding: str) -> Iterator[str]:
    try:
        for line in iter(partial(text.readline, _LONGEST_LINE), ""):
            if len(line) == _LONGEST_LINE:
                raise InputError(f"{name}: a line has more than {_LONGEST_LINE} characters; give a table of events")
            yield line
    except UnicodeError as error:
        raise InputError(f"{name}: not {encoding} text ({error}); give its --encoding") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name} cannot be unpacked ({error}): it must be a sound gzip file") from error
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from error


def _header_lines(lines: Iterator[str]) -> tuple[int, list[str]]:
    """How many lines are blank, and those of the header after them."""
    head: list[str] = []
    blank = quotes = 0
    for line in lines:
        if not head and not line.strip():
            blank += 1
            if blank == _BLANK_LINES:
                break
            continue
        head.append(line)
        quotes += line.count('"')
        if quotes % 2 == 0 or len(head) == _HEADER_LINES:
            break
    return blank, head


def _columns(head: list[str], delimiter: str) -> int:
    """How many columns a header has with this delimiter; none where it cannot be read so."""
    try:
        return len(next(csv.reader(head, delimiter=delimiter), []))
    except csv.Error:
        return 0


def _delimiter(name: str, head: list[str], wanted: str) -> str:
    if wanted == "auto":
        if Path(name).name.lower().removesuffix(".gz").endswith(".tsv"):
            return "\t"
        # Most columns win, and the more usual delimiter among equals.
        return max(DELIMITERS.values(), key=lambda delimiter: _columns(head, delimiter))
    delimiter = DELIMITERS.get(wanted, "\t" if wanted == "\\t" else wanted)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InputError(f"--delimiter {wanted!r}: use auto, {', '.join(DELIMITERS)} or a single character")
    return delimiter


def _telling(table: Table, tell: Callable[[], int], total: int, on_progress: Progress) -> Iterator[NumberedRow]:
    for n, numbered in enumerate(table):
        if n % _TELL_EVERY == 0:
            on_progress(tell(), total)
        yield numbered
    on_progress(total, total)

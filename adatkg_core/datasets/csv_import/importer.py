"""Tables of events made into data sets: read by row, checked, and written in the usual layout with a clock."""

from __future__ import annotations

import csv
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from adatkg_core.clock import Clock
from adatkg_core.datasets import Dataset, Facts, check_target, dataset_of_ticks, first_of_each, write_dataset
from adatkg_core.datasets.csv_import.names import EMPTY, NOT_TEXT, ImportedNames
from adatkg_core.datasets.csv_import.oddities import EXAMPLES, Odd, Oddities
from adatkg_core.datasets.csv_import.table import ROLES, NumberedRow, Progress, Row, Table, open_table
from adatkg_core.datasets.time_columns import (
    READABLE,
    ColumnForm,
    Form,
    column_form,
    lone_times,
    moments,
    offset_of,
    parse_granularity,
    read_time,
    seconds_of,
    to_ticks,
)
from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.zones import ZoneChoice, choose_zone, parse_zone, zone_of

_TIMES_KEPT = 1 << 16  # the texts of a tick come together, so that more would only cost memory


@dataclass(frozen=True)
class Imported:
    """A data set that was made from a table, and what was odd about it."""

    dataset: Dataset
    time_format: str
    zone: ZoneChoice | None  # None where the times are ticks
    skipped: int
    odd: list[Odd]

    def as_dict(self, folder: str) -> dict[str, Any]:
        """Plain values, as the report prints them."""
        clock = self.dataset.clock
        first, last = (int(self.dataset.times[i]) for i in (0, -1))
        return {
            "folder": folder,
            "facts": len(self.dataset.facts),
            "entities": self.dataset.n_entities,
            "relations": self.dataset.n_relations,
            "times": len(self.dataset.times),
            "first": clock.iso(first) if clock else first,
            "last": clock.iso(last) if clock else last,
            "time_format": self.time_format,
            "granularity": self.dataset.granularity,
            "zone": self.zone.shown if self.zone else None,
            "zone_from": self.zone.source if self.zone else None,
            "skipped": self.skipped,
            "odd": [odd.as_dict() for odd in self.odd],
        }


def import_csv(
    source: Path | BinaryIO,
    folder: Path,
    *,
    columns: Mapping[str, str] | None = None,
    granularity: str = "auto",
    zone: str | None = None,
    delimiter: str = "auto",
    encoding: str = "utf-8",
    replace: bool = False,
    on_progress: Progress | None = None,
) -> Imported:
    """Make the data set `folder` from a table of events; it appears when it is whole.

    `columns` says for subject, relation, object and time the name or number of a column where the header does not.
    `zone` is what times without an offset are of, and what all are shown in; else it is the offset that all have.
    """
    folder = folder.expanduser().resolve()
    seconds = parse_granularity(granularity)
    zone = parse_zone(zone)
    if not replace and folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} exists already: choose another --out, or replace it by --replace")
    check_target(folder, replace=replace)
    with open_table(source, columns or {}, delimiter, encoding, on_progress) as (table, rows):
        read = _Reading(table, encoding, zone)
        read.take(rows)
    imported = read.result(folder.name, seconds)
    try:
        write_dataset(imported.dataset, folder, literal=True, replace=replace)
    except OSError as error:
        raise AdatkgError(f"{folder}: cannot be written ({error}); check that the place is writable") from error
    return imported


class _Reading:
    """The rows of one table as arrays, and the oddities that were met."""

    def __init__(self, table: Table, encoding: str, zone: str | None) -> None:
        self._table = table
        self._encoding = encoding
        self._zone = zone
        self._offsets: set[str | None] = set()
        self._odd = Oddities()
        self._entities = ImportedNames("entities", self._odd)
        self._relations = ImportedNames("relations", self._odd)
        self._columns = [array("q") for _ in range(5)]  # subject, relation, object, value of the time, line
        self._forms = array("b")
        self._samples: dict[Form, list[tuple[int, str]]] = {}  # which forms are odd is known at the end
        self._rows = 0

    def take(self, rows: Iterator[NumberedRow]) -> None:
        """Read all rows."""
        entities, relations, width = self._entities, self._relations, len(self._table.header)
        s_at, r_at, o_at, t_at = self._table.columns
        add_s, add_r, add_o, add_value, add_line = (column.append for column in self._columns)
        add_form = self._forms.append
        times: dict[str, tuple[Form, int]] = {}
        n = 0
        for n, (line, row) in enumerate(rows, 1):  # noqa: B007
            if isinstance(row, csv.Error):
                self._odd.add("broken quotes", line, str(row), skipped=True)
                continue
            if len(row) != width and self._refused(line, row, width):
                continue
            entities.line = relations.line = line
            subject, relation, object_, text = entities[row[s_at]], relations[row[r_at]], entities[row[o_at]], row[t_at]
            if subject < 0 or relation < 0 or object_ < 0 or not text or text.isspace():
                self._skip(line, row, (subject, relation, object_, EMPTY))
                continue
            time = times.get(text)
            if time is None:
                if len(times) == _TIMES_KEPT:
                    times.clear()
                time = times[text] = read_time(text)
                if time[0] is Form.ZONED:
                    self._offsets.add(offset_of(text))
                samples = self._samples.setdefault(time[0], [])
                if len(samples) < EXAMPLES:
                    samples.append((line, text.strip()))
            form, value = time
            if form is Form.UNREADABLE:
                self._odd.add("unreadable time", line, text.strip(), skipped=True)
                continue
            add_s(subject)
            add_r(relation)
            add_o(object_)
            add_value(value)
            add_line(line)
            add_form(form)
        self._rows = n

    def result(self, name: str, seconds: int | None) -> Imported:
        """The data set, or an error where too little can be used."""
        forms: NDArray[np.int8] = np.asarray(self._forms)
        found = Counter({Form(form): count for form, count in enumerate(np.bincount(forms).tolist()) if count})
        form = column_form(found)
        if form is None:
            raise self._too_little()
        kept = self._of_one_form(form, forms, found)
        if 2 * self._odd.skipped > self._rows:
            raise self._too_little()
        subject, relation, object_, value, line = (np.asarray(column)[kept] for column in self._columns)
        zone = None if form.ticks else choose_zone(self._zone, self._offsets)
        if zone is not None:
            value = self._moments(form, forms[kept], value, line)
            self._tell_lone(form, value, line)
        ticks, clock = to_ticks(form, value, seconds, zone.name if zone else None)
        entities, ids = self._entities.used(np.concatenate([subject, object_]))
        relations, relation = self._relations.used(relation)
        facts = np.column_stack([ids[: len(line)], relation, ids[len(line) :], ticks])
        self._tell_repeats(facts, line, entities, relations, clock)
        dataset = dataset_of_ticks(name, entities, relations, facts, clock)
        return Imported(dataset, form.name, zone, self._odd.skipped, self._odd.all())

    def _refused(self, line: int, row: Row, width: int) -> bool:
        """Whether a row of another width is of no use; empty cells at the end do no harm."""
        if len(row) > width and not any(row[width:]):
            return False
        kind = "too few columns" if len(row) < width else "too many columns"
        self._odd.add(kind, line, f"{len(row)} in place of {width}: {' | '.join(row)}", skipped=True)
        return True

    def _skip(self, line: int, row: Row, found: tuple[int, int, int, int]) -> None:
        """Say what is wrong with the first of the row's fields that is."""
        role, at, why = next(
            (role, at, why) for role, at, why in zip(ROLES, self._table.columns, found, strict=True) if why < 0
        )
        kind = f"empty {role}" if why == EMPTY else f"{role} is not {self._encoding} text"
        self._odd.add(kind, line, row[at] if why == NOT_TEXT else " | ".join(row), skipped=True)

    def _of_one_form(self, form: ColumnForm, forms: NDArray[np.int8], found: Counter[Form]) -> NDArray[np.bool_]:
        """Which rows have their time in the column's form; the others are told of."""
        for other in found.keys() - {*form.forms, *form.also}:
            kind = f"time in another form than {form.name}"
            self._odd.add_many(kind, found[other], self._samples[other], skipped=True)
        if Form.ZONED in found and Form.NAIVE in form.forms:
            kind = f"times without a zone among others, taken as {self._zone or 'UTC'}"
            self._odd.add_many(kind, found[Form.NAIVE], self._samples.get(Form.NAIVE, ()), skipped=False)
        return np.isin(forms, (*form.forms, *form.also))

    def _moments(self, form: ColumnForm, forms: NDArray[np.int8], value: Facts, line: Facts) -> Facts:
        """Times without an offset as moments, where they are those of a zone; dates stay as they are."""
        walls = np.isin(forms, (Form.NAIVE, Form.SLASH_TIME))
        if self._zone is None or form.dates or not walls.any():
            return value
        found = moments(value[walls], zone_of(self._zone))
        for kind, rows in (
            (f"times that {self._zone} has twice, taken as the first", found.twice),
            (f"times that {self._zone} skips, taken as if it did not", found.never),
        ):
            self._tell_times(kind, line[walls][rows], value[walls][rows])
        value = value.copy()
        value[walls] = found.micros
        return value

    def _tell_lone(self, form: ColumnForm, value: Facts, line: Facts) -> None:
        since_1970 = seconds_of(form, value)
        rows = lone_times(since_1970)
        self._tell_times("time years away from all others", line[rows], since_1970[rows] * 1_000_000)

    def _tell_times(self, kind: str, line: Facts, micros: Facts) -> None:
        shown = Clock(seconds=1)
        first = zip(line[:EXAMPLES].tolist(), (micros[:EXAMPLES] // 1_000_000).tolist(), strict=True)
        self._odd.add_many(
            kind, len(line), ((n, shown.iso(at).removesuffix("+00:00")) for n, at in first), skipped=False
        )

    def _tell_repeats(
        self, facts: Facts, line: Facts, entities: list[str], relations: list[str], clock: Clock | None
    ) -> None:
        again = np.ones(len(facts), bool)
        again[first_of_each(facts)] = False
        for kind, odd in (("repeated facts", again), ("subject is also the object", facts[:, 0] == facts[:, 2])):
            rows = np.flatnonzero(odd)
            shown = (
                (int(line[i]), f"{entities[s]} | {relations[r]} | {entities[o]} | {clock.iso(t) if clock else t}")
                for i in rows[:EXAMPLES].tolist()
                for s, r, o, t in facts[[i]].tolist()
            )
            self._odd.add_many(kind, len(rows), shown, skipped=False)

    def _too_little(self) -> InputError:
        name, skipped = self._table.name, [odd for odd in self._odd.all() if odd.skipped]
        if not skipped:
            return InputError(f"{name} has no rows after its header: give a file with events")
        reasons = "; ".join(
            f"{odd.count} × {odd.kind}, first on line {odd.examples[0][0]}: {odd.examples[0][1]!r}"
            for odd in skipped[:3]
        )
        remedy = READABLE if "time" in skipped[0].kind else "check --delimiter, the columns and the rows named"
        return InputError(f"{name}: {self._odd.skipped} of {self._rows} rows cannot be used ({reasons}); {remedy}")

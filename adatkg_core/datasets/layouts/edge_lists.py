"""Edge lists of the Temporal Graph Benchmark 2.0: `tkgl-*_edgelist.csv`, with files of names where there are some."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from adatkg_core.datasets.layouts.names import Names, plain_names
from adatkg_core.datasets.layouts.quadruples import Integers, Part, parse_in_bulk
from adatkg_core.datasets.layouts.reading import Reading, with_times
from adatkg_core.datasets.layouts.text_files import bad_line, decode, first_line, read_bytes
from adatkg_core.datasets.layouts.times import of_numbers, read_times
from adatkg_core.errors import InputError

EDGES = "_edgelist.csv"
_STATIC = "_static_edgelist.csv"
_TIME = ("timestamp", "ts", "date", "time")
_EXPECTED = "timestamp, head, tail, relation_type"
_ROLES = (("head",), ("relation_type", "relation"), ("tail",), _TIME)  # in the order of a quadruple


def edge_list(folder: Path) -> Path | None:
    """The file with the edges that have a time."""
    found = sorted(path for path in folder.glob(f"*{EDGES}") if path.is_file() and not path.name.endswith(_STATIC))
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise InputError(f"{folder} holds several edge lists ({names}): give each a folder of its own")
    return found[0] if found else None


def read_edge_list(folder: Path) -> Reading:
    """Read such a folder. Nodes without a file of names are known by their ids."""
    path = edge_list(folder)
    assert path is not None  # else another layout was found
    columns = _columns(path)
    data = read_bytes(path)
    body = data.partition(b"\n")[2]
    rows = parse_in_bulk(body.replace(b",", b" ")) if len(columns) == 4 else None
    if rows is not None and rows.shape[1] == 4 and (len(rows) == 0 or rows.min() >= 0):
        reading = _of_ids(folder, path, rows[:, [columns.index(role) for role in range(4)]])
    else:
        reading = _of_texts(folder, path, columns, decode(path, data))
    return reading


def _columns(path: Path) -> list[int]:
    """For each column which part of a quadruple it is, -1 for one that is none."""
    header = [cell.strip().lower() for cell in next(_rows(path, first_line(path)), (1, []))[1]]
    columns = [next((role for role, names in enumerate(_ROLES) if cell in names), -1) for cell in header]
    if sorted(role for role in columns if role >= 0) != [0, 1, 2, 3]:
        problem = f"the header is {', '.join(header) or 'empty'}, expected {_EXPECTED}"
        bad_line(path, 1, problem, "name the columns so; edges without a relation are no facts")
    return columns


def _of_ids(folder: Path, path: Path, rows: Integers) -> Reading:
    if not len(rows):
        raise InputError(f"{path} has no edges after its header")
    nodes, ends = np.unique(rows[:, [0, 2]], return_inverse=True)
    kinds, relation = np.unique(rows[:, 1], return_inverse=True)
    ends = ends.reshape(-1, 2)
    entities, about_nodes = _named(path, "_nodemapping.csv", nodes)
    relations, about_kinds = _named(path, "_edgemapping.csv", kinds)
    ids = np.column_stack([ends[:, 0], relation.reshape(-1), ends[:, 1]])
    notes = (*about_nodes, *about_kinds, *_static(folder))
    return with_times(folder, plain_names(entities), plain_names(relations), ids, of_numbers(rows[:, 3]), notes)


def _of_texts(folder: Path, path: Path, columns: list[int], text: str) -> Reading:
    """The slow way: nodes and relations by name, as Wikidata's codes, or rows in which something is wrong."""
    entities: dict[str, int] = {}
    relations: dict[str, int] = {}
    ids: list[tuple[int, int, int]] = []
    times: list[str] = []
    lines: list[int] = []
    at = [columns.index(role) for role in range(4)]
    for line, row in _rows(path, text):
        if line == 1 or not row:
            continue
        cells = [row[place].strip() if place < len(row) else "" for place in at]
        if not all(cells) or len(row) != len(columns):
            problem = f"{len(row)} columns, or an empty one, where the header has {len(columns)}"
            bad_line(path, line, problem, f"write {_EXPECTED} in each row")
        head, relation, tail, time = cells
        ids.append(
            (
                entities.setdefault(head, len(entities)),
                relations.setdefault(relation, len(relations)),
                entities.setdefault(tail, len(entities)),
            )
        )
        times.append(time)
        lines.append(line)
    if not ids:
        raise InputError(f"{path} has no edges after its header")
    part = Part.of_texts(path, lines, ids, times)
    names = plain_names(tuple(entities)), plain_names(tuple(relations))
    return with_times(folder, *names, part.ids, read_times([part]), _static(folder))


def _named(edges: Path, ending: str, ids: Integers) -> tuple[Names, tuple[str, ...]]:
    """The names of these ids, by the file beside the edges; the ids themselves where it does not name them."""
    path = edges.with_name(edges.name.removesuffix(EDGES) + ending)
    bare: Names = tuple(str(one) for one in ids.tolist())
    if not path.is_file():
        return bare, (f"there is no {path.name}: ids stand for names",)
    names: dict[int, str] = {}
    lines: dict[str, int] = {}
    for line, row in _rows(path, decode(path, read_bytes(path))):
        # Name, id and, for relations, what the name's code means in words; the header has no id.
        if len(row) < 2 or not row[1].strip().isdecimal() or len(row[1]) > 40:
            continue
        name = next((cell.strip() for cell in (*row[2:3], row[0]) if cell.strip()), "")
        if not name or name in lines:
            problem = f"{name!r} is already on line {lines[name]}" if name else "a name is empty"
            bad_line(path, line, problem, "give every id a name of its own")
        names[int(row[1].strip())], lines[name] = name, line  # strip knows more kinds of space than int
    if not all(one in names for one in ids.tolist()):
        return bare, (f"{path.name} does not name all ids, so ids stand for names",)
    return tuple(names[one] for one in ids.tolist()), ()


def _rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table, each with the number of its last line."""
    reader = csv.reader(text.split("\n"))
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        bad_line(path, reader.line_num, f"not a row of a table ({error})", "correct its quotes")


def _static(folder: Path) -> tuple[str, ...]:
    found = next(folder.glob(f"*{_STATIC}"), None)
    return (f"{found.name} is left out: its edges have no time",) if found else ()

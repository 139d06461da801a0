"""Quadruples of ids beside files of names: RE-Net, RE-GCN, CyGNet, xERTE, TiRGN, and what `adatkg import` writes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from adatkg_core.clock import Clock, clock_from_dict
from adatkg_core.datasets.layouts.names import Names, plain_names, read_names
from adatkg_core.datasets.layouts.parts import CAMEO_FILE, CLOCK_FILE, id_file, part_files
from adatkg_core.datasets.layouts.quadruples import Part, read_quadruples
from adatkg_core.datasets.layouts.reading import Reading, put_together, with_times
from adatkg_core.datasets.layouts.text_files import bad_line
from adatkg_core.datasets.layouts.times import Times
from adatkg_core.errors import InputError


def read_id_files(folder: Path) -> Reading:
    """Read such a folder; underscores and angle brackets around its names are taken for what they stand for."""
    entities, relations = plain_names(_names(folder, "entity2id")), plain_names(_relations(folder))
    return put_together(folder, entities, relations, _parts(folder, entities, relations))


def read_ticks(folder: Path) -> Reading:
    """Read a folder whose `clock.json` leaves nothing to be guessed: names are literal, times are its ticks."""
    entities, relations = _names(folder, "entity2id"), _names(folder, "relation2id")
    parts = _parts(folder, entities, relations)
    for part in parts:
        if not isinstance(part.times, np.ndarray):
            wrong = next(place for place, text in enumerate(part.times) if not text.isdigit())
            problem = f"time {part.times[wrong]!r} is no tick of {CLOCK_FILE}"
            bad_line(part.path, part.lines[wrong], problem, "write whole ticks, or remove that file")
    ids = np.concatenate([part.ids for part in parts])
    if not len(ids):
        raise InputError(f"{folder} has no facts: {parts[0].path.name} must hold at least one quadruple")
    clock = _read_clock(folder / CLOCK_FILE)
    ticks = np.concatenate([np.asarray(part.times, np.int64) for part in parts])
    return with_times(folder, entities, relations, ids, Times(ticks, clock.granularity if clock else "tick", clock))


def _parts(folder: Path, entities: Names, relations: Names) -> list[Part]:
    return [read_quadruples(path, len(entities), len(relations)) for path in part_files(folder)]


def _names(folder: Path, stem: str) -> Names:
    path = id_file(folder, stem)
    assert path is not None  # else another layout, or none, was found
    return read_names(path)


def _relations(folder: Path) -> Names:
    """The relations, in words where a second file has them."""
    relations, cameo = _names(folder, "relation2id"), folder / CAMEO_FILE
    if not cameo.is_file():
        return relations
    worded = read_names(cameo)
    if len(worded) != len(relations):
        raise InputError(
            f"{cameo} names {len(worded)} relations but relation2id.txt has {len(relations)}: "
            "make them agree or remove the first"
        )
    return worded


def _read_clock(path: Path) -> Clock | None:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read as JSON ({error}): write an ISO `origin` and whole `seconds`"
        ) from error
    return clock_from_dict(values, str(path))

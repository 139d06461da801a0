"""Writes data sets as folders in the usual benchmark layout."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

from adatkg_core.datasets.dataset import Dataset
from adatkg_core.datasets.layouts import CLOCK_FILE, ENTITY_FILE, RELATION_FILE
from adatkg_core.errors import InputError

_STAT_FILE = "stat.txt"


_FILES = {"train.txt", "valid.txt", "test.txt", ENTITY_FILE, RELATION_FILE, _STAT_FILE, CLOCK_FILE}


def write_dataset(dataset: Dataset, folder: Path, *, literal: bool = False, replace: bool = False) -> None:
    """Write the usual layout with the 5:2:3 split as its three files; the folder must be new or empty, or with
    `replace` hold a data set. A `literal` one has the calendar beside it, and loads with the very same names.
    """
    check_target(folder, replace=replace)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target and renamed at the end, so that a folder with this name is whole.
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
        whole = Path(scratch, "content")
        whole.mkdir()
        _write_files(dataset, whole, literal)
        former = Path(scratch, "former")
        if replace and folder.exists():
            folder.rename(former)
        try:
            whole.replace(folder)
        except OSError:
            if former.exists():
                former.rename(folder)
            raise


def check_target(folder: Path, *, replace: bool = False) -> None:
    """Refuse a folder that `write_dataset` must not write to."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file: choose a new folder")
    inside = {path.name for path in folder.iterdir()}
    if inside and not replace:
        raise InputError(f"{folder} is not empty: choose a new folder or remove what is in it")
    # Replacing removes the folder, so it must hold nothing that was not written here.
    if foreign := sorted(inside - _FILES):
        raise InputError(f"{folder} holds more than a data set ({', '.join(foreign[:3])}): choose another folder")


def _write_files(dataset: Dataset, folder: Path, literal: bool) -> None:
    for file, names in ((ENTITY_FILE, dataset.entities), (RELATION_FILE, dataset.relations)):
        _write(folder / file, "".join(f"{name}\t{i}\n" for i, name in enumerate(names)))
    _write(folder / _STAT_FILE, f"{dataset.n_entities}\t{dataset.n_relations}\t0\n")
    if literal:
        _write(folder / CLOCK_FILE, json.dumps(dataset.clock.as_dict() if dataset.clock else None) + "\n")
    for split in ("valid", "test", "train"):
        rows = dataset.split(split).copy()
        rows[:, 3] *= 1 if literal else dataset.step
        with (folder / f"{split}.txt").open("w", encoding="utf-8", newline="\n") as stream:
            np.savetxt(stream, rows, fmt="%d", delimiter="\t")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")

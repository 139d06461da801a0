"""Data sets with their names numbered anew, and their facts time by time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from adatkg_core.datasets.dataset import Dataset, Facts
from adatkg_core.errors import InputError


def facts_by_time(facts: Facts) -> Iterator[tuple[int, Facts]]:
    """(time, rows [n, 4]) for facts sorted by time."""
    times, starts = np.unique(facts[:, 3], return_index=True)
    yield from zip(times.tolist(), np.split(facts, starts[1:]), strict=True)


def aligned(dataset: Dataset, entities: Sequence[str], relations: Sequence[str]) -> Dataset:
    """The data set with its names numbered as given; entities that are new come last, in their order."""
    known = dict.fromkeys((*entities, *dataset.entities))
    entity_row = {name: row for row, name in enumerate(known)}
    relation_row = {name: row for row, name in enumerate(relations)}
    strange = [name for name in dataset.relations if name not in relation_row]
    if strange:
        raise InputError(
            f"data set {dataset.name}: relation {strange[0]!r} and {len(strange) - 1} others are unknown to the model; "
            "evaluate it on the graph it was trained for"
        )
    facts = dataset.facts.copy()
    rows = np.array([entity_row[name] for name in dataset.entities], dtype=np.int64)
    kinds = np.array([relation_row[name] for name in dataset.relations], dtype=np.int64)
    facts[:, 0], facts[:, 2], facts[:, 1] = rows[facts[:, 0]], rows[facts[:, 2]], kinds[facts[:, 1]]
    return replace(dataset, entities=tuple(known), relations=tuple(relations), facts=facts)


def by_first_appearance(dataset: Dataset) -> Dataset:
    """The data set with entities numbered as the stream meets them, those that never appear last."""
    met = dataset.facts[:, [0, 2]].reshape(-1)
    rows, first = np.unique(met, return_index=True)
    order = rows[np.argsort(first)]
    return aligned(dataset, [dataset.entities[row] for row in order], dataset.relations)


def first_of_each(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each distinct row first occurs, ascending."""
    order = np.lexsort(rows.T)
    new = np.ones(len(rows), bool)
    new[1:] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    return np.sort(order[new])

"""What a folder of any layout says: names, facts with their times, and what is worth telling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adatkg_core.datasets.layouts.names import Names, are_codes
from adatkg_core.datasets.layouts.quadruples import Integers, Part
from adatkg_core.datasets.layouts.times import Times, fifth_column, read_times
from adatkg_core.errors import InputError


@dataclass(frozen=True, eq=False)
class Reading:
    """The facts of a folder in the order of its files."""

    entities: Names
    relations: Names
    facts: Integers  # [n, 4]
    times: Times  # of the facts that are left
    notes: tuple[str, ...]


def put_together(folder: Path, entities: Names, relations: Names, parts: Sequence[Part]) -> Reading:
    """One reading of the files of a folder; facts without a time are left out, and that is noted."""
    ids = np.concatenate([part.ids for part in parts])
    if not len(ids):
        raise InputError(f"{folder} has no facts: {parts[0].path.name} must hold at least one quadruple")
    return with_times(folder, entities, relations, ids, read_times(parts), fifth_column(parts))


def with_times(
    folder: Path, entities: Names, relations: Names, ids: Integers, times: Times, notes: tuple[str, ...] = ()
) -> Reading:
    """The facts of these ids and times, as far as their time is known."""
    facts = np.column_stack([ids, times.values])
    if times.known is not None:
        facts = facts[times.known]
    if not len(facts):
        raise InputError(f"{folder} has no fact whose time is known: {'; '.join(times.notes)}")
    if are_codes(entities):
        notes += (f"entities have codes such as {entities[0]} for names: nothing can be learned from them",)
    return Reading(entities, relations, facts, times, (*times.notes, *notes))

"""Whom the terms propose: as `all_families` says, for one query."""

from __future__ import annotations

from typing import Any

import numpy as np

from adatkg_core.evidence.compiled.layout import (
    AS,
    AS_LATE,
    AT_ALL,
    BY_GROUP,
    BY_ROLE,
    CF,
    CN,
    INSIDE,
    MEMBER,
    ONE,
    SAME_ROLE,
    TERMS,
    ZERO,
    Asked,
    Scratch,
    Tables,
    single,
)
from adatkg_core.evidence.compiled.memory import Cells, floats, wide
from adatkg_core.evidence.compiled.subject import TINY
from adatkg_core.runtime import compiled

GRAIN = single(1e5)
PROPOSING = (AS, AS_LATE, CF, CN, BY_GROUP, AT_ALL, BY_ROLE)  # in the order in which their shares are summed


@compiled
def propose(tables: Tables, room: Scratch, asked: Asked, reached: int, fresh: int) -> int:
    """Write the candidates that are proposed into `proposed`; returns how many."""
    largest, found, ties = floats(room.largest), wide(room.proposed), wide(room.ties)
    for term in range(TERMS):
        largest[term] = ZERO
    _look(tables, room, wide(room.reached), reached)
    _look(tables, room, wide(room.fresh), fresh)
    for term in range(TERMS):
        largest[term] = ONE / max(largest[term], TINY)
    several = _weigh(tables, room, wide(room.reached), reached, 0)
    several = _weigh(tables, room, wide(room.fresh), fresh, several)
    least = ONE
    if several >= asked.proposals:
        least = max(kth_largest(floats(room.buffer), several, asked.proposals), ONE)
    count, tied = _take(tables, room, wide(room.reached), reached, least, 0, 0)
    count, tied = _take(tables, room, wide(room.fresh), fresh, least, count, tied)
    # The older of those who tie have the last places: they stand there as negative numbers.
    left = min(asked.proposals - count, tied)
    oldest = kth_largest(ties, tied, left) if 0 < left < tied else -asked.n
    for i in range(tied):
        if left > 0 and ties[i] >= oldest:
            found[count] = -ties[i]
            count += 1
    return _take_unnamed(tables, room, reached, least, count)


@compiled
def kth_largest(values: Cells[Any], count: int, k: int) -> Any:
    """The k-th largest of `count` values, which are put in another order."""
    low, high = 0, count - 1
    while low < high:
        pivot = values[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while values[left] > pivot:
                left += 1
            while values[right] < pivot:
                right -= 1
            if left <= right:
                held = values[left]
                values[left] = values[right]
                values[right] = held
                left += 1
                right -= 1
        if k - 1 <= right:
            high = right
        elif k - 1 >= left:
            low = left
        else:
            break
    return values[k - 1]


@compiled
def _look(tables: Tables, room: Scratch, some: Cells[int], count: int) -> None:
    """Take entities' terms into the largest of each; inside a group, only of those whom a fact has named."""
    terms, largest, interactions = floats(room.terms), floats(room.largest), wide(tables.interactions)
    for i in range(count):
        at = some[i] * TERMS
        for term in PROPOSING:
            largest[term] = max(largest[term], terms[at + term])
        if terms[at + MEMBER] != ZERO and interactions[some[i]] > 0:
            largest[INSIDE] = max(largest[INSIDE], terms[at + INSIDE])
            largest[SAME_ROLE] = max(largest[SAME_ROLE], terms[at + SAME_ROLE])


@compiled
def _weigh(tables: Tables, room: Scratch, some: Cells[int], count: int, several: int) -> int:
    """The sums of terms' shares as whole numbers, also into the buffer; returns how many are there by now."""
    terms, scale, worths, buffer = floats(room.terms), floats(room.largest), floats(room.worth), floats(room.buffer)
    interactions = wide(tables.interactions)
    for i in range(count):
        at, worth = some[i] * TERMS, ZERO
        for term in PROPOSING:
            worth += terms[at + term] * scale[term]
        is_member = terms[at + MEMBER] != ZERO
        if is_member:
            worth += min(terms[at + INSIDE] * scale[INSIDE], ONE)
            worth += min(terms[at + SAME_ROLE] * scale[SAME_ROLE], ONE)
        worth = single(np.rint(worth * GRAIN))
        worths[some[i]] = worth
        if worth >= ONE and not (is_member and interactions[some[i]] == 0):
            buffer[several] = worth
            several += 1
    return several


@compiled
def _take(
    tables: Tables, room: Scratch, some: Cells[int], count: int, least: float, found: int, tied: int
) -> tuple[int, int]:
    """Whoever is better than the last one is in, and whoever is as good is put aside."""
    worth, interactions, terms = floats(room.worth), wide(tables.interactions), floats(room.terms)
    proposed, ties = wide(room.proposed), wide(room.ties)
    for i in range(count):
        entity = some[i]
        if worth[entity] < least or (terms[entity * TERMS + MEMBER] != ZERO and interactions[entity] == 0):
            continue
        if worth[entity] > least:
            proposed[found] = entity
            found += 1
        else:
            ties[tied] = -entity
            tied += 1
    return found, tied


@compiled
def _take_unnamed(tables: Tables, room: Scratch, reached: int, least: float, found: int) -> int:
    """Who is there by name alone takes nobody's place."""
    worth, interactions, terms = floats(room.worth), wide(tables.interactions), floats(room.terms)
    list_of, proposed = wide(room.reached), wide(room.proposed)
    for i in range(reached):
        entity = list_of[i]
        if terms[entity * TERMS + MEMBER] != ZERO and interactions[entity] == 0 and worth[entity] >= least:
            proposed[found] = entity
            found += 1
    return found

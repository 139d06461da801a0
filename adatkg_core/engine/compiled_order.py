"""Rows of scores put into order by one pass over each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adatkg_core.evidence.compiled import Cells, doubles, floats, wide
from adatkg_core.runtime import compiled

LOOKED_AT = 32  # scores that are compared at once before any is looked at alone
EVERY = 8  # of so many scores one is looked at beforehand
FEW = 32  # of which so many at most are kept


class Room(NamedTuple):
    """Where what goes in and out lies; `ScoreOrder` and `Wanted` say what it is."""

    excluded: int
    asked: int
    left_out: int  # [visible] not zero for those that the present query excludes
    order: int
    best: int
    ends: int
    ranks: int


@compiled
def order_rows(
    scores: int, size: int, columns: int, visible: int, depth: int, excluded: int, asked: int, floor: float, room: Room
) -> bool:
    """Every row; False where a place is wanted among scores that are no numbers.

    An exclusion that is there twice counts once: the second is made -1.
    """
    values, pairs, left_out = floats(scores), wide(room.excluded), wide(room.left_out)
    ends, wanted, ranks = wide(room.ends), wide(room.asked), doubles(room.ranks)
    first = end = place = 0
    for q in range(size):
        row = q * columns
        while end < excluded and pairs[2 * end] == q:
            if left_out[pairs[2 * end + 1]]:
                pairs[2 * end + 1] = -1
            else:
                left_out[pairs[2 * end + 1]] = 1
            end += 1
        ends[q] = _best(values, row, visible, depth, floor, left_out, end - first, room, q * depth)
        while place < asked and wanted[2 * place] == q:
            target = wanted[2 * place + 1]
            rank = _rank(values, row, visible, target, pairs, first, end)
            if rank < 0:
                return False
            ranks[place] = rank
            place += 1
        while first < end:
            if pairs[2 * first + 1] >= 0:
                left_out[pairs[2 * first + 1]] = 0
            first += 1
    return True


@compiled
def _best(
    values: Cells[float],
    row: int,
    visible: int,
    depth: int,
    floor: float,
    left_out: Cells[int],
    excluded: int,
    room: Room,
    at: int,
) -> int:
    """Write the best from `at` on; returns how many there are. At most so many are excluded.

    While they are looked for, they are a heap whose first is the least.
    """
    order, best = wide(room.order), floats(room.best)
    least = _bound(values, row, visible, depth + excluded, floor)
    count = 0
    for start in range(0, visible if depth else 0, LOOKED_AT):
        end = min(start + LOOKED_AT, visible)
        above = 0
        for column in range(start, end):
            above += values[row + column] > least
        if above == 0:
            continue
        for column in range(start, end):
            score = values[row + column]
            if score > least and left_out[column] == 0:
                if count < depth:
                    count += 1
                    _rise(best, order, at, count - 1, score, column)
                else:
                    _sink(best, order, at, depth, score, column)
                if count == depth:
                    least = best[at]
    for size in range(count - 1, 0, -1):  # the least of those that are left goes behind them
        score, column = best[at + size], order[at + size]
        best[at + size], order[at + size] = best[at], order[at]
        _sink(best, order, at, size, score, column)
    return count


@compiled
def _bound(values: Cells[float], row: int, visible: int, wanted: int, floor: float) -> float:
    """Below this none of the best can be: a score that about twice as many as wanted are above, by a look at a few.

    Most of the work of a heap is in those that enter and do not stay.
    """
    most = (2 * wanted + EVERY - 1) // EVERY  # that many of those looked at
    if most > FEW or visible < EVERY * FEW:
        return floor
    seen = np.empty(FEW + 1, np.float32)  # the best of those looked at, best first
    count = 0
    for column in range(0, visible, EVERY):
        score = values[row + column]
        if count == most and not score > seen[count - 1]:
            continue
        i = min(count, most - 1)
        while i > 0 and seen[i - 1] < score:
            seen[i] = seen[i - 1]
            i -= 1
        seen[i] = score
        count = min(count + 1, most)
    bound, above = seen[most - 1], 0
    for column in range(visible):
        above += values[row + column] > bound
    return bound if above >= wanted and bound > floor else floor


@compiled
def _rise(best: Cells[float], order: Cells[int], at: int, i: int, score: float, column: int) -> None:
    """One more in a heap of i."""
    while i > 0:
        parent = (i - 1) // 2
        if not _is_less(score, column, best[at + parent], order[at + parent]):
            break
        best[at + i], order[at + i] = best[at + parent], order[at + parent]
        i = parent
    best[at + i], order[at + i] = score, column


@compiled
def _sink(best: Cells[float], order: Cells[int], at: int, size: int, score: float, column: int) -> None:
    """Another one in the place of the least."""
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and _is_less(
            best[at + child + 1], order[at + child + 1], best[at + child], order[at + child]
        ):
            child += 1
        if not _is_less(best[at + child], order[at + child], score, column):
            break
        best[at + i], order[at + i] = best[at + child], order[at + child]
        i = child
    best[at + i], order[at + i] = score, column


@compiled
def _is_less(score: float, column: int, other_score: float, other_column: int) -> bool:
    """Whether one comes after another: among equals the later column."""
    return score < other_score or (score == other_score and column > other_column)


@compiled
def _rank(values: Cells[float], row: int, visible: int, target: int, pairs: Cells[int], first: int, end: int) -> float:
    """The mean of the best and the worst place of a column; -1 where a score is no number."""
    own = values[row + target]
    above = level = numbers = 0
    for column in range(visible):
        score = values[row + column]
        above += score > own
        level += score >= own
        numbers += score == score
    if numbers < visible or own != own:
        return -1.0
    if target >= visible:
        level += 1  # counts the target itself, as where it is a candidate
    for i in range(first, end):
        column = pairs[2 * i + 1]
        if column >= 0 and column != target:
            above -= values[row + column] > own
            level -= values[row + column] >= own
    return (above + 1 + level) / 2

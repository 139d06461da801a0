"""Counting interactions in a paged table, row by row: the same as `PagedTable.add`, bit for bit.

A row that gets more of the same tick goes back to where it was before the tick and takes in all of them at once, so it
never depends on how they arrived.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adatkg_core.engine.live_commit.layout import (
    CLAIMED,
    FREE,
    NEXT_PAGE,
    NOBODY,
    TOUCHED,
    USED,
    Kept,
    Single,
    TableRows,
    Waiting,
    Wide,
)
from adatkg_core.runtime import compiled

PAGE = 16
TICKS = 63
SHIFT = 32  # bits of a key that are the other end
BITS = 12  # of a key's hash, by which most slots are told from those that are looked for
SEVERAL = 16  # slots to make room in from which on all are put into order at once


@compiled
def count_rows(
    table: TableRows, waiting: Waiting, kept: Kept, start: int, end: int, time: int, fast: Single, slow: Single
) -> None:
    """Take in the interactions start..end besides those before them."""
    rows = np.unique(waiting.row[start:end])  # ascending, so that new pages are numbered as by a single commit
    for row in rows:
        restore_row(table, kept, row)
    for i in range(start, end):
        waiting.before[i] = waiting.latest[waiting.row[i]]
        waiting.latest[waiting.row[i]] = i
    for row in rows:
        _count_row(table, waiting, kept, row, time, fast, slow)


@compiled
def restore_rows(table: TableRows, kept: Kept, rows: Wide) -> None:
    """Make rows what they were before the tick."""
    for row in rows:
        restore_row(table, kept, row)


@compiled
def restore_row(table: TableRows, kept: Kept, row: int) -> None:
    """Make a row what it was before the tick; pages that it claimed wait for it."""
    if kept.fill[row] == NOBODY:
        return
    table.fill[row] = kept.fill[row]
    entry = int(kept.newest[row])
    while entry != NOBODY:
        slot = kept.slot[entry]
        table.relation[slot], table.other[slot] = kept.relation[entry], kept.other[entry]
        table.last[slot], table.amount[slot] = kept.last[entry], kept.amount[entry]
        table.fast[slot], table.slow[slot] = kept.fast[entry], kept.slow[entry]
        if table.ticks.size:
            table.first[slot], table.times[slot] = kept.first[entry], kept.times[entry]
            table.ticks[slot] = kept.ticks[entry]
        following = kept.before[entry]
        kept.before[entry] = kept.numbers[FREE]
        kept.numbers[FREE] = entry
        entry = following
    kept.newest[row] = NOBODY


@compiled
def restore_all(table: TableRows, waiting: Waiting, kept: Kept, count: int, page: int) -> None:
    """Make the table what it was before the tick, when its next page was `page`."""
    for i in range(kept.numbers[TOUCHED]):
        restore_row(table, kept, kept.touched[i])
    for i in range(kept.numbers[CLAIMED]):
        table.pages[kept.claimed[i, 0], kept.claimed[i, 1]] = NOBODY
    forget_all(waiting, kept, count, page)


@compiled
def forget_all(waiting: Waiting, kept: Kept, count: int, page: int) -> None:
    """What was written stays, and the tick's `count` interactions wait no more."""
    for i in range(kept.numbers[TOUCHED]):
        kept.fill[kept.touched[i]] = kept.newest[kept.touched[i]] = NOBODY
    for i in range(count):
        waiting.latest[waiting.row[i]] = NOBODY
    kept.numbers[USED] = kept.numbers[TOUCHED] = kept.numbers[CLAIMED] = 0
    kept.numbers[FREE], kept.numbers[NEXT_PAGE] = NOBODY, page


@compiled
def _count_row(table: TableRows, waiting: Waiting, kept: Kept, row: int, time: int, fast: Single, slow: Single) -> None:
    if kept.fill[row] == NOBODY:
        kept.touched[kept.numbers[TOUCHED]] = row
        kept.numbers[TOUCHED] += 1
        kept.fill[row] = table.fill[row]
    keys, weights = _distinct(waiting, row)
    is_known = _bump_known(table, kept, row, keys, weights, time, fast, slow)
    most = table.pages.shape[1] * PAGE
    filled, over = int(table.fill[row]), 0
    for k in range(keys.size):
        if is_known[k]:
            continue
        if filled == most:
            keys[over], weights[over] = keys[k], weights[k]
            over += 1
            continue
        if filled % PAGE == 0:
            _claim(table, kept, row, filled // PAGE)
        _write(table, kept, row, _slot(table, row, filled), keys[k], weights[k], time)
        filled += 1
    table.fill[row] = filled
    if over:
        _make_room(table, kept, row, keys[:over], weights, time, slow)


@compiled
def _distinct(waiting: Waiting, row: int) -> tuple[Wide, Single]:
    """The distinct (relation, other) of a row as keys, ascending, and how often each came."""
    size, i = 0, int(waiting.latest[row])
    while i != NOBODY:
        size += 1
        i = waiting.before[i]
    keys = np.empty(size, np.int64)
    i = int(waiting.latest[row])
    for k in range(size):
        keys[k] = (waiting.relation[i] << SHIFT) | waiting.other[i]
        i = waiting.before[i]
    if size > 1:
        keys.sort()
    weights = np.empty(size, np.float32)
    found = 0
    for k in range(size):
        if k and keys[k] == keys[found - 1]:
            weights[found - 1] += np.float32(1)
        else:
            keys[found], weights[found] = keys[k], np.float32(1)
            found += 1
    return keys[:found], weights[:found]


@compiled
def _bump_known(
    table: TableRows, kept: Kept, row: int, keys: Wide, weights: Single, time: int, fast: Single, slow: Single
) -> NDArray[Any]:
    """Count what stands in the row already; returns which of the keys that is."""
    is_known = np.zeros(keys.size, np.bool_)
    may_be = np.zeros(1 << BITS, np.bool_)
    for key in keys:
        may_be[_hashed(key)] = True
    for j in range(table.fill[row]):
        slot = _slot(table, row, j)
        key = (int(table.relation[slot]) << SHIFT) | int(table.other[slot])
        if not may_be[_hashed(key)]:
            continue
        k = np.searchsorted(keys, key)
        if k == keys.size or keys[k] != key:
            continue
        is_known[k] = True
        _keep(table, kept, row, slot)
        since = int(time) - int(table.last[slot])
        age = max(since, 0)
        if table.ticks.size:
            table.times[slot] += since > 0
            bits = table.ticks[slot] << min(age, TICKS - 1) & ((1 << TICKS) - 1)
            table.ticks[slot] = (bits if since < TICKS else 0) | 1
        table.amount[slot] += weights[k]
        table.fast[slot] = table.fast[slot] * fast[min(age, fast.size - 1)] + weights[k]
        table.slow[slot] = table.slow[slot] * slow[min(age, slow.size - 1)] + weights[k]
        table.last[slot] = time
    return is_known


@compiled
def _make_room(table: TableRows, kept: Kept, row: int, keys: Wide, weights: Single, time: int, slow: Single) -> None:
    """Put keys into the least lively slots of a full row, the first one among equals; what this tick wrote stays."""
    size = table.pages.shape[1] * PAGE
    lively = np.empty(size, np.float32)
    for j in range(size):
        slot = _slot(table, row, j)
        since = int(time) - int(table.last[slot])
        lively[j] = table.slow[slot] * slow[min(since, slow.size - 1)] if since > 0 else np.float32(np.inf)
    order: Wide = np.argsort(lively, kind="mergesort") if keys.size > SEVERAL else np.empty(0, np.int64)
    for k in range(keys.size):
        if k >= size:
            return
        j = int(order[k]) if keys.size > SEVERAL else int(np.argmin(lively))
        if lively[j] == np.inf:
            return
        lively[j] = np.inf
        _write(table, kept, row, _slot(table, row, j), keys[k], weights[k], time)


@compiled
def _hashed(key: int) -> int:
    return (key ^ (key >> SHIFT) * 37) & ((1 << BITS) - 1)


@compiled
def _slot(table: TableRows, row: int, j: int) -> int:
    return int(table.pages[row, j // PAGE]) * PAGE + j % PAGE


@compiled
def _claim(table: TableRows, kept: Kept, row: int, which: int) -> None:
    """A page for a row; one that it claimed earlier in the tick has waited for it."""
    if table.pages[row, which] == NOBODY:
        table.pages[row, which] = kept.numbers[NEXT_PAGE]
        kept.numbers[NEXT_PAGE] += 1
        kept.claimed[kept.numbers[CLAIMED], 0], kept.claimed[kept.numbers[CLAIMED], 1] = row, which
        kept.numbers[CLAIMED] += 1


@compiled
def _write(table: TableRows, kept: Kept, row: int, slot: int, key: int, weight: float, time: int) -> None:
    _keep(table, kept, row, slot)
    table.relation[slot], table.other[slot], table.last[slot] = key >> SHIFT, key & ((1 << SHIFT) - 1), time
    table.amount[slot] = table.fast[slot] = table.slow[slot] = weight
    if table.ticks.size:
        table.first[slot], table.times[slot], table.ticks[slot] = time, 1, 1


@compiled
def _keep(table: TableRows, kept: Kept, row: int, slot: int) -> None:
    """Remember what a slot holds, for `restore_row`."""
    entry = kept.numbers[FREE]
    if entry == NOBODY:
        entry = kept.numbers[USED]
        kept.numbers[USED] += 1
    else:
        kept.numbers[FREE] = kept.before[entry]
    kept.slot[entry], kept.before[entry] = slot, kept.newest[row]
    kept.newest[row] = entry
    kept.relation[entry], kept.other[entry], kept.last[entry] = (
        table.relation[slot],
        table.other[slot],
        table.last[slot],
    )
    kept.amount[entry], kept.fast[entry], kept.slow[entry] = table.amount[slot], table.fast[slot], table.slow[slot]
    if table.ticks.size:
        kept.first[entry], kept.times[entry] = table.first[slot], table.times[slot]
        kept.ticks[entry] = table.ticks[slot]

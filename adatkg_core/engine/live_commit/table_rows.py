"""Counting interactions in a paged table, row by row: the same as `PagedTable.add`, bit for bit.

A row that gets more of the same tick goes back to where it was before the tick and takes in all of them at once, so it
never depends on how they arrived. What a key costs does not depend on how many slots its row has: `row_index` finds it,
`making_room` finds who gives way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from adatkg_core.engine.live_commit.cells import (
    Decay,
    KeptCells,
    ShortcutCells,
    TableCells,
    WaitingCells,
    decay,
    kept_at,
    shortcuts_at,
    table_at,
    waiting_at,
)
from adatkg_core.engine.live_commit.fetching import PLACES, fetch_ahead
from adatkg_core.engine.live_commit.layout import (
    CLAIMED,
    FREE,
    NEXT_PAGE,
    NOBODY,
    TOUCHED,
    USED,
    Short,
    Single,
    Wide,
)
from adatkg_core.engine.live_commit.making_room import make_room
from adatkg_core.engine.live_commit.row_index import find, link, make_index, unlink
from adatkg_core.engine.live_commit.slots import (
    PAGE,
    SHIFT,
    bump_slot,
    key_of,
    page_holds,
    put_back,
    slot_at,
    write_slot,
)
from adatkg_core.runtime import compiled

ONE: Any = np.float32(1)
BITS = 8  # of a key's hash, by which most slots are told from those that are looked for


class _Tick(NamedTuple):
    table: TableCells
    shortcuts: ShortcutCells
    waiting: WaitingCells
    kept: KeptCells
    time: int
    fast: Decay
    slow: Decay


@compiled
def count_rows(
    places: Wide, first: Short, following: Short, start: int, end: int, time: int, fast: Single, slow: Single
) -> None:
    """Take in the interactions start..end besides those before them; `places` are where all of a table is."""
    table, shortcuts = table_at(places), shortcuts_at(places, first, following)
    waiting, kept = waiting_at(places), kept_at(places)
    fresh = np.empty(end - start, np.int64)
    for i in range(fresh.size):
        fresh[i] = waiting.row[start + i]
    rows = np.unique(fresh)  # ascending, so that new pages are numbered as by a single commit
    _restore(table, shortcuts, kept, rows)
    for i in range(start, end):
        waiting.before[i] = waiting.latest[waiting.row[i]]
        waiting.latest[waiting.row[i]] = i
    tick = _Tick(table, shortcuts, waiting, kept, time, decay(fast), decay(slow))
    for i in range(-PLACES, rows.size):
        fetch_ahead(table, shortcuts, waiting, kept, rows, i)
        if i >= 0:
            _count_row(tick, rows[i])


@compiled
def restore_rows(places: Wide, first: Short, following: Short, rows: Wide) -> None:
    """Make rows what they were before the tick."""
    _restore(table_at(places), shortcuts_at(places, first, following), kept_at(places), rows)


@compiled
def _restore(table: TableCells, shortcuts: ShortcutCells, kept: KeptCells, rows: Wide) -> None:
    for row in rows:
        if kept.fill[row] != NOBODY:
            _restore_row(table, shortcuts, kept, row)


@compiled
def restore_all(places: Wide, first: Short, following: Short, count: int, page: int) -> None:
    """Make the table what it was before the tick, when its next page was `page`."""
    table, kept = table_at(places), kept_at(places)
    touched = np.empty(kept.numbers[TOUCHED], np.int64)
    for i in range(touched.size):
        touched[i] = kept.touched[i]
    restore_rows(places, first, following, touched)
    for i in range(kept.numbers[CLAIMED]):
        table.pages[kept.claimed[2 * i] * table.width + kept.claimed[2 * i + 1]] = NOBODY
    forget_all(places, count, page)


@compiled
def forget_all(places: Wide, count: int, page: int) -> None:
    """What was written stays, and the tick's `count` interactions wait no more."""
    waiting, kept = waiting_at(places), kept_at(places)
    for i in range(kept.numbers[TOUCHED]):
        kept.fill[kept.touched[i]] = kept.newest[kept.touched[i]] = NOBODY
    for i in range(count):
        waiting.latest[waiting.row[i]] = NOBODY
    kept.numbers[USED] = kept.numbers[TOUCHED] = kept.numbers[CLAIMED] = 0
    kept.numbers[FREE], kept.numbers[NEXT_PAGE] = NOBODY, page


@compiled
def _restore_row(table: TableCells, shortcuts: ShortcutCells, kept: KeptCells, row: int) -> None:
    """Make a row that the tick has touched what it was before; pages that it claimed wait for it."""
    table.fill[row] = kept.fill[row]
    has_index = shortcuts.buckets[row] > 0
    entry = kept.newest[row]
    while entry != NOBODY:
        slot, position = kept.slot[entry], kept.position[entry]
        is_new = position >= kept.fill[row]
        had_another = table.relation[slot] != kept.relation[entry] or table.other[slot] != kept.other[entry]
        if has_index and (is_new or had_another):
            unlink(table, shortcuts, row, position)
        put_back(table, kept, entry)
        if has_index and had_another and not is_new:
            link(table, shortcuts, row, position)
        following = kept.before[entry]
        kept.before[entry] = kept.numbers[FREE]
        kept.numbers[FREE] = entry
        entry = following
    kept.newest[row] = NOBODY


@compiled
def _count_row(tick: _Tick, row: int) -> None:
    table, shortcuts, kept = tick.table, tick.shortcuts, tick.kept
    keys, weights, stands = tick.waiting.key, tick.waiting.weight, tick.waiting.position
    if kept.fill[row] == NOBODY:
        kept.touched[kept.numbers[TOUCHED]] = row
        kept.numbers[TOUCHED] += 1
        kept.fill[row] = table.fill[row]
    make_index(table, shortcuts, row)
    count = _gather_keys(tick.waiting, row)
    _find_keys(table, shortcuts, tick.waiting, row, count)
    most, filled, over = table.width * PAGE, table.fill[row], 0
    for k in range(count):
        if stands[k] != NOBODY:
            bump_slot(table, kept, row, stands[k], weights[k], tick.time, tick.fast, tick.slow)
            continue
        if filled == most:
            keys[over], weights[over] = keys[k], weights[k]
            over += 1
            continue
        if filled % PAGE == 0:
            _claim(table, kept, row, filled // PAGE)
        write_slot(table, kept, row, filled, keys[k], weights[k], tick.time)
        if shortcuts.buckets[row]:
            link(table, shortcuts, row, filled)
        filled += 1
    table.fill[row] = filled
    if over:
        make_room(table, shortcuts, kept, row, keys, weights, stands, over, tick.time, tick.slow)


@compiled
def _gather_keys(waiting: WaitingCells, row: int) -> int:
    """The distinct (relation, other) of a row as keys, ascending, and how often each came; returns how many."""
    size, i = 0, waiting.latest[row]
    while i != NOBODY:
        waiting.key[size] = (waiting.relation[i] << SHIFT) | waiting.other[i]
        size += 1
        i = waiting.before[i]
    if size > 1:
        keys = np.empty(size, np.int64)
        for k in range(size):
            keys[k] = waiting.key[k]
        keys.sort()
        for k in range(size):
            waiting.key[k] = keys[k]
    found = 0
    for k in range(size):
        if k and waiting.key[k] == waiting.key[found - 1]:
            waiting.weight[found - 1] += ONE
        else:
            waiting.key[found], waiting.weight[found] = waiting.key[k], ONE
            found += 1
    return found


@compiled
def _find_keys(table: TableCells, shortcuts: ShortcutCells, waiting: WaitingCells, row: int, count: int) -> None:
    """Find where in the row each of the ascending keys stands, NOBODY where it does not."""
    if shortcuts.buckets[row]:
        for k in range(count):
            waiting.position[k] = find(table, shortcuts, row, waiting.key[k])
        return
    if count == 1:
        waiting.position[0] = _look_for(table, row, waiting.key[0])
        return
    may_be = np.zeros(1 << BITS, np.bool_)
    for k in range(count):
        may_be[_hashed(waiting.key[k])] = True
        waiting.position[k] = NOBODY
    for position in range(table.fill[row]):
        key = key_of(table, slot_at(table, row, position))
        if not may_be[_hashed(key)]:
            continue
        first, end = 0, count
        while first < end:
            middle = (first + end) // 2
            if waiting.key[middle] < key:
                first = middle + 1
            else:
                end = middle
        if first < count and waiting.key[first] == key:
            waiting.position[first] = position


@compiled
def _look_for(table: TableCells, row: int, key: int) -> int:
    """Where in a short row a key stands."""
    relation, other, filled = key >> SHIFT, key & ((1 << SHIFT) - 1), table.fill[row]
    for page in range((filled + PAGE - 1) // PAGE):
        start = slot_at(table, row, page * PAGE)
        if page_holds(table.other, start, other):
            for k in range(min(PAGE, filled - page * PAGE)):
                if table.other[start + k] == other and table.relation[start + k] == relation:
                    return page * PAGE + k
    return NOBODY


@compiled
def _hashed(key: int) -> int:
    return (key ^ (key >> SHIFT) * 37) & ((1 << BITS) - 1)


@compiled
def _claim(table: TableCells, kept: KeptCells, row: int, which: int) -> None:
    """A page for a row; one that it claimed earlier in the tick has waited for it."""
    place = row * table.width + which
    if table.pages[place] == NOBODY:
        table.pages[place] = kept.numbers[NEXT_PAGE]
        kept.numbers[NEXT_PAGE] += 1
        claim = 2 * kept.numbers[CLAIMED]
        kept.claimed[claim], kept.claimed[claim + 1] = row, which
        kept.numbers[CLAIMED] += 1

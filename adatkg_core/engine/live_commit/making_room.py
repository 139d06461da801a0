"""Who makes room in a full row, without looking through the row: its least lively slots, as in `PagedTable`.

A full row has a bound for each of its pages, below which no slot of it is. Only pages that may hold the least lively
slot are looked through, and that tightens their bounds. A bound stays true when a slot is counted again, which makes it
livelier; and since a page in which the tick has written keeps its bound, also when the tick is taken out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adatkg_core.engine.live_commit.cells import Decay, KeptCells, ShortcutCells, TableCells, fetch
from adatkg_core.engine.live_commit.layout import NOBODY
from adatkg_core.engine.live_commit.row_index import bucket_of, link, unlink_from
from adatkg_core.engine.live_commit.slots import PAGE, key_of, slot_at, write_slot
from adatkg_core.evidence.compiled import Cells
from adatkg_core.runtime import compiled

single: Any = np.float32
NEVER = single(np.inf)  # what the tick wrote stays
ZERO = single(0)
SLACK = single(1 - 3e-5)  # more than what products of shares that are left can be off by
FADED = single(2e-38)  # below this they may be off by any factor


@compiled
def make_room(
    table: TableCells,
    shortcuts: ShortcutCells,
    kept: KeptCells,
    row: int,
    keys: Cells[int],
    weights: Cells[float],
    stands: Cells[int],
    count: int,
    time: int,
    slow: Decay,
) -> None:
    """Put keys into the least lively slots of a full row, the first one among equals; what this tick wrote stays.

    The index follows in the end, when the buckets of all these slots are on their way from memory at once: until then
    `keys` has the bucket of each slot's earlier key, and `stands` has the slot.
    """
    bounds = _find_bounds(table, shortcuts, kept, row, time, slow)
    # Of each page the least lively slot and where it stands; a bound and NOBODY as long as it is not looked through.
    lively, found = shortcuts.lively, shortcuts.found
    for page in range(table.width):
        lively[page] = shortcuts.least[bounds + page] if bounds != NOBODY else ZERO
        found[page] = NOBODY
    for k in range(count):
        page = first_least(shortcuts.lively_bits, 0, table.width)
        while found[page] == NOBODY:
            _look_through(table, shortcuts, row, page, time, slow, bounds)
            page = first_least(shortcuts.lively_bits, 0, table.width)
        if lively[page] == NEVER:
            count = k
            break
        position = found[page]
        key, stands[k] = keys[k], position
        if shortcuts.buckets[row]:
            keys[k] = bucket_of(table, shortcuts, row, key_of(table, slot_at(table, row, position)))
            fetch(shortcuts.first, keys[k])
        write_slot(table, kept, row, position, key, weights[k], time)
        if bounds != NOBODY:
            shortcuts.least[bounds + page] = min(shortcuts.least[bounds + page], weights[k])
        _look_through(table, shortcuts, row, page, time, slow, bounds)
    if shortcuts.buckets[row]:
        _index_anew(table, shortcuts, row, keys, stands, count)


@compiled
def _index_anew(
    table: TableCells, shortcuts: ShortcutCells, row: int, buckets: Cells[int], stands: Cells[int], count: int
) -> None:
    """Move slots from the buckets of the keys that they had to those of the keys that they have."""
    for k in range(count):
        first = shortcuts.first[buckets[k]]
        if first != stands[k]:
            fetch(shortcuts.following, slot_at(table, row, first))
    for k in range(count):
        unlink_from(table, shortcuts, row, stands[k], buckets[k])
    for k in range(count):
        link(table, shortcuts, row, stands[k])


@compiled
def _find_bounds(table: TableCells, shortcuts: ShortcutCells, kept: KeptCells, row: int, time: int, slow: Decay) -> int:
    """Where the bounds of a row begin, as of `time`; NOBODY if it is the tick itself that has filled the row."""
    if kept.fill[row] < table.width * PAGE:
        return NOBODY
    block = shortcuts.block[row]
    if block == NOBODY:
        block = shortcuts.used[0]
        shortcuts.used[0] += 1
        shortcuts.block[row], shortcuts.as_of[block] = block, time
        for page in range(table.width):
            shortcuts.least[block * table.width + page] = ZERO
    since = time - shortcuts.as_of[block]
    if since > 0:
        left = slow.left[min(since, slow.oldest)] * SLACK
        for i in range(block * table.width, (block + 1) * table.width):
            bound = shortcuts.least[i] * left
            shortcuts.least[i] = bound if bound >= FADED else ZERO
        shortcuts.as_of[block] = time
    return block * table.width


@compiled
def first_least(bits: Cells[int], start: int, width: int) -> int:
    """Where the least of some numbers stands first, by their bits, of which several are compared at once."""
    least = bits[start]
    for i in range(1, width):
        least = min(least, bits[start + i])
    first = 0
    while bits[start + first] != least:
        first += 1
    return first


@compiled
def _look_through(
    table: TableCells, shortcuts: ShortcutCells, row: int, page: int, time: int, slow: Decay, bounds: int
) -> None:
    """Find the least lively slot of a page, and its bound where the tick has not written there."""
    start = slot_at(table, row, page * PAGE)
    lowest, where, is_as_before = NEVER, 0, True
    for k in range(PAGE):
        since = time - table.last[start + k]
        if since <= 0:
            is_as_before = False
            continue
        value = table.slow[start + k] * slow.left[min(since, slow.oldest)]
        if value < lowest:
            lowest, where = value, k
    shortcuts.lively[page], shortcuts.found[page] = lowest, page * PAGE + where
    if is_as_before and bounds != NOBODY:
        shortcuts.least[bounds + page] = lowest

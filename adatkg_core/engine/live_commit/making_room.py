"""Who makes room in a full row, without looking through the row: its least lively slots, as in `PagedTable`.

A full row has a bound for each of its pages, below which no slot of it is. Only pages that may hold the least lively
slot are looked through, and that tightens their bounds. A bound stays true when a slot is counted again, which makes it
livelier; and since a page in which the tick has written keeps its bound, also when the tick is taken out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adatkg_core.engine.live_commit.cells import Decay, KeptCells, ShortcutCells, TableCells
from adatkg_core.engine.live_commit.layout import NOBODY
from adatkg_core.engine.live_commit.row_index import link, unlink
from adatkg_core.engine.live_commit.slots import PAGE, slot_at, write_slot
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
    count: int,
    time: int,
    slow: Decay,
) -> None:
    """Put keys into the least lively slots of a full row, the first one among equals; what this tick wrote stays."""
    bounds = _find_bounds(table, shortcuts, kept, row, time, slow)
    # Of each page the least lively slot and where it stands; a bound and NOBODY as long as it is not looked through.
    lively, found = shortcuts.lively, shortcuts.found
    for page in range(table.width):
        lively[page] = shortcuts.least[bounds + page] if bounds != NOBODY else ZERO
        found[page] = NOBODY
    for k in range(count):
        page = _first_least(lively, table.width)
        while found[page] == NOBODY:
            _look_through(table, shortcuts, row, page, time, slow, bounds)
            page = _first_least(lively, table.width)
        if lively[page] == NEVER:
            return
        position = found[page]
        if shortcuts.buckets[row]:
            unlink(table, shortcuts, row, position)
        write_slot(table, kept, row, position, keys[k], weights[k], time)
        if shortcuts.buckets[row]:
            link(table, shortcuts, row, position)
        if bounds != NOBODY:
            shortcuts.least[bounds + page] = min(shortcuts.least[bounds + page], weights[k])
        _look_through(table, shortcuts, row, page, time, slow, bounds)


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
def _first_least(lively: Cells[float], width: int) -> int:
    page = 0
    for other in range(1, width):
        if lively[other] < lively[page]:
            page = other
    return page


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

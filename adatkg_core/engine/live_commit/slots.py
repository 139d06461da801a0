"""Single slots of a paged table: where they stand, and what is written into them."""

from __future__ import annotations

from adatkg_core.engine.live_commit.cells import Decay, KeptCells, TableCells
from adatkg_core.engine.live_commit.layout import FREE, NOBODY, USED
from adatkg_core.evidence.compiled import Cells
from adatkg_core.runtime import compiled

PAGE_BITS = 4
PAGE = 1 << PAGE_BITS
TICKS = 63
SHIFT = 32  # bits of a key that are the other end


@compiled
def slot_at(table: TableCells, row: int, position: int) -> int:
    """The place in the table of a slot of a row."""
    return table.pages[row * table.width + (position >> PAGE_BITS)] * PAGE + (position & PAGE - 1)


@compiled
def key_of(table: TableCells, slot: int) -> int:
    """The relation and the other end of a slot in one number."""
    return (table.relation[slot] << SHIFT) | table.other[slot]


@compiled
def page_holds(numbers: Cells[int], start: int, wanted: int) -> bool:
    """Whether a number stands in a page; without a branch for each slot, so that several are compared at once."""
    found = False
    for k in range(PAGE):
        found |= numbers[start + k] == wanted
    return found


@compiled
def write_slot(table: TableCells, kept: KeptCells, row: int, position: int, key: int, weight: float, time: int) -> None:
    """Begin to count a key in a slot, whatever was there."""
    slot = slot_at(table, row, position)
    keep_slot(table, kept, row, position, slot)
    table.relation[slot], table.other[slot], table.last[slot] = key >> SHIFT, key & ((1 << SHIFT) - 1), time
    table.amount[slot] = table.fast[slot] = table.slow[slot] = weight
    if table.is_dated:
        table.first[slot], table.times[slot], table.ticks[slot] = time, 1, 1


@compiled
def bump_slot(
    table: TableCells, kept: KeptCells, row: int, position: int, weight: float, time: int, fast: Decay, slow: Decay
) -> None:
    """Count once more what a slot counts."""
    slot = slot_at(table, row, position)
    keep_slot(table, kept, row, position, slot)
    since = time - table.last[slot]
    age = max(since, 0)
    if table.is_dated:
        table.times[slot] += since > 0
        bits = table.ticks[slot] << min(age, TICKS - 1) & ((1 << TICKS) - 1)
        table.ticks[slot] = (bits if since < TICKS else 0) | 1
    table.amount[slot] += weight
    table.fast[slot] = table.fast[slot] * fast.left[min(age, fast.oldest)] + weight
    table.slow[slot] = table.slow[slot] * slow.left[min(age, slow.oldest)] + weight
    table.last[slot] = time


@compiled
def keep_slot(table: TableCells, kept: KeptCells, row: int, position: int, slot: int) -> None:
    """Remember what a slot holds, for `put_back`."""
    entry = kept.numbers[FREE]
    if entry == NOBODY:
        entry = kept.numbers[USED]
        kept.numbers[USED] += 1
    else:
        kept.numbers[FREE] = kept.before[entry]
    kept.slot[entry], kept.before[entry], kept.position[entry] = slot, kept.newest[row], position
    kept.newest[row] = entry
    kept.relation[entry], kept.other[entry] = table.relation[slot], table.other[slot]
    kept.last[entry], kept.amount[entry] = table.last[slot], table.amount[slot]
    kept.fast[entry], kept.slow[entry] = table.fast[slot], table.slow[slot]
    if table.is_dated:
        kept.first[entry], kept.times[entry] = table.first[slot], table.times[slot]
        kept.ticks[entry] = table.ticks[slot]


@compiled
def put_back(table: TableCells, kept: KeptCells, entry: int) -> None:
    """A slot is what was remembered."""
    slot = kept.slot[entry]
    table.relation[slot], table.other[slot] = kept.relation[entry], kept.other[entry]
    table.last[slot], table.amount[slot] = kept.last[entry], kept.amount[entry]
    table.fast[slot], table.slow[slot] = kept.fast[entry], kept.slow[entry]
    if table.is_dated:
        table.first[slot], table.times[slot] = kept.first[entry], kept.times[entry]
        table.ticks[slot] = kept.ticks[entry]

"""Where in a row a key stands, without looking through the row.

Slots whose keys hash alike are linked. A row has as many buckets as there are slots in its first 2^k pages, and the
bucket's beginning is kept at the place of such a slot: so an index needs no memory but two short numbers for each slot.
"""

from __future__ import annotations

from adatkg_core.engine.live_commit.cells import ShortcutCells, TableCells
from adatkg_core.engine.live_commit.layout import NOBODY
from adatkg_core.engine.live_commit.slots import PAGE, SHIFT, key_of, slot_at
from adatkg_core.runtime import compiled

LOOKED_THROUGH = 64  # slots of a row up to which an index would win nothing


@compiled
def make_index(table: TableCells, shortcuts: ShortcutCells, row: int) -> None:
    """See to it that a row with many slots, which is as before the tick, has an index of the right size."""
    fill = table.fill[row]
    if fill <= LOOKED_THROUGH:
        shortcuts.buckets[row] = 0
        return
    buckets = shortcuts.buckets[row]
    if buckets and 2 * buckets * PAGE > fill:
        return
    buckets = 1
    while 2 * buckets * PAGE <= fill:
        buckets *= 2
    shortcuts.buckets[row] = buckets
    for bucket in range(buckets * PAGE):
        shortcuts.first[slot_at(table, row, bucket)] = NOBODY
    for position in range(fill):
        link(table, shortcuts, row, position)


@compiled
def find(table: TableCells, shortcuts: ShortcutCells, row: int, key: int) -> int:
    """Where in an indexed row a key stands, NOBODY where it does not."""
    position = shortcuts.first[bucket_of(table, shortcuts, row, key)]
    while position != NOBODY:
        slot = slot_at(table, row, position)
        if key_of(table, slot) == key:
            return position
        position = shortcuts.following[slot]
    return NOBODY


@compiled
def link(table: TableCells, shortcuts: ShortcutCells, row: int, position: int) -> None:
    """A slot of an indexed row holds another key from now on."""
    slot = slot_at(table, row, position)
    bucket = bucket_of(table, shortcuts, row, key_of(table, slot))
    shortcuts.following[slot] = shortcuts.first[bucket]
    shortcuts.first[bucket] = position


@compiled
def unlink(table: TableCells, shortcuts: ShortcutCells, row: int, position: int) -> None:
    """A slot of an indexed row is about to lose its key."""
    key = key_of(table, slot_at(table, row, position))
    unlink_from(table, shortcuts, row, position, bucket_of(table, shortcuts, row, key))


@compiled
def unlink_from(table: TableCells, shortcuts: ShortcutCells, row: int, position: int, bucket: int) -> None:
    """Take a slot out of the bucket of the key that it had."""
    slot = slot_at(table, row, position)
    here = shortcuts.first[bucket]
    if here == position:
        shortcuts.first[bucket] = shortcuts.following[slot]
        return
    while here != position:
        before = slot_at(table, row, here)
        here = shortcuts.following[before]
    shortcuts.following[before] = shortcuts.following[slot]


@compiled
def bucket_of(table: TableCells, shortcuts: ShortcutCells, row: int, key: int) -> int:
    """The place at which the bucket of a key begins."""
    relation, other = key >> SHIFT, key & ((1 << SHIFT) - 1)
    mixed = (other * 0x9E3779B1 ^ relation * 0x85EBCA77) >> 15
    return slot_at(table, row, mixed & (shortcuts.buckets[row] * PAGE - 1))

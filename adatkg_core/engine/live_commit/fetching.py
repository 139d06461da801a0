"""What the next rows of a tick want from memory is asked for while others are counted; it changes no number.

The rows of a tick lie all over a table that no cache holds. Counted one after the other, each would wait for its own
memory several times; asked for some rows ahead, that of several rows is on its way at once.
"""

from __future__ import annotations

from adatkg_core.engine.live_commit.cells import KeptCells, ShortcutCells, TableCells, WaitingCells, fetch
from adatkg_core.engine.live_commit.layout import NOBODY, Wide
from adatkg_core.engine.live_commit.making_room import first_least
from adatkg_core.engine.live_commit.row_index import bucket_of
from adatkg_core.engine.live_commit.slots import PAGE, SHIFT, slot_at
from adatkg_core.runtime import compiled

# How many rows ahead: where a row stands is asked for first, then what tells its slots, then the slots themselves, and
# last what is said elsewhere of whom they name.
PLACES, PAGES, SLOTS, OTHERS = 12, 8, 4, 2


@compiled
def fetch_ahead(
    table: TableCells, shortcuts: ShortcutCells, waiting: WaitingCells, kept: KeptCells, rows: Wide, i: int
) -> None:
    """Ask for what the rows after the i-th will want; their counting begins at -PLACES, before there is any."""
    if i + PLACES < rows.size:
        _fetch_places(table, shortcuts, waiting, kept, rows[i + PLACES])
    if 0 <= i + PAGES < rows.size:
        _fetch_pages(table, shortcuts, waiting, rows[i + PAGES])
    if 0 <= i + SLOTS < rows.size:
        _fetch_slots(table, shortcuts, waiting, rows[i + SLOTS])


@compiled
def fetch_row(table: TableCells, row: int) -> None:
    """Where a row's slots stand, and how many they are."""
    fetch(table.fill, row)
    fetch(table.pages, row * table.width)


@compiled
def _fetch_places(
    table: TableCells, shortcuts: ShortcutCells, waiting: WaitingCells, kept: KeptCells, row: int
) -> None:
    fetch_row(table, row)
    fetch(shortcuts.buckets, row)
    fetch(shortcuts.block, row)
    fetch(waiting.latest, row)
    fetch(kept.fill, row)
    fetch(kept.newest, row)


@compiled
def _fetch_pages(table: TableCells, shortcuts: ShortcutCells, waiting: WaitingCells, row: int) -> None:
    """Where the keys of a row are looked for, and where a new one is written or who makes room for it."""
    filled = table.fill[row]
    if shortcuts.buckets[row]:
        i = waiting.latest[row]
        while i != NOBODY:
            fetch(shortcuts.first, bucket_of(table, shortcuts, row, _key(waiting, i)))
            i = waiting.before[i]
    else:
        fetch_column(table, row, filled)
    if filled == table.width * PAGE:
        if shortcuts.block[row] != NOBODY:
            for page in range(0, table.width, PAGE):
                fetch(shortcuts.least, shortcuts.block[row] * table.width + page)
    elif filled % PAGE:
        _fetch_slot(table, slot_at(table, row, filled))


@compiled
def _fetch_slots(table: TableCells, shortcuts: ShortcutCells, waiting: WaitingCells, row: int) -> None:
    """The first slots that are compared with the keys of a row with an index, and the page that may make room."""
    if not shortcuts.buckets[row]:
        return
    i = waiting.latest[row]
    while i != NOBODY:
        position = shortcuts.first[bucket_of(table, shortcuts, row, _key(waiting, i))]
        if position != NOBODY:
            slot = slot_at(table, row, position)
            fetch(table.relation, slot)
            fetch(table.other, slot)
            fetch(shortcuts.following, slot)
        i = waiting.before[i]
    if shortcuts.block[row] != NOBODY:
        page = first_least(shortcuts.bounds, shortcuts.block[row] * table.width, table.width)
        start = slot_at(table, row, page * PAGE)
        _fetch_slot(table, start)
        fetch(table.other, start)
        fetch(shortcuts.following, start)


@compiled
def fetch_column(table: TableCells, row: int, filled: int) -> None:
    """The other ends of a row's slots."""
    for position in range(0, filled, PAGE):
        fetch(table.other, slot_at(table, row, position))


@compiled
def _fetch_slot(table: TableCells, slot: int) -> None:
    """All of a slot but the other end."""
    fetch(table.relation, slot)
    fetch(table.last, slot)
    fetch(table.amount, slot)
    fetch(table.fast, slot)
    fetch(table.slow, slot)
    if table.is_dated:
        fetch(table.first, slot)
        fetch(table.times, slot)
        fetch(table.ticks, slot)


@compiled
def _key(waiting: WaitingCells, i: int) -> int:
    return (waiting.relation[i] << SHIFT) | waiting.other[i]

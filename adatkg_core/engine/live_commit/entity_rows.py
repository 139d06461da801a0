"""Counting interactions in the rows of entities themselves: the same as a single commit, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from adatkg_core.engine.live_commit.cells import (
    Decay,
    EntityCells,
    KeptCells,
    TableCells,
    cells_of,
    decay,
    entity_cells,
    fetch,
    kept_at,
    table_at,
)
from adatkg_core.engine.live_commit.fetching import OTHERS, PLACES, SLOTS, fetch_column, fetch_row
from adatkg_core.engine.live_commit.layout import (
    NOBODY,
    TOUCHED,
    EntityRows,
    Followed,
    KeptEntities,
    Single,
    Waiting,
    Wide,
)
from adatkg_core.engine.live_commit.slots import PAGE, page_holds, slot_at
from adatkg_core.evidence.compiled import Cells
from adatkg_core.runtime import compiled

single: Any = np.float32
ZERO, ONE, QUARTER = single(0), single(1), single(0.25)


@compiled
def keep_entities(entities: EntityRows, kept: KeptEntities, rows: Wide, count: int) -> int:
    """Bring distinct rows back to where they were before the tick, or keep them; returns how many are kept now."""
    cells, places, capacity = entity_cells(entities), cells_of(kept.place), entities.ring_time.shape[1]
    for i in range(rows.size):
        row = rows[i]
        if i + SLOTS < rows.size:
            fetch(places, rows[i + SLOTS])
            _fetch_entity(cells, rows[i + SLOTS], capacity)
        place = int(kept.place[row])
        if place != NOBODY:
            _copy(kept.was, place, entities, row)
        else:
            _copy(entities, row, kept.was, count)
            kept.place[row], kept.entity[count] = count, row
            count += 1
    return count


@compiled
def _fetch_entity(entities: EntityCells, row: int, capacity: int) -> None:
    for column in range(0, capacity, PAGE):
        fetch(entities.ring_relation, row * capacity + column)
        fetch(entities.ring_other, row * capacity + column)
        fetch(entities.ring_time, row * capacity + column)
    fetch(entities.interactions, row)
    fetch(entities.last_time, row)
    fetch(entities.activity_fast, row)
    fetch(entities.activity_slow, row)
    fetch(entities.row_length, row)


@compiled
def restore_entities(entities: EntityRows, kept: KeptEntities, count: int) -> None:
    """All are what they were before the tick."""
    for place in range(count):
        _copy(kept.was, place, entities, kept.entity[place])
    forget_entities(kept, count)


@compiled
def forget_entities(kept: KeptEntities, count: int) -> None:
    """They stay as they are."""
    for place in range(count):
        kept.place[kept.entity[place]] = NOBODY


@compiled
def _copy(source: EntityRows, at: int, target: EntityRows, to: int) -> None:
    target.ring_relation[to] = source.ring_relation[at]
    target.ring_other[to] = source.ring_other[at]
    target.ring_time[to] = source.ring_time[at]
    target.interactions[to], target.last_time[to] = source.interactions[at], source.last_time[at]
    if source.activity_fast.size:
        target.activity_fast[to], target.activity_slow[to] = source.activity_fast[at], source.activity_slow[at]
    if source.row_length.size:
        target.row_length[to] = source.row_length[at]


@compiled
def count_entities(
    entities: EntityRows, waiting: Waiting, of_object: Wide, rows: Wide, time: int, fast: Single, slow: Single
) -> None:
    """Take in all interactions of distinct rows, which are as before the tick: first as subjects, then as objects."""
    cells, capacity = entity_cells(entities), entities.ring_time.shape[1]
    latest = cells_of(waiting.latest)
    for i in range(rows.size):
        row = rows[i]
        if i + PLACES < rows.size:
            fetch(cells.interactions, rows[i + PLACES])
            fetch(cells.last_time, rows[i + PLACES])
            fetch(cells.activity_fast, rows[i + PLACES])
            fetch(cells.activity_slow, rows[i + PLACES])
            fetch(latest, rows[i + PLACES])
        if i + SLOTS < rows.size:
            next_place = rows[i + SLOTS] * capacity + entities.interactions[rows[i + SLOTS]] % capacity
            fetch(cells.ring_relation, next_place)
            fetch(cells.ring_other, next_place)
            fetch(cells.ring_time, next_place)
        mine = _in_order(waiting, of_object, row)
        before = entities.interactions[row]
        for k in range(max(0, mine.size - capacity), mine.size):
            column = (before + k) % capacity
            entities.ring_relation[row, column] = waiting.relation[mine[k]]
            entities.ring_other[row, column] = waiting.other[mine[k]]
            entities.ring_time[row, column] = time
        if entities.activity_fast.size:
            age, more = max(time - entities.last_time[row], 0), np.float32(mine.size)
            entities.activity_fast[row] = entities.activity_fast[row] * fast[min(age, fast.size - 1)] + more
            entities.activity_slow[row] = entities.activity_slow[row] * slow[min(age, slow.size - 1)] + more
        entities.interactions[row] = before + mine.size
        entities.last_time[row] = time


@compiled
def _in_order(waiting: Waiting, of_object: Wide, row: int) -> Wide:
    """The interactions of a row as a single commit of the whole tick would have them."""
    size, i = 0, int(waiting.latest[row])
    while i != NOBODY:
        size += 1
        i = waiting.before[i]
    latest_first = np.empty(size, np.int64)
    i = int(waiting.latest[row])
    for k in range(size):
        latest_first[k] = i
        i = waiting.before[i]
    mine = np.empty(size, np.int64)
    found = 0
    for side in range(2):
        for k in range(size - 1, -1, -1):
            if of_object[latest_first[k]] == side:
                mine[found] = latest_first[k]
                found += 1
    return mine


@compiled
def count_transitions(
    pair: Wide, entity: Wide, relation: Wide, other: Wide, followed: Followed, table: Single, size: int
) -> int:
    """Count after which relations of its pair each interaction came, by rows of the pair table as before the tick.

    `table` [2R, 2R] is the state's; returns how many of its places are kept by now.
    """
    cells = table_at(pair)
    seen = cells.other
    for i in range(entity.size):
        if i + PLACES < entity.size:
            fetch_row(cells, entity[i + PLACES])
        if i + SLOTS < entity.size:
            fetch_column(cells, entity[i + SLOTS], cells.fill[entity[i + SLOTS]])
        filled = cells.fill[entity[i]]
        for page in range((filled + PAGE - 1) // PAGE):
            start = slot_at(cells, entity[i], page * PAGE)
            if not page_holds(seen, start, other[i]):
                continue
            for slot in range(start, start + min(PAGE, filled - page * PAGE)):
                if seen[slot] != other[i]:
                    continue
                before, now = cells.relation[slot], relation[i]
                if followed.often[before, now] == 0:
                    followed.was[before, now] = table[before, now]
                    followed.place[size, 0], followed.place[size, 1] = before, now
                    size += 1
                followed.often[before, now] += 1
                table[before, now] = followed.was[before, now] + np.float32(followed.often[before, now])
    return size


@compiled
def end_transitions(followed: Followed, table: Single, size: int, restore: bool) -> None:
    """The tick's counts are forgotten; with `restore` they had never been."""
    for i in range(size):
        before, now = followed.place[i, 0], followed.place[i, 1]
        if restore:
            table[before, now] = followed.was[before, now]
        followed.often[before, now] = 0


@compiled
def measure_rows(partner: Wide, lengths: Single, rows: Wide, fill_before: Wide, time: int, slow: Single) -> None:
    """The lengths of changed rows of partners, and of rows of the tick that a change of how rare one is reaches."""
    table, left, kept = table_at(partner), decay(slow), kept_at(partner)
    touched = kept.fill
    most = kept.numbers[TOUCHED]
    measured, length, found = np.empty(most, np.int64), np.empty(most, np.float32), 0  # each row once
    terms = np.empty(PAGE, np.float32)
    for row in rows:
        found = _mark(lengths, measured, found, row)
    for i in range(min(found, SLOTS)):
        _fetch_row(table, measured[i])
    i = 0
    while i < found:
        if i + PLACES < found:
            fetch_row(table, measured[i + PLACES])
        if i + SLOTS < found:
            _fetch_row(table, measured[i + SLOTS])
        if i + OTHERS < found:
            _fetch_others(table, measured[i + OTHERS])
        filled = table.fill[measured[i]]
        spreads = found < most and i < rows.size and fill_before[i] != filled
        total = ZERO
        for position in range(0, filled, PAGE):
            start, inside = slot_at(table, measured[i], position), min(PAGE, filled - position)
            _weigh_page(table, start, time, left, cells_of(terms))
            for k in range(inside):
                total += terms[k]
            if spreads:  # who has the row as a partner is one of its own, or was before the tick: it was not full
                for slot in range(start, start + inside):
                    if touched[table.other[slot]] != NOBODY:
                        found = _mark(lengths, measured, found, table.other[slot])
        if spreads:
            found = _mark_former(kept, lengths, measured, found, measured[i])
        length[i] = np.sqrt(np.float64(total))
        i += 1
    for i in range(found):
        lengths[measured[i]] = length[i]


@compiled
def _mark_former(kept: KeptCells, lengths: Single, measured: Wide, found: int, row: int) -> int:
    """Partners that have made room in this very tick, which filled the row, still have it as theirs."""
    entry = int(kept.newest[row])
    while entry != NOBODY:
        if kept.fill[kept.other[entry]] != NOBODY:
            found = _mark(lengths, measured, found, kept.other[entry])
        entry = int(kept.before[entry])
    return found


@compiled
def _fetch_row(table: TableCells, row: int) -> None:
    """Have what `_weigh_page` will read of a row brought near, while others are weighed."""
    for position in range(0, table.fill[row], PAGE):
        start = slot_at(table, row, position)
        fetch(table.other, start)
        fetch(table.last, start)
        fetch(table.slow, start)


@compiled
def _fetch_others(table: TableCells, row: int) -> None:
    """How full the rows of a row's partners are, which lie all over the table."""
    filled = table.fill[row]
    for position in range(0, filled, PAGE):
        start = slot_at(table, row, position)
        for slot in range(start, start + min(PAGE, filled - position)):
            fetch(table.fill, table.other[slot])


@compiled
def _weigh_page(table: TableCells, start: int, time: int, slow: Decay, terms: Cells[float]) -> None:
    """What each slot of a page adds to the square of a length, also those that are not in use."""
    for k in range(PAGE):
        age = min(max(time - table.last[start + k], 0), slow.oldest)
        count = table.slow[start + k] * slow.left[age]
        close = count / (ONE + QUARTER * count)
        terms[k] = close * close * (ONE / (ONE + single(table.fill[table.other[start + k]])))


@compiled
def _mark(lengths: Single, measured: Wide, found: int, row: int) -> int:
    """Have a row measured, whose length is below zero until all of them are."""
    if lengths[row] < 0:
        return found
    lengths[row] = -ONE
    measured[found] = row
    return found + 1

"""One paged table of a state while the facts of a tick come in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from operator import is_not

import numpy as np
import torch

from adatkg_core.engine.live_commit.cells import places_of
from adatkg_core.engine.live_commit.layout import (
    CLAIMED,
    DATED,
    FREE,
    NEXT_PAGE,
    NOBODY,
    PARTS,
    TOUCHED,
    USED,
    Kept,
    Short,
    Shortcuts,
    Single,
    TableRows,
    Waiting,
    Wide,
)
from adatkg_core.engine.live_commit.slots import PAGE
from adatkg_core.engine.live_commit.table_rows import count_rows, forget_all, restore_all, restore_rows
from adatkg_core.runtime import lasting_zeros
from adatkg_core.state import GraphState, Overwritten, PagedTable

UNDATED = (np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int64))
SPANS_UNTIL_ZERO = 105  # exp(-105) is zero in single precision


class LiveTable:
    """Takes interactions in as they come; the table is always as if all of the tick had come at once."""

    def __init__(self, state: GraphState, table: PagedTable) -> None:
        self._state, self._table = state, table
        self._size = 0
        self._page = -1  # the next one when the tick began
        self._waiting, self._kept = _waiting(0, 0), _kept(0, 0)
        self._shortcuts = self._no_shortcuts(0, 0)
        self._writes = state.table_writes[table.name]  # how often the table had been written when they were right
        self._names = f"{table.name}_fill", f"{table.name}_last"
        self._arrays: TableRows | None = None
        self._owners: tuple[torch.Tensor, ...] = ()  # tensors of which these are, one for each way to grow
        self._places: Wide = np.empty(0, np.int64)  # of all these arrays
        self._of: tuple[object, ...] = ()  # the groups of arrays that are at these places

    def restore_rows(self, rows: Wide) -> None:
        """Distinct rows as they were before the tick; `take` must follow with interactions of each."""
        self._reserve(0)
        restore_rows(*self.places(), rows)

    def take(self, row: Wide, relation: Wide, other: Wide, time: int) -> None:
        """Further interactions of the tick."""
        if row.size == 0:
            return
        start, end = self._size, self._size + row.size
        self._reserve(row.size)
        self._waiting.row[start:end], self._waiting.relation[start:end] = row, relation
        self._waiting.other[start:end] = other
        self._size = end
        fast, slow = left_after(self._table.fast), left_after(self._table.slow)
        count_rows(*self.places(), start, end, time, fast, slow)
        self._state.pages[self._table.name] = int(self._kept.numbers[NEXT_PAGE])

    def undo(self) -> None:
        """The table is what it was before the tick."""
        if self._size:
            restore_all(*self.places(), self._size, self._page)
            self._state.pages[self._table.name] = self._page
        self._size = 0

    def keep(self) -> None:
        """What was taken in stays."""
        if self._size:
            forget_all(self.places()[0], self._size, NOBODY)
        self._size = 0

    def written_rows(self) -> Wide:
        """The rows that the tick has changed."""
        return self._kept.touched[: self._kept.numbers[TOUCHED] if self._size else 0].copy()

    def written_slots(self) -> Wide:
        """At least the slots that it has changed."""
        return self._kept.slot[: self._kept.numbers[USED] if self._size else 0].copy()

    def overwritten(self) -> Iterator[Overwritten]:
        """What had been where the tick has written."""
        if self._size == 0:
            return
        name, kept = self._table.name, self._kept
        used, claimed = kept.numbers[USED], kept.claimed[: kept.numbers[CLAIMED]].T.copy()
        slot, rows = torch.from_numpy(self.written_slots()), self.written_rows()
        for part, before in zip(PARTS[2 : None if self._table.dated else DATED], kept[3:], strict=False):
            yield f"{name}_{part}", slot, torch.from_numpy(before[:used].copy())
        yield f"{name}_fill", torch.from_numpy(rows), torch.from_numpy(kept.fill[rows])
        pages = torch.from_numpy(claimed).unbind()
        yield f"{name}_pages", pages, torch.full_like(pages[0], NOBODY, dtype=torch.int32)

    def rows(self) -> TableRows:
        """The table's arrays, as long as the state's tensors do not grow."""
        get, name = self._state.tensors, self._table.name
        owners = get[self._names[0]], get[self._names[1]]
        if self._arrays is None or self._owners[0] is not owners[0] or self._owners[1] is not owners[1]:
            found = [get[f"{name}_{part}"].numpy() for part in PARTS[: None if self._table.dated else DATED]]
            self._arrays = TableRows._make(found if self._table.dated else (*found, *UNDATED))
            self._owners = owners
        return self._arrays

    def places(self) -> tuple[Wide, Short, Short]:
        """Where all that belongs to the table is, for compiled code, and the two arrays whose type it has to see."""
        groups = self.rows(), self._shortcuts, self._waiting, self._kept
        if not self._of or any(map(is_not, self._of, groups)):
            self._places, self._of = places_of(*groups), groups
        return self._places, self._shortcuts.first, self._shortcuts.following

    @property
    def waiting(self) -> Waiting:
        """The interactions of the tick so far."""
        return self._waiting

    def _reserve(self, more: int) -> None:
        """Room for so many more interactions, each of which may want a page, and for the rows that there are."""
        state, name = self._state, self._table.name
        if self._size == 0:
            self._page = self._kept.numbers[NEXT_PAGE] = state.pages[name]
            if self._writes != state.table_writes[name]:  # somebody else has written
                self._shortcuts.buckets.fill(0)
                self._shortcuts.block.fill(NOBODY)
                self._shortcuts.used[0] = 0
            state.table_writes[name] += 1
            self._writes = state.table_writes[name]
        pages = int(self._kept.numbers[NEXT_PAGE]) + more
        if pages * PAGE > state.tensors[f"{name}_last"].shape[0]:
            self._arrays, self._owners, self._of = (
                None,
                (),
                (),
            )  # else none of the tensors would be freed before all have grown
        state.reserve_pages(name, pages)
        rows, size = state.tensors[f"{name}_fill"].shape[0], self._size + more
        if rows > self._kept.fill.size or size > self._waiting.row.size:
            rows, size = max(rows, self._kept.fill.size), max(2 * self._waiting.row.size, size, 64)
            waiting = Waiting._make(map(_grown, self._waiting, _waiting(rows, size)))
            kept = Kept._make(map(_grown, self._kept, _kept(rows, size)))
            self._waiting, self._kept = waiting, kept  # both or none: compiled code takes them for equally large
        slots = max(state.tensors[f"{name}_last"].shape[0], self._shortcuts.first.size)
        if rows > self._shortcuts.block.size or slots > self._shortcuts.first.size:
            larger = self._no_shortcuts(self._kept.fill.size, slots)
            self._shortcuts = Shortcuts._make(map(_grown, self._shortcuts, larger))

    def _no_shortcuts(self, rows: int, slots: int) -> Shortcuts:
        """Room for those of so many rows and slots; a row that has bounds is full, so there are few such rows."""
        short = torch.int16 if self._table.max_slots <= torch.iinfo(torch.int16).max else torch.int32
        blocks = slots // self._table.max_slots + 1
        return Shortcuts(
            buckets=np.zeros(rows, np.int32),
            first=lasting_zeros((slots,), short).numpy(),
            following=lasting_zeros((slots,), short).numpy(),
            block=np.full(rows, NOBODY, np.int32),
            least=np.empty((blocks, self._table.max_pages), np.float32),
            as_of=np.empty(blocks, np.int64),
            used=np.zeros(1, np.int64),
            lively=np.empty(self._table.max_pages, np.float32),
            found=np.empty(self._table.max_pages, np.int32),
        )


def _grown(before: Wide, larger: Wide) -> Wide:
    """`larger`, beginning with what was there before."""
    larger[: before.shape[0]] = before
    return larger


def _waiting(rows: int, size: int) -> Waiting:
    columns = (np.empty(size, np.int64) for _ in range(4))
    room = np.empty(size, np.int64), np.empty(size, np.float32), np.empty(size, np.int64)
    return Waiting._make((*columns, *room, np.full(rows, NOBODY, np.int32)))


def _kept(rows: int, size: int) -> Kept:
    wide = (np.empty(size, np.int64) for _ in range(2))
    narrow = (np.empty(size, np.int32) for _ in range(4))
    single = (np.empty(size, np.float32) for _ in range(3))
    dated = (np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int64))
    by_row = (np.full(rows, NOBODY, np.int32) for _ in range(2))
    numbers = np.zeros(5, np.int64)
    numbers[FREE] = NOBODY
    lists = (np.empty(size, np.int64), np.empty((size, 2), np.int64))
    return Kept._make((*wide, *narrow, *single, *dated, *by_row, *lists, numbers))


@cache
def left_after(span: float) -> Single:
    """What is left of a count at each age, until nothing is: as the state's tables decay it."""
    ages = torch.arange(math.ceil(SPANS_UNTIL_ZERO * span) + 2, device="cpu").float()
    share: Single = torch.exp(-ages / span).numpy()
    return share

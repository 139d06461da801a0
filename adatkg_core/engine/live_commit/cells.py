"""The arrays of a table as compiled functions hand them on to each other: as addresses.

As arrays, some fifty of them, each call would count up and down who holds them, which takes longer than what most calls
do. Whoever calls from outside holds the arrays for as long as the call lasts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from adatkg_core.engine.live_commit.layout import (
    EntityRows,
    Kept,
    Short,
    Shortcuts,
    Single,
    TableRows,
    Waiting,
    Wide,
)
from adatkg_core.evidence.compiled import Cells, floats, narrow, wide
from adatkg_core.runtime import compiled


def _cells_of(context: Any, array: Any) -> Any:
    pointer: Any = types.CPointer(array.dtype)  # type: ignore[no-untyped-call]

    def code(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return target.make_array(array)(target, builder, arguments[0]).data

    return pointer(array), code


_made: Any = intrinsic(_cells_of)
cells_of: Callable[[Any], Cells[Any]] = _made


def _fetch(context: Any, cells: Any, place: Any) -> Any:
    def code(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        at = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), (byte, number, number, number))
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        builder.call(prefetch, [at, *(ir.Constant(number, one) for one in (0, 3, 1))])
        return target.get_dummy_value()

    return types.void(cells, types.int64), code


_asked: Any = intrinsic(_fetch)
fetch: Callable[[Cells[Any], int], None] = _asked  # asks memory for what stands there, without waiting for it


class TableCells(NamedTuple):
    """See `TableRows`."""

    width: int  # pages of a row
    is_dated: bool
    pages: Cells[int]
    fill: Cells[int]
    relation: Cells[int]
    other: Cells[int]
    last: Cells[int]
    amount: Cells[float]
    fast: Cells[float]
    slow: Cells[float]
    first: Cells[int]
    times: Cells[int]
    ticks: Cells[int]


class ShortcutCells(NamedTuple):
    """See `Shortcuts`."""

    buckets: Cells[int]
    first: Cells[int]
    following: Cells[int]
    block: Cells[int]
    least: Cells[float]
    bounds: Cells[int]  # the bits of these; as none is below zero, they are in the same order
    as_of: Cells[int]
    used: Cells[int]
    lively: Cells[float]
    lively_bits: Cells[int]  # likewise
    found: Cells[int]


class WaitingCells(NamedTuple):
    """See `Waiting`."""

    row: Cells[int]
    relation: Cells[int]
    other: Cells[int]
    before: Cells[int]
    key: Cells[int]
    weight: Cells[float]
    position: Cells[int]
    latest: Cells[int]


class KeptCells(NamedTuple):
    """See `Kept`."""

    slot: Cells[int]
    before: Cells[int]
    position: Cells[int]
    relation: Cells[int]
    other: Cells[int]
    last: Cells[int]
    amount: Cells[float]
    fast: Cells[float]
    slow: Cells[float]
    first: Cells[int]
    times: Cells[int]
    ticks: Cells[int]
    newest: Cells[int]
    fill: Cells[int]
    touched: Cells[int]
    claimed: Cells[int]
    numbers: Cells[int]


class EntityCells(NamedTuple):
    """See `EntityRows`."""

    ring_relation: Cells[int]
    ring_other: Cells[int]
    ring_time: Cells[int]
    interactions: Cells[int]
    last_time: Cells[int]
    activity_fast: Cells[float]
    activity_slow: Cells[float]
    row_length: Cells[float]


class Decay(NamedTuple):
    """What is left of a count at each age, up to the one at which nothing is."""

    left: Cells[float]
    oldest: int


OF_SHORTCUTS = 2 + len(TableRows._fields)  # where the addresses of each begin, behind width and whether it is dated
OF_WAITING = OF_SHORTCUTS + len(Shortcuts._fields)
OF_KEPT = OF_WAITING + len(Waiting._fields)


def places_of(table: TableRows, shortcuts: Shortcuts, waiting: Waiting, kept: Kept) -> Wide:
    """All of these as one array of addresses: to hand fifty arrays to compiled code takes longer than what it does."""
    addresses = (one.ctypes.data for group in (table, shortcuts, waiting, kept) for one in group)
    return np.array((table.pages.shape[1], table.ticks.size > 0, *addresses), np.int64)


@compiled
def table_at(at: Wide) -> TableCells:
    """From `places_of`."""
    return TableCells(
        at[0],
        at[1] != 0,
        narrow(at[2]),
        narrow(at[3]),
        narrow(at[4]),
        narrow(at[5]),
        narrow(at[6]),
        floats(at[7]),
        floats(at[8]),
        floats(at[9]),
        narrow(at[10]),
        narrow(at[11]),
        wide(at[12]),
    )


@compiled
def shortcuts_at(at: Wide, first: Short, following: Short) -> ShortcutCells:
    """From `places_of`; the two whose numbers may be of either length are handed over themselves."""
    i = OF_SHORTCUTS
    return ShortcutCells(
        narrow(at[i]),
        cells_of(first),
        cells_of(following),
        narrow(at[i + 3]),
        floats(at[i + 4]),
        narrow(at[i + 4]),
        wide(at[i + 5]),
        wide(at[i + 6]),
        floats(at[i + 7]),
        narrow(at[i + 7]),
        narrow(at[i + 8]),
    )


@compiled
def waiting_at(at: Wide) -> WaitingCells:
    """From `places_of`."""
    i = OF_WAITING
    return WaitingCells(
        wide(at[i]),
        wide(at[i + 1]),
        wide(at[i + 2]),
        wide(at[i + 3]),
        wide(at[i + 4]),
        floats(at[i + 5]),
        wide(at[i + 6]),
        narrow(at[i + 7]),
    )


@compiled
def kept_at(at: Wide) -> KeptCells:
    """From `places_of`."""
    i = OF_KEPT
    return KeptCells(
        wide(at[i]),
        wide(at[i + 1]),
        narrow(at[i + 2]),
        narrow(at[i + 3]),
        narrow(at[i + 4]),
        narrow(at[i + 5]),
        floats(at[i + 6]),
        floats(at[i + 7]),
        floats(at[i + 8]),
        narrow(at[i + 9]),
        narrow(at[i + 10]),
        wide(at[i + 11]),
        narrow(at[i + 12]),
        narrow(at[i + 13]),
        wide(at[i + 14]),
        wide(at[i + 15]),
        wide(at[i + 16]),
    )


@compiled
def entity_cells(entities: EntityRows) -> EntityCells:
    """As addresses."""
    return EntityCells(
        cells_of(entities.ring_relation),
        cells_of(entities.ring_other),
        cells_of(entities.ring_time),
        cells_of(entities.interactions),
        cells_of(entities.last_time),
        cells_of(entities.activity_fast),
        cells_of(entities.activity_slow),
        cells_of(entities.row_length),
    )


@compiled
def decay(left: Single) -> Decay:
    """As an address and the oldest age."""
    return Decay(cells_of(left), left.size - 1)

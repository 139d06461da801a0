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

from adatkg_core.engine.live_commit.layout import EntityRows, Kept, Shortcuts, Single, TableRows, Waiting
from adatkg_core.evidence.compiled import Cells
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


@compiled
def table_cells(table: TableRows) -> TableCells:
    """As addresses."""
    return TableCells(
        table.pages.shape[1],
        table.ticks.size > 0,
        cells_of(table.pages),
        cells_of(table.fill),
        cells_of(table.relation),
        cells_of(table.other),
        cells_of(table.last),
        cells_of(table.amount),
        cells_of(table.fast),
        cells_of(table.slow),
        cells_of(table.first),
        cells_of(table.times),
        cells_of(table.ticks),
    )


@compiled
def shortcut_cells(shortcuts: Shortcuts) -> ShortcutCells:
    """As addresses."""
    return ShortcutCells(
        cells_of(shortcuts.buckets),
        cells_of(shortcuts.first),
        cells_of(shortcuts.following),
        cells_of(shortcuts.block),
        cells_of(shortcuts.least),
        cells_of(shortcuts.least.view(np.int32)),
        cells_of(shortcuts.as_of),
        cells_of(shortcuts.used),
        cells_of(shortcuts.lively),
        cells_of(shortcuts.lively.view(np.int32)),
        cells_of(shortcuts.found),
    )


@compiled
def waiting_cells(waiting: Waiting) -> WaitingCells:
    """As addresses."""
    return WaitingCells(
        cells_of(waiting.row),
        cells_of(waiting.relation),
        cells_of(waiting.other),
        cells_of(waiting.before),
        cells_of(waiting.key),
        cells_of(waiting.weight),
        cells_of(waiting.position),
        cells_of(waiting.latest),
    )


@compiled
def kept_cells(kept: Kept) -> KeptCells:
    """As addresses."""
    return KeptCells(
        cells_of(kept.slot),
        cells_of(kept.before),
        cells_of(kept.position),
        cells_of(kept.relation),
        cells_of(kept.other),
        cells_of(kept.last),
        cells_of(kept.amount),
        cells_of(kept.fast),
        cells_of(kept.slow),
        cells_of(kept.first),
        cells_of(kept.times),
        cells_of(kept.ticks),
        cells_of(kept.newest),
        cells_of(kept.fill),
        cells_of(kept.touched),
        cells_of(kept.claimed),
        cells_of(kept.numbers),
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

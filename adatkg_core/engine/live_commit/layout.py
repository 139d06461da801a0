"""The arrays that compiled commits work on: views of the state's tensors, and what is kept to take a commit back."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

Wide = NDArray[Any]  # of 64-bit whole numbers
Narrow = NDArray[Any]  # of 32-bit whole numbers
Short = NDArray[Any]  # of whole numbers that reach as far as a row has slots
Single = NDArray[Any]  # of numbers in single precision
NOBODY = -1
PARTS = ("pages", "fill", "relation", "other", "last", "count", "fast", "slow", "first", "times", "ticks")
DATED = 8  # of these are in every table, and the rest in dated ones


class TableRows(NamedTuple):
    """A paged table of the state; the last three are empty where it is not dated."""

    pages: Narrow  # [rows, pages of a row]
    fill: Narrow  # [rows]
    relation: Narrow  # [slots]
    other: Narrow
    last: Narrow
    amount: Single
    fast: Single
    slow: Single
    first: Narrow
    times: Narrow
    ticks: Wide


class Shortcuts(NamedTuple):
    """What is derived from a table so that a row with many slots need not be looked through; it is never stored."""

    buckets: Narrow  # [rows] pages of the row whose places are its buckets, 0 where it has no index
    first: Short  # [slots] where in its row the first slot of a bucket stands, NOBODY in an empty one
    following: Short  # [slots] where the next one of the same bucket stands
    block: Narrow  # [rows] which of the bounds are a row's, NOBODY where it has none
    least: Single  # [blocks, pages of a row] no slot of the page is less lively than that
    as_of: Wide  # [blocks] at this time
    used: Wide  # [1] blocks
    lively: Single  # [pages of a row] room for the row in which room is made
    found: Narrow  # [pages of a row] likewise


class Waiting(NamedTuple):
    """Interactions of one tick in the order in which they came; those of a row are linked, the latest first."""

    row: Wide  # [I]
    relation: Wide
    other: Wide
    before: Wide  # the one before it of the same row
    key: Wide  # room for the distinct ones of a row
    weight: Single
    position: Wide
    latest: Narrow  # [rows]


class Kept(NamedTuple):
    """What slots held before the tick; those of a row are linked, and so are those that are free again."""

    slot: Wide  # [I] no more slots than interactions are ever written
    before: Wide
    position: Narrow  # in its row
    relation: Narrow
    other: Narrow
    last: Narrow
    amount: Single
    fast: Single
    slow: Single
    first: Narrow
    times: Narrow
    ticks: Wide
    newest: Narrow  # [rows]
    fill: Narrow  # [rows] before the tick; NOBODY where the row is as it was
    touched: Wide  # [I] rows
    claimed: Wide  # [I, 2] row and which of its pages
    numbers: Wide  # [5] see the constants below


USED, FREE, TOUCHED, CLAIMED, NEXT_PAGE = range(5)  # of `Kept.numbers`


class EntityRows(NamedTuple):
    """What the state knows of each entity besides its tables; the last three may be empty."""

    ring_relation: Narrow  # [rows, capacity]
    ring_other: Narrow
    ring_time: Narrow
    interactions: Wide  # [rows]
    last_time: Wide
    activity_fast: Single
    activity_slow: Single
    row_length: Single


class KeptEntities(NamedTuple):
    """Rows of entities as they were before the tick."""

    place: Narrow  # [rows] where a row is kept, NOBODY where it is as it was
    entity: Wide  # [I]
    was: EntityRows  # [I, …]


class Followed(NamedTuple):
    """Which relation the tick's facts followed, how often, and what the state's table held before."""

    often: Narrow  # [2R, 2R]
    was: Single  # [2R, 2R]
    place: Wide  # [2R * 2R, 2]

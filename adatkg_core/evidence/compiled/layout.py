"""What the compiled code works on, by address: the state's tables, the queries, and room for one of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# Single precision like the tensors: a plain 1 or 0.25 would make a sum of doubles.
single: Any = np.float32
ZERO, ONE = single(0), single(1)
DIRECT, LATELY, ALIKE = range(3)  # columns of `Scratch.known`
KNOWN = 3
AS, AS_LATE, CF, CN, CN_LATE, BY_GROUP, AT_ALL, BY_ROLE, INSIDE, SAME_ROLE, MEMBER, IS_HEAD = range(12)  # of `terms`
TERMS = 12
OF_A_PAIR = 6  # features of a window
COLUMNS = TERMS + 2 * OF_A_PAIR
PAGE = 16


class Table(NamedTuple):
    """A paged table; the last three are of a dated one."""

    width: int  # pages of a row
    fill: int
    pages: int
    relation: int
    other: int
    last: int
    slow: int
    fast: int
    first: int
    times: int
    ticks: int


class Tables(NamedTuple):
    """What is read of a state."""

    pair: Table
    partner: Table
    group_fact: Table
    role_fact: Table
    inside: Table
    group: int
    role: int
    length: int
    interactions: int
    slow: int  # what is left of a count at each age
    fast: int
    thin: int  # the square root of how rare an entity of so many partners is


class Pairs(NamedTuple):
    """The pairs of each of the relations asked about: those of the i-th from start[i] on."""

    start: int
    one: int
    other: int
    slow: int
    fast: int


class Asked(NamedTuple):
    """Queries, those of one subject beside each other."""

    subject: int
    relation: int
    kind: int  # place of the relation among the distinct ones
    number: int  # place in the batch
    slot: int  # where the subject's pairs begin among those of the whole batch
    time: int
    n: int
    hops: int
    proposals: int
    head: int  # the role of heads


class Scratch(NamedTuple):
    """Room for one subject and one of its queries, kept from call to call.

    `known`, `terms`, `whole` and `same` are zero between two subjects.
    """

    stamps: int  # [1] given out so far, one to each subject and each query
    known: int  # [n, KNOWN] how the subject knows each
    terms: int  # [n, TERMS]
    worth: int  # [n]
    mark: int  # [n] by which subject or query an entity was reached last
    chosen: int  # [n] for which query an entity was chosen last
    row: int  # [n] its row then
    reached: int  # [n] whom the subject reaches
    fresh: int  # [n] whom the query reaches besides
    proposed: int  # [n] by the query
    ties: int  # [n]
    buffer: int  # [n]
    largest: int  # [TERMS]
    partner: int  # [slots] of the subject
    close: int  # [slots]
    quick: int  # [slots]
    share: int  # [slots]
    quick_share: int  # [slots]
    nearest: int  # [hops] places among the partners
    whole: int  # [roles]
    same: int  # [roles]


class Found(NamedTuple):
    """What comes of a pass."""

    room: int  # rows that there is room for
    place: int  # [room] query * n + candidate
    features: int  # [room, COLUMNS] before any logarithm
    entry: int  # the row of each of the subjects' pairs

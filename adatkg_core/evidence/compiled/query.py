"""What the relation that is asked about adds to what is known of the subject."""

from __future__ import annotations

from adatkg_core.evidence.compiled.layout import (
    ALIKE,
    AS,
    AS_LATE,
    BY_GROUP,
    BY_ROLE,
    CF,
    DIRECT,
    INSIDE,
    KNOWN,
    LATELY,
    MEMBER,
    SAME_ROLE,
    TERMS,
    ZERO,
    Asked,
    Pairs,
    Scratch,
    Table,
    Tables,
)
from adatkg_core.evidence.compiled.memory import Cells, floats, narrow, wide
from adatkg_core.evidence.compiled.tables import faded, slot_of
from adatkg_core.runtime import compiled


@compiled
def read_query(
    tables: Tables, pairs: Pairs, room: Scratch, asked: Asked, q: int, reached: int, whose: int, stamp: int
) -> int:
    """Fill the terms of the q-th query; returns how many it reaches besides those whom its subject reaches."""
    start, one, other = wide(pairs.start), narrow(pairs.one), narrow(pairs.other)
    slow, fast, known, terms = floats(pairs.slow), floats(pairs.fast), floats(room.known), floats(room.terms)
    mark, list_of, kind, subject = wide(room.mark), wide(room.fresh), wide(asked.kind)[q], wide(asked.subject)[q]
    fresh = 0
    for i in range(start[kind], start[kind + 1]):
        near = one[i] * KNOWN
        direct, alike = known[near + DIRECT], known[near + ALIKE]
        if direct + alike != ZERO:
            far = other[i] * TERMS
            fresh = _add(mark, list_of, other[i], fresh, whose, stamp)
            terms[far + AS] += direct * slow[i]
            terms[far + AS_LATE] += known[near + LATELY] * fast[i]
            terms[far + CF] += alike * slow[i]
    group, role = wide(tables.group)[subject], wide(tables.role)[subject]
    if group >= 0:
        fresh = _count(tables.group_fact, tables.slow, group, BY_GROUP, room, asked, q, fresh, whose, stamp)
        _read_inside(tables, room, asked, q, reached)
    if role >= 0:
        fresh = _count(tables.role_fact, tables.slow, role, BY_ROLE, room, asked, q, fresh, whose, stamp)
    return fresh


@compiled
def forget_query(room: Scratch, reached: int, fresh: int) -> None:
    """Make the terms of a query zero again, and leave those of its subject."""
    terms, reached_list, fresh_list = floats(room.terms), wide(room.reached), wide(room.fresh)
    for i in range(reached):
        at = reached_list[i] * TERMS
        for term in (AS, AS_LATE, CF, BY_GROUP, BY_ROLE, INSIDE, SAME_ROLE):
            terms[at + term] = ZERO
    for i in range(fresh):
        for term in range(TERMS):
            terms[fresh_list[i] * TERMS + term] = ZERO


@compiled
def forget_subject(room: Scratch, reached: int) -> None:
    """Make everything zero again."""
    terms, known, list_of = floats(room.terms), floats(room.known), wide(room.reached)
    for i in range(reached):
        for term in range(TERMS):
            terms[list_of[i] * TERMS + term] = ZERO
        for column in range(KNOWN):
            known[list_of[i] * KNOWN + column] = ZERO


@compiled
def _add(mark: Cells[int], list_of: Cells[int], entity: int, fresh: int, whose: int, stamp: int) -> int:
    if mark[entity] == whose or mark[entity] == stamp:
        return fresh
    mark[entity] = stamp
    list_of[fresh] = entity
    return fresh + 1


@compiled
def _count(
    table: Table,
    slow_left: int,
    kin: int,
    term: int,
    room: Scratch,
    asked: Asked,
    q: int,
    fresh: int,
    whose: int,
    stamp: int,
) -> int:
    """What a group or a role did under the relation."""
    pages, relation, others = narrow(table.pages), narrow(table.relation), narrow(table.other)
    last, slow, left, wanted = narrow(table.last), floats(table.slow), floats(slow_left), wide(asked.relation)[q]
    mark, list_of, terms = wide(room.mark), wide(room.fresh), floats(room.terms)
    for i in range(narrow(table.fill)[kin]):
        slot = slot_of(pages, table.width, kin, i)
        if relation[slot] == wanted and others[slot] < asked.n:
            fresh = _add(mark, list_of, others[slot], fresh, whose, stamp)
            terms[others[slot] * TERMS + term] += faded(slow[slot], last[slot], asked.time, left)
    return fresh


@compiled
def _read_inside(tables: Tables, room: Scratch, asked: Asked, q: int, reached: int) -> None:
    """How lively the roles of the subject's group are under the relation, inside any group."""
    table, role, row = tables.inside, wide(tables.role), wide(asked.relation)[q]
    pages, near, far, last = narrow(table.pages), narrow(table.relation), narrow(table.other), narrow(table.last)
    slow, left, whole, same = floats(table.slow), floats(tables.slow), floats(room.whole), floats(room.same)
    terms, list_of, mine = floats(room.terms), wide(room.reached), role[wide(asked.subject)[q]]
    count = narrow(table.fill)[row]
    for i in range(count):
        slot = slot_of(pages, table.width, row, i)
        lively = faded(slow[slot], last[slot], asked.time, left)
        whole[far[slot]] += lively
        if near[slot] == mine:
            same[far[slot]] = lively
    for i in range(reached):
        at = list_of[i] * TERMS
        if terms[at + MEMBER] != ZERO:
            terms[at + INSIDE] = whole[role[list_of[i]]]
            terms[at + SAME_ROLE] = same[role[list_of[i]]]
    for i in range(count):
        slot = slot_of(pages, table.width, row, i)
        whole[far[slot]] = ZERO
        same[far[slot]] = ZERO

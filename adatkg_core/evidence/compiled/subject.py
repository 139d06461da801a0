"""What is known of a subject before any relation is asked about."""

from __future__ import annotations

from adatkg_core.evidence.compiled.layout import (
    ALIKE,
    AT_ALL,
    CN,
    CN_LATE,
    DIRECT,
    IS_HEAD,
    KNOWN,
    LATELY,
    MEMBER,
    ONE,
    TERMS,
    ZERO,
    Asked,
    Scratch,
    Tables,
    single,
)
from adatkg_core.evidence.compiled.memory import Cells, floats, narrow, wide
from adatkg_core.evidence.compiled.tables import damped, faded, slot_of
from adatkg_core.runtime import compiled

TINY = single(1e-9)
SMALL = single(1e-6)


@compiled
def read_subject(tables: Tables, room: Scratch, subject: int, asked: Asked, stamp: int) -> int:
    """Fill `known` and the terms that belong to the subject alone; returns how many it reaches."""
    partner, nearest, mark, list_of = wide(room.partner), wide(room.nearest), wide(room.mark), wide(room.reached)
    known, share, quick_share = floats(room.known), floats(room.share), floats(room.quick_share)
    length = floats(tables.length)
    count = _read_partners(tables, room, subject, asked.time)
    reached = 0
    for i in range(count):
        if partner[i] < asked.n:
            reached = _reach(mark, list_of, partner[i], reached, stamp)
            known[partner[i] * KNOWN + DIRECT] = share[i]
            known[partner[i] * KNOWN + LATELY] = quick_share[i]
    for j in range(_find_nearest(partner, floats(room.close), nearest, count, asked.hops)):
        reached = _go_on(tables, room, nearest[j], asked, reached, stamp)
    for j in range(reached):
        other = list_of[j]
        alike = known[other * KNOWN + ALIKE] / max(length[subject] * length[other], SMALL)
        known[other * KNOWN + ALIKE] = ZERO if other == subject else alike * alike
    return _read_group(tables, room, subject, asked, reached, stamp)


@compiled
def _reach(mark: Cells[int], list_of: Cells[int], entity: int, reached: int, stamp: int) -> int:
    if mark[entity] == stamp:
        return reached
    mark[entity] = stamp
    list_of[reached] = entity
    return reached + 1


@compiled
def _read_partners(tables: Tables, room: Scratch, subject: int, time: int) -> int:
    """The partners, how close they are and their shares of it; returns how many."""
    table = tables.partner
    pages, other, last = narrow(table.pages), narrow(table.other), narrow(table.last)
    slow, fast, slow_left, fast_left = floats(table.slow), floats(table.fast), floats(tables.slow), floats(tables.fast)
    partner, close, quick = wide(room.partner), floats(room.close), floats(room.quick)
    share, quick_share = floats(room.share), floats(room.quick_share)
    count = narrow(table.fill)[subject]
    total, quick_total = ZERO, ZERO
    for i in range(count):
        slot = slot_of(pages, table.width, subject, i)
        partner[i] = other[slot]
        close[i] = damped(faded(slow[slot], last[slot], time, slow_left))
        quick[i] = damped(faded(fast[slot], last[slot], time, fast_left))
        total += close[i]
        quick_total += quick[i]
    total, quick_total = max(total, TINY), max(quick_total, TINY)
    for i in range(count):
        share[i], quick_share[i] = close[i] / total, quick[i] / quick_total
    return count


@compiled
def _find_nearest(partner: Cells[int], close: Cells[float], nearest: Cells[int], count: int, most: int) -> int:
    """The closest partners in order, the older entity first where two are equally close; returns how many."""
    found = 0
    for i in range(count):
        at = found
        while at > 0:
            other = nearest[at - 1]
            if close[other] > close[i] or (close[other] == close[i] and partner[other] < partner[i]):
                break
            at -= 1
        if at < most:
            found = min(found + 1, most)
            for j in range(found - 1, at, -1):
                nearest[j] = nearest[j - 1]
            nearest[at] = i
    return found


@compiled
def _go_on(tables: Tables, room: Scratch, i: int, asked: Asked, reached: int, stamp: int) -> int:
    """The second hop, over the i-th partner; returns how many the subject reaches by now."""
    table, via = tables.partner, wide(room.partner)[i]
    pages, others, last = narrow(table.pages), narrow(table.other), narrow(table.last)
    slow, fast, slow_left, fast_left = floats(table.slow), floats(table.fast), floats(tables.slow), floats(tables.fast)
    mark, list_of, terms, known = wide(room.mark), wide(room.reached), floats(room.terms), floats(room.known)
    count = narrow(table.fill)[via]
    rarity = ONE / (ONE + single(count))
    thin = floats(tables.thin)[count]
    friend, quick_friend = floats(room.share)[i] * thin, floats(room.quick_share)[i] * thin
    common = floats(room.close)[i] * rarity
    for j in range(count):
        slot = slot_of(pages, table.width, via, j)
        other = others[slot]
        if other < asked.n:
            reached = _reach(mark, list_of, other, reached, stamp)
            far = damped(faded(slow[slot], last[slot], asked.time, slow_left))
            quick_far = damped(faded(fast[slot], last[slot], asked.time, fast_left))
            terms[other * TERMS + CN] += friend * far
            terms[other * TERMS + CN_LATE] += quick_friend * quick_far
            known[other * KNOWN + ALIKE] += common * far
    return reached


@compiled
def _read_group(tables: Tables, room: Scratch, subject: int, asked: Asked, reached: int, stamp: int) -> int:
    """What the subject's group does under whatever relation, and who belongs to it."""
    group_of, role_of, table = wide(tables.group), wide(tables.role), tables.group_fact
    group = group_of[subject]
    if group < 0:
        return reached
    pages, others, last, slow = narrow(table.pages), narrow(table.other), narrow(table.last), floats(table.slow)
    mark, list_of, terms, left = wide(room.mark), wide(room.reached), floats(room.terms), floats(tables.slow)
    for i in range(narrow(table.fill)[group]):
        slot = slot_of(pages, table.width, group, i)
        other = others[slot]
        if other < asked.n:
            reached = _reach(mark, list_of, other, reached, stamp)
            terms[other * TERMS + AT_ALL] += faded(slow[slot], last[slot], asked.time, left)
    for member in range(asked.n):
        if group_of[member] == group:
            reached = _reach(mark, list_of, member, reached, stamp)
            terms[member * TERMS + MEMBER] = ONE
            terms[member * TERMS + IS_HEAD] = ONE if role_of[member] == asked.head else ZERO
    return reached

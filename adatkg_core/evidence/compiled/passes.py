"""The pass over queries: terms, candidates, windows, and a row of features for each candidate."""

from __future__ import annotations

from adatkg_core.evidence.compiled.choice import propose
from adatkg_core.evidence.compiled.layout import (
    AS,
    CN_LATE,
    COLUMNS,
    OF_A_PAIR,
    ONE,
    TERMS,
    ZERO,
    Asked,
    Found,
    Pairs,
    Scratch,
    Table,
    Tables,
    single,
)
from adatkg_core.evidence.compiled.memory import Cells, floats, narrow, wide
from adatkg_core.evidence.compiled.query import forget_query, forget_subject, read_query
from adatkg_core.evidence.compiled.subject import read_subject
from adatkg_core.evidence.compiled.tables import slot_of
from adatkg_core.evidence.two_hops import SCALE
from adatkg_core.evidence.windows import SPANS
from adatkg_core.runtime import compiled

HOP_SCALE = single(SCALE)


@compiled
def pass_over(
    tables: Tables, pairs: Pairs, asked: Asked, room: Scratch, found: Found, first: int, end: int, used: int
) -> tuple[int, int]:
    """Queries first..end, from the row `used` on; returns the query that there is no more room for, and rows used."""
    subject, pair_fill, partner_fill = wide(asked.subject), narrow(tables.pair.fill), narrow(tables.partner.fill)
    stamps = wide(room.stamps)
    reached, whose, q = 0, 0, first
    while q < end:
        if q == first or subject[q] != subject[q - 1]:
            forget_subject(room, reached)
            stamps[0] += 1
            whose = stamps[0]
            reached = read_subject(tables, room, subject[q], asked, whose)
        stamps[0] += 1
        fresh = read_query(tables, pairs, room, asked, q, reached, whose, stamps[0])
        proposed = propose(tables, room, asked, reached, fresh)
        is_room = used + proposed + pair_fill[subject[q]] + partner_fill[subject[q]] <= found.room
        if is_room:
            chosen = _choose(tables, room, asked, found, q, proposed, used)
            _write_terms(room, asked, found, q, used, chosen)
            _write_windows(tables, room, asked, found, q)
            used = chosen
        forget_query(room, reached, fresh)
        if not is_room:
            break
        q += 1
    forget_subject(room, reached)
    return q, used


@compiled
def _choose(tables: Tables, room: Scratch, asked: Asked, found: Found, q: int, proposed: int, used: int) -> int:
    """Give a row to everyone whom the subject has met, and to those proposed; returns the next row."""
    subject, base = wide(asked.subject)[q], wide(asked.number)[q] * asked.n
    chosen, rows, place, stamp = wide(room.chosen), wide(room.row), wide(found.place), wide(room.stamps)[0]
    entry, start, table = wide(found.entry), wide(asked.slot)[q], tables.pair
    for i in range(narrow(table.fill)[subject]):
        other = narrow(table.other)[slot_of(narrow(table.pages), table.width, subject, i)]
        used = _seat(chosen, rows, place, stamp, other, base, used)
        entry[start + i] = rows[other]
    table = tables.partner
    for i in range(narrow(table.fill)[subject]):
        other = narrow(table.other)[slot_of(narrow(table.pages), table.width, subject, i)]
        if other < asked.n:
            used = _seat(chosen, rows, place, stamp, other, base, used)
    for i in range(proposed):
        used = _seat(chosen, rows, place, stamp, wide(room.proposed)[i], base, used)
    return used


@compiled
def _seat(
    chosen: Cells[int], rows: Cells[int], place: Cells[int], stamp: int, entity: int, base: int, used: int
) -> int:
    if chosen[entity] == stamp:
        return used
    chosen[entity] = stamp
    rows[entity] = used
    place[used] = base + entity
    return used + 1


@compiled
def _write_terms(room: Scratch, asked: Asked, found: Found, q: int, first: int, end: int) -> None:
    """The terms of the rows first..end, which belong to the q-th query; its windows are zero."""
    terms, features, place, base = floats(room.terms), floats(found.features), wide(found.place), wide(asked.number)[q]
    for row in range(first, end):
        at, mine = (place[row] - base * asked.n) * TERMS, row * COLUMNS
        for term in range(AS, CN_LATE + 1):
            features[mine + term] = HOP_SCALE * terms[at + term]
        for term in range(CN_LATE + 1, TERMS):
            features[mine + term] = terms[at + term]
        for column in range(TERMS, COLUMNS):
            features[mine + column] = ZERO


@compiled
def _write_windows(tables: Tables, room: Scratch, asked: Asked, found: Found, q: int) -> None:
    """What is known of the times of the subject's own pairs."""
    subject, wanted, features = wide(asked.subject)[q], wide(asked.relation)[q], floats(found.features)
    rows, table = wide(room.row), tables.pair
    for i in range(narrow(table.fill)[subject]):
        slot = slot_of(narrow(table.pages), table.width, subject, i)
        other = narrow(table.other)[slot]
        if narrow(table.relation)[slot] == wanted and other < asked.n:
            _date(table, slot, asked.time, features, rows[other] * COLUMNS + TERMS)
    table = tables.partner
    for i in range(narrow(table.fill)[subject]):
        slot = slot_of(narrow(table.pages), table.width, subject, i)
        other = narrow(table.other)[slot]
        if other < asked.n:
            _date(table, slot, asked.time, features, rows[other] * COLUMNS + TERMS + OF_A_PAIR)


@compiled
def _date(table: Table, slot: int, time: int, features: Cells[float], at: int) -> None:
    """The window of a slot, as `windows` has it before the logarithm."""
    last, times, ticks = narrow(table.last)[slot], narrow(table.times)[slot], wide(table.ticks)[slot]
    age = max(time - last, 0)
    for i in range(len(SPANS)):
        kept = min(max(SPANS[i] - age + 1, 0), 62)
        features[at + i] = single(_bits(ticks & ((1 << kept) - 1)))
    gap = single(last - narrow(table.first)[slot]) / single(max(times - 1, 1))
    features[at + len(SPANS)] = single(times)
    features[at + len(SPANS) + 1] = single(age) / (gap + ONE)


@compiled
def _bits(number: int) -> int:
    """How many bits are set: in a window they are few."""
    count = 0
    while number:
        number &= number - 1
        count += 1
    return count

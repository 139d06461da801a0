"""The paged tables against dictionaries in plain Python."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adatkg_core.state import GraphState
from adatkg_core.state.recurrence_tables import PAGE, TICKS, PagedTable, shift_ticks
from tests.support.small_graph import assert_same_bits, small_config

FAST, SLOW = 3.0, 20.0
ROWS, RELATIONS, OTHERS = 3, 3, 14
Triple = tuple[int, int, int]
Commit = tuple[int, list[Triple]]  # ticks since the one before, and what happened

triple = st.tuples(st.integers(0, ROWS - 1), st.integers(0, RELATIONS - 1), st.integers(0, OTHERS - 1))
commits = st.lists(st.tuples(st.integers(1, 9), st.lists(triple, min_size=1, max_size=30)), min_size=1, max_size=8)
quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass
class Slot:
    """What the table must know of one (relation, other)."""

    relation: int
    other: int
    last: int
    count: float
    fast: float
    slow: float

    def seen_at(self, time: int) -> tuple[int, int, int, float, float, float]:
        age = time - self.last
        fast, slow = self.fast * math.exp(-age / FAST), self.slow * math.exp(-age / SLOW)
        return self.relation, self.other, age, self.count, fast, slow


@dataclass
class Oracle:
    """Rows of slots in the order in which they were first written."""

    max_slots: int
    rows: dict[int, list[Slot]] = field(default_factory=dict)

    def add(self, triples: list[Triple], time: int) -> None:
        fresh: dict[int, list[Slot]] = {}
        for row, relation, other in sorted(set(triples)):
            weight = triples.count((row, relation, other))
            slots = self.rows.setdefault(row, [])
            known = [slot for slot in slots if (slot.relation, slot.other) == (relation, other)]
            for slot in known:
                *_, fast, slow = slot.seen_at(time)
                slot.count, slot.fast, slot.slow, slot.last = slot.count + weight, fast + weight, slow + weight, time
            if not known:
                fresh.setdefault(row, []).append(Slot(relation, other, time, weight, weight, weight))
        for row, new in fresh.items():
            self._insert(self.rows[row], new, time)

    def _insert(self, slots: list[Slot], new: list[Slot], time: int) -> None:
        room = self.max_slots - len(slots)
        slots.extend(new[:room])
        # What this commit wrote stays; of the rest the least lively gives way first, and what finds no room is lost.
        idle = [i for i, slot in enumerate(slots) if slot.last < time]
        idle.sort(key=lambda i: slots[i].seen_at(time)[-1])
        for i, slot in zip(idle, new[room:], strict=False):
            slots[i] = slot


def empty_state(slots: int = 16) -> GraphState:
    config = small_config(
        {"recall.pair_slots": slots, "recall.relation_slots": slots, "recall.fast": FAST, "recall.slow": SLOW}
    )
    state = GraphState(config, 4, RELATIONS, torch.device("cpu"))
    state.reserve(ROWS)
    state.entities = ROWS
    return state


def add(table: PagedTable, state: GraphState, triples: list[Triple], time: int) -> None:
    rows, relation, other = torch.tensor(triples).unbind(1)
    table.add(state, rows, relation, other, time)


def read(table: PagedTable, state: GraphState, rows: list[int], time: int) -> list[list[tuple[float, ...]]]:
    slots = table.read(state, torch.tensor(rows), time)
    columns = (slots.relation, slots.other, slots.age, slots.count, slots.fast, slots.slow)
    found: list[list[tuple[float, ...]]] = [[] for _ in rows]
    for owner, *values in zip(slots.owner.tolist(), *(column.tolist() for column in columns), strict=True):
        found[owner].append(tuple(values))
    return found


@pytest.mark.parametrize("slots", [16, 32])
@quick
@given(history=commits, later=st.integers(0, 30))
def test_a_table_counts_decays_and_forgets_like_a_dictionary(slots: int, history: list[Commit], later: int) -> None:
    state, oracle, time = empty_state(slots), Oracle(slots), 0
    for step, triples in history:
        time += step
        add(state.pair_table, state, triples, time)
        oracle.add(triples, time)
    for row, found in enumerate(read(state.pair_table, state, list(range(ROWS)), time + later)):
        wanted = [slot.seen_at(time + later) for slot in oracle.rows.get(row, [])]
        assert [values[:4] for values in found] == [values[:4] for values in wanted]
        for mine, theirs in zip(found, wanted, strict=True):
            assert mine[4:] == pytest.approx(theirs[4:], rel=1e-4, abs=1e-6)


@quick
@given(history=commits)
def test_a_table_never_exceeds_its_bound(history: list[Commit]) -> None:
    state, time = empty_state(), 0
    for step, triples in history:
        time += step
        add(state.pair_table, state, triples, time)
    assert bool((state.tensors["pair_fill"] <= 16).all())
    assert state.pages["pair"] <= ROWS
    pages = state.tensors["pair_pages"]
    used = pages[pages >= 0].tolist()
    assert sorted(used) == list(range(state.pages["pair"]))  # each page has one owner
    assert state.tensors["pair_count"].shape[0] >= state.pages["pair"] * PAGE


@quick
@given(history=commits, last=st.lists(triple, min_size=1, max_size=30))
def test_a_commit_that_is_taken_back_leaves_no_bit_changed(history: list[Commit], last: list[Triple]) -> None:
    state, time = empty_state(), 0
    for step, triples in history:
        time += step
        add(state.pair_table, state, triples, time)
    before, pages = state.export(), dict(state.pages)
    everything = {name: tensor.clone() for name, tensor in state.tensors.items()}
    state.begin()
    add(state.pair_table, state, last, time + 1)
    assert bool((state.tensors["pair_last"] == time + 1).any())
    state.rollback()
    assert state.pages == pages
    assert_same_bits(state.export(), before)
    # Nor does anything stay behind in pages that were claimed for it.
    for name, tensor in everything.items():
        assert torch.equal(state.tensors[name][: tensor.shape[0]], tensor), name
        assert bool((state.tensors[name][tensor.shape[0] :] == state.layout[name].fill).all()), name


@quick
@given(history=commits, last=st.lists(triple, min_size=1, max_size=30))
def test_a_commit_that_was_tried_before_gives_the_same_bits_as_one_that_was_not(
    history: list[Commit], last: list[Triple]
) -> None:
    steady, hesitant, time = empty_state(), empty_state(), 0
    for step, triples in history:
        time += step
        for state in (steady, hesitant):
            add(state.pair_table, state, triples, time)
    hesitant.begin()
    add(hesitant.pair_table, hesitant, last, time + 1)
    hesitant.rollback()
    for state in (steady, hesitant):
        state.begin()
        add(state.pair_table, state, [*last, *last[:1]], time + 1)
        state.keep()
    assert_same_bits(hesitant.export(), steady.export())
    assert hesitant.pages == steady.pages


def test_the_least_lively_slot_makes_room_and_what_this_commit_wrote_stays() -> None:
    state = empty_state()
    add(state.pair_table, state, [(0, 0, other) for other in range(8)] * 3, 1)
    add(state.pair_table, state, [(0, 1, other) for other in range(8)], 2)
    add(state.pair_table, state, [(0, 1, 0), (0, 2, 0), (0, 2, 1)], 3)
    kept = {values[:2] for values in read(state.pair_table, state, [0], 3)[0]}
    assert kept == {(0, o) for o in range(8)} | {(1, 0)} | {(1, o) for o in range(3, 8)} | {(2, 0), (2, 1)}


def test_more_new_pairs_than_slots_in_one_commit_keep_the_table_whole() -> None:
    state = empty_state()
    add(state.pair_table, state, [(0, r, o) for r in range(RELATIONS) for o in range(OTHERS)], 5)
    found = read(state.pair_table, state, [0], 5)[0]
    assert len(found) == 16 and len({values[:2] for values in found}) == 16


def test_rows_may_be_asked_for_twice_and_empty_ones_give_nothing() -> None:
    state = empty_state()
    add(state.pair_table, state, [(1, 2, 3)], 4)
    first, none, second = read(state.pair_table, state, [1, 0, 1], 6)
    assert first == second and none == []
    assert first[0] == pytest.approx((2, 3, 2.0, 1.0, math.exp(-2 / FAST), math.exp(-2 / SLOW)))


# -- dates --------------------------------------------------------------------------------------------------------


@quick
@given(history=commits, gap=st.sampled_from([0, 0, 55, 62, 63, 64, 500]))
def test_a_dated_slot_knows_when_it_was_first_seen_how_often_and_which_ticks_of_late(
    history: list[Commit], gap: int
) -> None:
    state, time = empty_state(64), 0
    seen: dict[Triple, set[int]] = {}
    for place, (step, triples) in enumerate(history):
        time += step + gap * (place == len(history) - 1)
        add(state.pair_table, state, triples, time)
        for one in triples:
            seen.setdefault(one, set()).add(time)
    owner, slot = state.pair_table.slots(state, torch.arange(ROWS))
    parts = (state.tensors[f"pair_{part}"][slot].tolist() for part in ("relation", "other", "last", "first", "times"))
    ticks = state.tensors["pair_ticks"][slot].tolist()
    assert len(owner) == len(seen)
    for row, relation, other, last, first, times, late in zip(owner.tolist(), *parts, ticks, strict=True):
        mine = seen[row, relation, other]
        assert (first, last, times) == (min(mine), max(mine), len(mine))
        assert late == sum(1 << (last - tick) for tick in mine if last - tick < TICKS)


def test_a_tick_that_is_counted_twice_is_one_tick() -> None:
    """As when a late fact counts as of the watermark, in a commit of its own."""
    state = empty_state()
    for _ in range(2):
        add(state.pair_table, state, [(0, 1, 2), (0, 1, 2)], 7)
    slot = state.pair_table.slots(state, torch.tensor([0]))[1]
    found = {part: state.tensors[f"pair_{part}"][slot].tolist() for part in ("count", "first", "times", "ticks")}
    assert found == {"count": [4.0], "first": [7], "times": [1], "ticks": [1]}


def test_a_slot_that_takes_anothers_place_has_dates_of_its_own() -> None:
    state = empty_state()
    for time in (1, 2, 3):
        add(state.pair_table, state, [(0, 0, other) for other in range(OTHERS)] + [(0, 1, 0), (0, 1, 1)], time)
    add(state.pair_table, state, [(0, 2, 5)], 4)
    slot = state.pair_table.slots(state, torch.tensor([0]))[1]
    mine = slot[state.tensors["pair_relation"][slot] == 2]
    found = {part: state.tensors[f"pair_{part}"][mine].tolist() for part in ("first", "times", "ticks", "last")}
    assert len(slot) == 16 and found == {"first": [4], "times": [1], "ticks": [1], "last": [4]}


@given(st.lists(st.tuples(st.sets(st.integers(0, TICKS - 1)), st.integers(0, 200)), min_size=1, max_size=20))
def test_sets_of_ticks_grow_old_and_forget(rows: list[tuple[set[int], int]]) -> None:
    ticks = torch.tensor([sum(1 << tick for tick in some) for some, _ in rows])
    found = shift_ticks(ticks, torch.tensor([by for _, by in rows]))
    assert found.tolist() == [sum(1 << tick + by for tick in some if tick + by < TICKS) for some, by in rows]


# -- finding ------------------------------------------------------------------------------------------------------


@quick
@given(held=st.lists(triple, min_size=1, max_size=40), asked=st.lists(triple, min_size=1, max_size=12))
def test_only_what_is_held_is_found_however_much_larger_the_numbers_of_others_are(
    held: list[Triple], asked: list[Triple]
) -> None:
    """The keys of a search are as narrow as what is asked for: what is held beyond that must not be taken for it."""
    state = empty_state(64)
    add(state.pair_table, state, held, 1)
    wanted = sorted(set(asked))
    rows, relation, other = torch.tensor(wanted).unbind(1)
    found = state.pair_table._find(state, rows, relation, other)
    for one, slot in zip(wanted, found.tolist(), strict=True):
        assert (slot >= 0) == (one in held)
        if slot >= 0:
            assert [int(state.tensors[f"pair_{part}"][slot]) for part in ("relation", "other")] == [*one[1:]]


@pytest.mark.parametrize("asked", [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 1), (2, 0, 1)])
def test_a_pair_with_a_key_that_would_collide_is_not_found(asked: Triple) -> None:
    state = empty_state(64)
    add(state.pair_table, state, [(r, k, o) for r in range(ROWS) for k in range(RELATIONS) for o in range(2, 9)], 1)
    rows, relation, other = torch.tensor([asked]).unbind(1)
    assert state.pair_table._find(state, rows, relation, other).tolist() == [-1]

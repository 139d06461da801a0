"""Rows of many slots, with an index to find keys and bounds to say who makes room, are bitwise the plain ones."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest
import torch

from adatkg_core.engine import commit_facts
from adatkg_core.engine.live_commit import LiveCommit
from adatkg_core.engine.live_commit.row_index import LOOKED_THROUGH
from adatkg_core.model import AdaTKG
from adatkg_core.state import NAME_TENSORS, GraphState, StateCapture, state_capture
from tests.core.engine.live_commit.test_live_commit import assert_bitwise, assert_same_rows, states
from tests.support.evidence_history import RELATIONS

pytestmark = pytest.mark.slow  # half a minute of full tables in all

ENTITIES = 160
BOUNDS = {"pair": 112, "partner": 80, "fact": 160, "relation": 96, "kin": 128}
LONG_AGO = 2_000  # ticks after which nothing is left of a count, with the slow span of these states
Facts = list[tuple[int, int, int]]


def wide_states(changes: Mapping[str, object] | None = None) -> tuple[AdaTKG, GraphState, GraphState]:
    """Two equal states of many entities, some of them in groups, with rows that are larger than is looked through."""
    bounds = {f"recall.{table}_slots": slots for table, slots in BOUNDS.items()}
    model, one, two = states({**bounds, "recall.cold_below": 300, **(changes or {})})
    for state in (one, two):
        state.reserve(ENTITIES)
        state.entities = ENTITIES
        state.tensors["group"][:ENTITIES] = torch.arange(ENTITIES) % 6 - 1
        state.tensors["role"][:ENTITIES] = torch.arange(ENTITIES) % 7
    return model, one, two


def some_facts(choose: Random, most: int = 60) -> Facts:
    """Facts of one time, more about some entities than about others."""
    ends = [int(ENTITIES * choose.random() ** 3) for _ in range(2 * choose.randint(1, most))]
    pairs = zip(ends[::2], ends[1::2], strict=True)
    return [(s, choose.randrange(RELATIONS), o) for s, o in pairs]


def take_in_parts(live: LiveCommit, facts: Facts, now: int, choose: Random) -> None:
    start = 0
    while start < len(facts):
        end = start + choose.choice((1, 2, 20))
        live.take(torch.tensor(facts[start:end]), now)
        start = end


def take_whole(live: LiveCommit, facts: Facts, now: int) -> None:
    live.take(torch.tensor(facts), now)
    live.keep()


@pytest.mark.parametrize("seed", range(6))
def test_full_rows_are_those_of_a_single_commit_however_facts_come_and_whoever_writes(seed: int) -> None:
    """Ticks come at once or in parts, are taken out, or are written by the tensors' own way in between."""
    choose = Random(seed)
    model, calm, live_state = wide_states()
    live, now = LiveCommit(live_state), 0
    for tick in range(90):
        now += choose.choice((1, 1, 1, 2, 7, 40, LONG_AGO if tick % 30 == 29 else 1))
        facts = some_facts(choose)
        commit_facts(model, calm, torch.tensor(facts), now)
        how = choose.choice(("at once", "at once", "in parts", "in vain", "by tensors"))
        if how == "by tensors":
            commit_facts(model, live_state, torch.tensor(facts), now)
        else:
            if how == "in vain":
                take_in_parts(live, some_facts(choose), now, choose)
                live.undo()
            if how == "in parts":
                take_in_parts(live, facts, now, choose)
                assert_same_rows(live_state, calm)
                live.undo()
            take_whole(live, facts, now)
        assert_bitwise(live_state, calm)
    for name in ("pair", "partner", "fact", "relation", "newcomer", "group_fact", "role_fact"):
        table = calm.tables()[name]
        assert int(calm.tensors[f"{name}_fill"].max()) == table.max_slots > LOOKED_THROUGH, name


@pytest.mark.parametrize("steps", [(1,), (LONG_AGO // 60,), (LONG_AGO // 120, 1)])
def test_rows_whose_counts_have_faded_to_nothing_make_room_in_the_order_of_their_slots(steps: tuple[int, ...]) -> None:
    """At 87 slow spans a count leaves the range in which floats are precise, at 105 it is zero: then all are equal."""
    choose = Random(0)
    model, calm, live_state = wide_states()
    live, now = LiveCommit(live_state), 0
    for tick in range(200):
        now += steps[tick % len(steps)]
        facts = [(0, 0, 1 + (tick * 7 + k) % (ENTITIES - 1)) for k in range(choose.randint(1, 4))]
        commit_facts(model, calm, torch.tensor(facts), now)
        take_whole(live, facts, now)
        assert_bitwise(live_state, calm)


def take_both(model: AdaTKG, calm: GraphState, live: LiveCommit, facts: Facts, now: int) -> None:
    commit_facts(model, calm, torch.tensor(facts), now)
    take_whole(live, facts, now)


def test_what_took_the_place_of_something_livelier_is_the_first_to_make_room() -> None:
    """Three slots of different pages give way to what is less lively than they were; the first of these goes next."""
    model, calm, live_state = wide_states()
    live, slots = LiveCommit(live_state), BOUNDS["pair"]
    row = [(0, 0, other) for other in range(1, slots + 1)]
    take_both(model, calm, live, row, 1)
    seldom = {row[70]: 7, row[90]: 6, row[100]: 5}
    take_both(model, calm, live, [fact for fact in row for _ in range(seldom.get(fact, 10))], 2)
    take_both(model, calm, live, [(0, 1, 1), (0, 1, 2), (0, 1, 3)], 3)
    take_both(model, calm, live, [(0, 1, 4)], 4)
    assert_bitwise(live_state, calm)
    own = live_state.pair_table.slots(live_state, torch.tensor([0]))[1]
    found = list(
        zip(*(live_state.tensors[f"pair_{part}"][own].tolist() for part in ("relation", "other")), strict=True)
    )
    assert [found[70], found[90], found[100]] == [(1, 4), (1, 2), (1, 1)]


def test_a_page_that_nobody_has_looked_through_since_its_counts_were_something_is_not_passed_over() -> None:
    """Its bound has faded in many small steps, each rounded, while its slots fade in a single one."""
    model, calm, live_state = wide_states({"recall.pair_slots": 400})
    live = LiveCommit(live_state)
    row = [(0, relation, other) for relation in range(RELATIONS) for other in range(1, ENTITIES)][:400]
    take_both(model, calm, live, row, 1)
    take_both(model, calm, live, row[:150], 61)  # so that nothing is left of the others before
    for tick in range(195):
        take_both(model, calm, live, [(1 + tick % (ENTITIES - 1), tick // (ENTITIES - 1), 0)], 73 + 12 * tick)
    assert_bitwise(live_state, calm)
    own = live_state.pair_table.slots(live_state, torch.tensor([0]))[1]
    assert int((live_state.tensors["pair_relation"][own[:150]] >= RELATIONS).sum()) > 0


def test_a_row_with_room_for_more_slots_than_short_numbers_reach_is_the_plain_one() -> None:
    model, calm, live_state = wide_states({"recall.relation_slots": 1 << 16})
    live, choose = LiveCommit(live_state), Random(1)
    for now in range(1, 12):
        facts = some_facts(choose)
        commit_facts(model, calm, torch.tensor(facts), now)
        take_whole(live, facts, now)
    assert_bitwise(live_state, calm)


def test_a_state_that_is_loaded_anew_is_written_as_it_would_be_from_the_start() -> None:
    """What was derived from the state before it must not be used for the one that took its place."""
    model, calm, live_state = wide_states()
    live, choose = LiveCommit(live_state), Random(2)
    for now in range(1, 40):
        take_whole(live, some_facts(choose), now)
    for now in range(40, 80):
        commit_facts(model, calm, torch.tensor(some_facts(choose)), now)
    live_state.load(calm.export(), calm.entities, calm.pages)
    for now in range(80, 100):
        facts = some_facts(choose)
        commit_facts(model, calm, torch.tensor(facts), now)
        take_whole(live, facts, now)
        assert_bitwise(live_state, calm)


# -- while the state is copied ------------------------------------------------------------------------------------


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_capture, "SLICE", 1 << 14)


def disturb(live: LiveCommit, choose: Random, now: int) -> bool:
    """Some of what happens to a tick; whether its facts stand in the state tentatively after that."""
    take_in_parts(live, some_facts(choose, 20), now, choose)
    what = choose.choice(("keep", "undo", "stay"))
    if what == "keep":
        live.keep()
    elif what == "undo":
        live.undo()
    return what == "stay"


def assert_upon(capture: StateCapture, before: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor]) -> None:
    """The rows that changed, put upon the earlier state, make the wanted one."""
    found = capture.tensors()
    for name, kind in capture.kinds.items():
        if kind is None or name in NAME_TENSORS:
            continue
        merged = torch.cat((before[name], found[name][len(capture.rows[kind]) :]))
        merged[capture.rows[kind]] = found[name][: len(capture.rows[kind])]
        assert torch.equal(merged, wanted[name]), name


@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_a_copy_is_of_its_moment_whatever_is_counted_kept_or_taken_out_while_it_is_made(
    seed: int, is_whole: bool
) -> None:
    choose = Random(seed)
    _, _, state = wide_states()
    live = LiveCommit(state)
    for now in range(1, 40):
        take_whole(live, some_facts(choose), now)
    before, changes = state.export(), state.watch_changes()
    for now in range(40, 44):
        take_whole(live, some_facts(choose, 5), now)
    wanted, capture = state.export(), state.capture(None if is_whole else changes)
    now, stands, steps = 50, False, 0
    for _ in capture.copy():
        steps += 1
        if choose.random() < 0.1:
            if stands:
                live.undo() if choose.random() < 0.5 else live.keep()
            now += 1
            stands = disturb(live, choose, now)
    if stands:
        live.keep()  # of a tick that stood there when the copy came to its end
    assert steps > 30
    if is_whole:
        found = capture.tensors()
        assert [name for name in wanted if not torch.equal(found[name], wanted[name])] == []
    else:
        assert_upon(capture, before, wanted)


@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize("ending", ["keep", "undo"])
def test_a_tick_that_stands_in_the_state_when_the_copy_ends_is_not_in_it(ending: str) -> None:
    choose = Random(7)
    _, _, state = wide_states()
    live = LiveCommit(state)
    for now in range(1, 30):
        take_whole(live, some_facts(choose), now)
    wanted, capture = state.export(), state.capture()
    copying = capture.copy()
    next(copying)
    take_in_parts(live, some_facts(choose), 40, choose)
    assert list(copying)
    getattr(live, ending)()
    take_whole(live, some_facts(choose), 41)
    found = capture.tensors()
    assert [name for name in wanted if not torch.equal(found[name], wanted[name])] == []

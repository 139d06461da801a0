"""Facts that are added to a state one after the other leave it bitwise as the single commit of their tick does."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adatkg_core.engine import commit_facts
from adatkg_core.engine.live_commit import LiveCommit
from adatkg_core.engine.live_commit.live_table import left_after
from adatkg_core.model import AdaTKG
from adatkg_core.state import GraphState
from tests.support.evidence_history import NAMES, RELATIONS, STRANGERS, Commit, commits, empty_state

PARTS = ("relation", "other", "last", "count", "fast", "slow", "first", "times", "ticks")
TIGHT = {f"recall.{table}_slots": 16 for table in ("pair", "relation", "partner", "fact", "kin")}
ALONE = {"model.enabled": False}
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def states(changes: Mapping[str, object]) -> tuple[AdaTKG, GraphState, GraphState]:
    one, two = empty_state(changes={**ALONE, **changes}), empty_state(changes={**ALONE, **changes})
    return AdaTKG(one.config, torch.zeros(RELATIONS, 4), len(NAMES)).eval(), one, two


def assert_bitwise(found: GraphState, wanted: GraphState) -> None:
    assert found.pages == wanted.pages
    theirs = wanted.export()
    assert [name for name, tensor in found.export().items() if not torch.equal(tensor, theirs[name])] == []


def assert_same_rows(found: GraphState, wanted: GraphState) -> None:
    """As bitwise, but for the numbers of pages: the slots of each row hold the same in the same order."""
    for name, table in wanted.tables().items():
        rows = torch.arange(wanted.tensors[f"{name}_fill"].shape[0])
        (owner, slot), (their_owner, their_slot) = table.slots(found, rows), table.slots(wanted, rows)
        assert torch.equal(owner, their_owner), name
        for part in PARTS[: 9 if table.dated else 6]:
            column = f"{name}_{part}"
            assert torch.equal(found.tensors[column][slot], wanted.tensors[column][their_slot]), column
    plain = [name for name in wanted.layout if not name.startswith(tuple(f"{table}_" for table in wanted.tables()))]
    assert [name for name in plain if not torch.equal(found.tensors[name], wanted.tensors[name])] == []


def test_who_made_room_in_the_tick_that_filled_a_row_is_measured_by_how_full_it_is_now() -> None:
    """An entity of the tick still has the row as a partner, which has it no more and has become less rare."""
    model, calm, live_state = states({**TIGHT, "recall.partner_slots": 16})
    for state in (calm, live_state):
        state.reserve(32)
        state.entities = 32
    live = LiveCommit(live_state)
    for now, some in enumerate(([(0, 0, 1)], [(0, 0, other) for other in range(3, 17)]), start=1):
        commit_facts(model, calm, torch.tensor(some), now)
        live.take(torch.tensor(some), now)
        live.keep()
    first, second = [(1, 0, 2)], [(0, 0, 20), (0, 0, 21)]
    commit_facts(model, calm, torch.tensor(first + second), 5)
    for some in (first, second):
        live.take(torch.tensor(some), 5)
    assert 1 not in calm.tensors["partner_other"][calm.partner_table.slots(calm, torch.tensor([0]))[1]].tolist()
    assert_same_rows(live_state, calm)


@quick
@given(story=commits(6), tight=st.booleans(), evidence=st.booleans(), data=st.data())
def test_facts_one_after_the_other_make_the_rows_of_a_single_commit_and_can_be_taken_out(
    story: list[Commit], tight: bool, evidence: bool, data: st.DataObject
) -> None:
    model, calm, live_state = states({**(TIGHT if tight else {}), "recall.evidence": evidence})
    live, now = LiveCommit(live_state), 0
    for step, triples in story:
        now += step
        facts = torch.tensor(triples)
        commit_facts(model, calm, facts, now)
        before = {name: tensor.clone() for name, tensor in live_state.export().items()}
        sizes = data.draw(st.lists(st.integers(1, 4), min_size=1), label="sizes")
        start = 0
        while start < len(facts):
            end = start + sizes[start % len(sizes)]
            live.take(facts[start:end], now)
            start = end
        assert_same_rows(live_state, calm)
        live.undo()
        after = live_state.export()
        assert [name for name, tensor in before.items() if not torch.equal(tensor, after[name])] == []
        live.take(facts, now)
        live.keep()
        assert_bitwise(live_state, calm)


def test_rows_that_are_full_lose_the_same_slots_whenever_a_repeat_comes() -> None:
    """The least lively pair is seen again after another one has taken its place: a single commit would have kept it."""
    model, calm, live_state = states(TIGHT)
    live = LiveCommit(live_state)
    pairs = [(0, relation, other) for relation in range(RELATIONS) for other in range(1, 7)]
    for now, some in enumerate((pairs[:1], pairs[1:16]), start=1):
        commit_facts(model, calm, torch.tensor(some), now)
        live.take(torch.tensor(some), now)
        live.keep()
    last = [pairs[16], pairs[0]]
    commit_facts(model, calm, torch.tensor(last), 9)
    for fact in last:
        live.take(torch.tensor([fact]), 9)
    assert_same_rows(live_state, calm)
    own = live_state.pair_table.slots(live_state, torch.tensor([0]))[1]
    kept = set(zip(*(live_state.tensors[f"pair_{part}"][own].tolist() for part in ("relation", "other")), strict=True))
    assert {pair[1:] for pair in last} <= kept


@pytest.mark.parametrize("many", [3, 16, 17, 40])
def test_more_new_pairs_than_a_row_has_room_for_take_the_same_places(many: int) -> None:
    model, calm, live_state = states(TIGHT)
    live = LiveCommit(live_state)
    pairs = [(0, i % RELATIONS, i // RELATIONS % len(NAMES)) for i in range(RELATIONS * len(NAMES))]
    for now, some in ((1, pairs[:9]), (4, pairs[5:16]), (11, (pairs[16:] + pairs)[:many])):
        commit_facts(model, calm, torch.tensor(some), now)
        for fact in some:
            live.take(torch.tensor([fact]), now)
        assert_same_rows(live_state, calm)
        live.keep()


def test_nothing_is_left_of_a_count_at_the_end_of_the_table_of_ages() -> None:
    for span in (0.5, 7.0, 60.0, 999.5):
        share = left_after(span)
        beyond = torch.exp(-torch.tensor(float(share.size)) / span)
        assert share[-1] == beyond == 0.0
        assert share[0] == 1.0


def test_a_state_that_grows_between_two_facts_of_a_tick_keeps_what_it_has() -> None:
    model, calm, grows = states({})
    live, more = LiveCommit(grows), 700
    few = torch.tensor([(0, 0, 1), (1, 2, 0), (0, 0, 1)])
    many = torch.stack((torch.arange(more) % 3, torch.arange(more) % RELATIONS, torch.arange(more) + len(NAMES)), 1)
    live.take(few, 4)
    for state in (calm, grows):
        state.reserve(len(NAMES) + more + len(STRANGERS))
        state.entities = len(NAMES) + more
    live.take(many, 4)
    commit_facts(model, calm, torch.cat((few, many)), 4)
    assert_same_rows(grows, calm)

"""Groups in names against their definition, fact by fact in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adatkg_core.evidence import name_groups
from tests.support.evidence_history import (
    EVERY_QUERY,
    EVERYONE,
    NAMES,
    SLOW,
    STRANGERS,
    Commit,
    Happened,
    ask,
    assert_features,
    commits,
    empty_state,
    every_place,
    group_of,
    lively,
    remember,
    role_of,
    write,
)

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ROW = {name: row for row, name in enumerate(EVERYONE)}


def count(past: Sequence[Happened], time: int, like: Callable[[Happened], bool]) -> float:
    return lively([one.time for one in past if like(one)], time, SLOW)


def of_candidate(past: Sequence[Happened], s: int, r: int, o: int, time: int) -> list[float]:
    """gb, ga, rb, ig, ir, whether the two share a group, and whether o is its head."""
    with_o = [one for one in past if one.other == o]
    together = group_of(s) == group_of(o)
    within = [one for one in past if one.relation == r and group_of(one.entity) == group_of(one.other)]
    inside = [one for one in within if role_of(one.other) == role_of(o)] if together else []
    counts = (
        count(with_o, time, lambda one: one.relation == r and group_of(one.entity) == group_of(s)),
        count(with_o, time, lambda one: group_of(one.entity) == group_of(s)),
        count(with_o, time, lambda one: one.relation == r and role_of(one.entity) == role_of(s)),
        count(inside, time, lambda _: True),
        count(inside, time, lambda one: role_of(one.entity) == role_of(s)),
    )
    return [*map(math.log1p, counts), float(together), float(together and role_of(o) == "")]


def features(past: Sequence[Happened], queries: Sequence[tuple[int, int]], time: int, n: int) -> list[list[float]]:
    return [of_candidate(past, s, r, o, time) for s, r in queries for o in range(n)]


@quick
@given(
    story=commits(),
    later=st.sampled_from([1, 2, 40]),
    queries=st.lists(st.sampled_from(EVERY_QUERY), min_size=1, max_size=12),
    n=st.sampled_from([1, 4, len(NAMES), len(EVERYONE)]),
)
def test_the_terms_are_those_of_their_definition(
    story: list[Commit], later: int, queries: list[tuple[int, int]], n: int
) -> None:
    history = remember(story)
    time = history.now + later
    questions = ask(queries, time, n)
    found = name_groups.read(history.state, questions).at(every_place(questions))
    assert_features(found, features(history.past, queries, time, n))


def test_what_one_of_a_group_did_speaks_for_the_others_and_for_its_like_elsewhere() -> None:
    history = remember([(1, [(ROW["Citizen (Kenya)"], 0, ROW["Kenya"])])])
    asked = ["Police (Kenya)", "Citizen (Peru)", "Police (Mali)", "Citizen (Mali)"]
    questions = ask([(ROW[name], 0) for name in asked], 2, len(EVERYONE))
    found = name_groups.read(history.state, questions).at(every_place(questions)).view(len(asked), len(EVERYONE), 7)
    one = math.log1p(math.exp(-1 / SLOW))
    assert found[0, ROW["Kenya"]].tolist() == pytest.approx([one, one, 0, one, 0, 1, 1])
    assert found[1, ROW["Kenya"]].tolist() == pytest.approx([0, 0, one, 0, 0, 0, 0])
    assert found[1, ROW["Peru"]].tolist() == pytest.approx([0, 0, 0, one, one, 1, 1])
    assert found[2].sum() == 2, "it shares a group with itself and with a stranger"
    assert found[3, ROW["Police (Mali)"]].tolist() == pytest.approx([0, 0, 0, 0, 0, 1, 0])


@pytest.mark.parametrize("name", STRANGERS)
def test_a_name_that_only_queries_mention_has_what_it_will_have_when_it_is_in_the_catalog(name: str) -> None:
    """Whatever group or role it brings, and whichever other strangers are asked about with it."""
    story: list[Commit] = [(1, [(0, 0, 1), (2, 0, 0), (3, 1, 4), (2, 0, 2), (6, 0, 4)]), (1, [(1, 0, 2), (5, 0, 8)])]
    history = remember(story)
    listed, time = empty_state([*NAMES, name]), 0
    for step, facts in story:
        time += step
        write(listed, facts, time)
    relations = [r for s, r in EVERY_QUERY if s == 0]
    places = [*range(len(NAMES)), ROW[name]]
    for row, n, state, kept in (
        (ROW[name], len(EVERYONE), history.state, places),
        (len(NAMES), len(NAMES) + 1, listed, list(range(len(NAMES) + 1))),
    ):
        questions = ask([(row, r) for r in relations], time + 1, n)
        found = name_groups.read(state, questions).at(every_place(questions)).view(len(relations), n, -1)[:, kept]
        if state is history.state:
            wanted = found
    assert torch.equal(found, wanted)


def test_names_without_a_structure_have_nothing_to_say() -> None:
    state = empty_state()
    for tensor in ("group", "role"):
        state.tensors[tensor].fill_(-1)
    past = write(state, [(0, 0, 1), (1, 0, 2), (0, 1, 0)], 1)
    assert len(past) == 6
    questions = ask(EVERY_QUERY, 2, len(EVERYONE))
    assert bool((name_groups.read(state, questions).at(every_place(questions)) == 0).all())
    assert state.pages["group_fact"] == state.pages["role_fact"] == state.pages["inside"] == 0


def test_without_a_past_only_the_names_themselves_speak() -> None:
    questions = ask(EVERY_QUERY, 5, len(EVERYONE))
    found = name_groups.read(empty_state(), questions).at(every_place(questions))
    assert bool((found[:, :5] == 0).all())
    assert_features(found, features([], EVERY_QUERY, 5, len(EVERYONE)))


# -- bounds -------------------------------------------------------------------------------------------------------


@quick
@given(story=commits())
def test_full_tables_stay_within_their_bounds(story: list[Commit]) -> None:
    state, time = empty_state(changes={"recall.kin_slots": 16, "recall.relation_slots": 16}), 0
    for step, facts in story:
        time += step
        write(state, facts, time)
    for table in ("group_fact", "role_fact", "inside"):
        fill = state.tensors[f"{table}_fill"]
        assert int(fill.max()) <= 16
        assert state.pages[table] == int((fill > 0).sum())
    questions = ask(EVERY_QUERY, time + 1, len(EVERYONE))
    found = name_groups.read(state, questions).at(every_place(questions))
    assert bool(torch.isfinite(found).all()) and bool((found >= 0).all())


def test_a_group_keeps_what_it_does_most() -> None:
    names = ["Citizen (Kenya)", "Police (Kenya)", *[f"entity {i}" for i in range(40)]]
    state = empty_state(names, {"recall.kin_slots": 16})
    write(state, [(0, 0, other) for other in range(2, 10)] * 3 + [(1, 0, other) for other in range(2, 10)], 1)
    for time, other in enumerate(range(10, 42), start=2):
        write(state, [(1, 0, other)], time)
    questions = ask([(0, 0)], 34, len(names))
    counts = name_groups.read(state, questions).counts
    # The eight that both had to do with, four times each, and the eight latest.
    assert counts[0].nonzero().squeeze(1).tolist() == [*range(2, 10), *range(34, 42)]
    assert torch.equal(counts[0], counts[1])

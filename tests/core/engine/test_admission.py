"""A graph has no more entities than its bundle allows, and which ones is decided by the log alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adatkg_core.engine import Engine
from adatkg_core.events import Fact, Query, Ranking
from tests.support.small_graph import (
    CONFIGURATIONS,
    ENCODER,
    assert_same_snapshot,
    named,
    small_config,
    small_graph,
    small_model,
)

GRAPH = small_graph()
RELATION = GRAPH.relations[0]
MOST = 10
MODEL = small_model(small_config(CONFIGURATIONS["default"] | {"model.max_entities": MOST}))
LOG = [
    *named(GRAPH.facts[:6].tolist()),
    *(Fact(f"flood {i}", RELATION, f"flood {i % 7}", int(GRAPH.facts[6, 3])) for i in range(40)),
    *named(GRAPH.facts[6:30].tolist()),
]


def bounded() -> Engine:
    return Engine(MODEL, GRAPH.relations, ENCODER)


def by_hand(log: Sequence[Fact]) -> list[int]:
    """Which facts have room, one by one."""
    names: set[str] = set()
    taken = []
    for i, fact in enumerate(log):
        if len(names | {fact.s, fact.o}) <= MOST:
            names |= {fact.s, fact.o}
            taken.append(i)
    return taken


@given(st.sets(st.integers(1, len(LOG) - 1), max_size=6))
@settings(max_examples=10, deadline=None)
def test_the_same_names_are_refused_however_the_log_is_cut_and_saved(cuts: set[int]) -> None:
    whole, cut = bounded(), bounded()
    observed = whole.observe(LOG)
    refused = {one.index for one in observed.refused}
    assert {one.code for one in observed.refused} == {"too-many-entities"}
    assert sorted(set(range(len(LOG))) - refused) == by_hand(LOG)
    places = [0, *sorted(cuts), len(LOG)]
    again: set[int] = set()
    for start, end in pairwise(places):
        again |= {start + one.index for one in cut.observe(LOG[start:end]).refused}
        snapshot = cut.snapshot()
        cut = bounded()
        cut.restore(snapshot)
    assert again == refused
    assert_same_snapshot(cut.snapshot(), whole.snapshot())
    assert len(whole.catalog) == MOST


def test_a_full_graph_answers_about_new_names_and_takes_facts_of_known_ones() -> None:
    engine = bounded()
    engine.observe(LOG)
    known, time = engine.catalog.names[0], int(GRAPH.facts[30, 3]) + 1
    (answer,) = engine.predict([Query(RELATION, time, s="nobody has named me")])
    assert isinstance(answer, Ranking) and answer.cold_start and len(answer.top) == MOST
    assert engine.observe([Fact(known, RELATION, engine.catalog.names[1], time)]).applied == 1
    (refusal,) = engine.observe([Fact(known, RELATION, "one more", time)]).refused
    assert refusal.reason == "'one more' would be new, but the graph may have 10 entities at most"


@pytest.mark.parametrize("most", [0, 1_000_000])
def test_a_bound_that_is_not_reached_changes_nothing(most: int) -> None:
    model = small_model(small_config(CONFIGURATIONS["default"] | {"model.max_entities": most}))
    engine = Engine(model, GRAPH.relations, ENCODER)
    assert engine.observe(LOG).refused == ()

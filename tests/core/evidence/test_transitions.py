"""Transitions against their definition, fact by fact in plain Python."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adatkg_core.evidence import TRANSITION_FEATURES, follow, lift_of
from tests.support.evidence_history import (
    EVERY_QUERY,
    EVERYONE,
    FAST,
    NAMES,
    RELATIONS,
    SLOW,
    Commit,
    Happened,
    ask,
    commits,
    empty_state,
    lively,
    remember,
)
from tests.support.small_graph import bits

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
BOTH = 2 * RELATIONS


def followed(past: Sequence[Happened]) -> Counter[tuple[int, int]]:
    """How often each relation came upon a pair that had seen another, at an earlier time."""
    counts: Counter[tuple[int, int]] = Counter()
    for now in past:
        pair = (now.entity, now.other)
        before = {one.relation for one in past if (one.entity, one.other) == pair and one.time < now.time}
        counts.update((relation, now.relation) for relation in before)
    return counts


def lifts(past: Sequence[Happened]) -> dict[tuple[int, int], float]:
    counts = followed(past)
    first, second = Counter[int](), Counter[int]()
    for (before, now), count in counts.items():
        first[before] += count
        second[now] += count
    total = max(counts.total(), 1)
    return {
        (before, now): math.log((counts[before, now] + 5) / (first[before] * second[now] / total + 5))
        for before in range(BOTH)
        for now in range(BOTH)
    }


@quick
@given(story=commits())
def test_what_followed_what_is_counted_fact_by_fact(story: list[Commit]) -> None:
    history = remember(story)
    counts = followed(history.past)
    wanted = [[float(counts[before, now]) for now in range(BOTH)] for before in range(BOTH)]
    assert history.state.tensors["followed"].tolist() == wanted


@quick
@given(story=commits(), kinds=st.lists(st.integers(0, BOTH - 1), min_size=1, max_size=BOTH, unique=True))
def test_the_lift_is_that_of_its_definition(story: list[Commit], kinds: list[int]) -> None:
    history = remember(story)
    wanted = lifts(history.past)
    found = lift_of(history.state, torch.tensor(kinds))
    for row, now in zip(found.tolist(), kinds, strict=True):
        assert row == pytest.approx([wanted[before, now] for before in range(BOTH)], rel=1e-4, abs=1e-5)


def test_a_relation_that_always_comes_after_another_is_lifted_by_it_and_not_by_a_third() -> None:
    story: list[Commit] = []
    for i in range(20):
        a, b = i % 4, 4 + i % 3
        story += [(1, [(a, 0, b)]), (1, [(a, 1, b)]), (400, [(a, 2, 8)])]
    lift = lift_of(remember(story).state, torch.tensor([1]))[0]
    assert lift[0] > 0.1 > lift[2]


def test_without_a_past_no_relation_is_lifted() -> None:
    assert bool((lift_of(empty_state(), torch.arange(BOTH)) == 0).all())


@quick
@given(
    story=commits(), queries=st.lists(st.sampled_from(EVERY_QUERY), min_size=1, max_size=12), later=st.integers(1, 9)
)
def test_a_pair_has_the_mean_of_the_lifts_of_what_it_saw_and_the_largest(
    story: list[Commit], queries: list[tuple[int, int]], later: int
) -> None:
    history = remember(story)
    now = history.now + later
    questions = ask(queries, now, len(EVERYONE))
    slots = history.state.pair_table.read(history.state, questions.subject, now)
    place, entry = torch.unique(slots.owner * questions.n + slots.other, return_inverse=True)
    lift = lift_of(history.state, questions.kinds)[questions.kind[slots.owner], slots.relation]
    found = follow(lift, slots, entry, len(place))
    assert found.shape == (len(place), TRANSITION_FEATURES)
    known = lifts(history.past)
    for at, row in zip(place.tolist(), found.tolist(), strict=True):
        (s, asked), o = queries[at // questions.n], at % questions.n
        times: dict[int, list[int]] = defaultdict(list)
        for one in history.past:
            if (one.entity, one.other) == (s, o):
                times[one.relation].append(one.time)
        wanted = []
        for span in (SLOW, FAST):
            weight = {relation: lively(when, now, span) for relation, when in times.items()}
            total = sum(known[relation, asked] * amount for relation, amount in weight.items())
            wanted.append(total / (sum(weight.values()) + 0.1))
        wanted.append(max(known[relation, asked] for relation in times))
        assert row == pytest.approx(wanted, rel=1e-3, abs=1e-5)
    assert {at // questions.n for at in place.tolist()} <= {i for i, (s, _) in enumerate(queries) if s < len(NAMES)}


def test_which_other_relations_are_asked_about_changes_no_bit_of_a_lift() -> None:
    """Also for counts that single precision no longer adds up exactly."""
    state = empty_state()
    source = torch.Generator().manual_seed(1)
    state.tensors["followed"].copy_(torch.randint(1, 1 << 24, (BOTH, BOTH), generator=source))
    whole = lift_of(state, torch.arange(BOTH))
    for kind in range(BOTH):
        assert bits(lift_of(state, torch.tensor([kind]))) == bits(whole[kind : kind + 1])
        some = torch.tensor([(kind + 3) % BOTH, kind])
        assert bits(lift_of(state, some)) == bits(whole[some])

"""Windows against their definition, from the list of times at which each pair was seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adatkg_core.evidence import windows
from adatkg_core.state import distinct_places
from tests.support.evidence_history import (
    EVERY_QUERY,
    EVERYONE,
    NAMES,
    Commit,
    Happened,
    ask,
    assert_features,
    commits,
    empty_state,
    every_place,
    remember,
    write,
)

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def of_times(times: set[int], now: int) -> list[float]:
    """Distinct ticks within each span, distinct ticks ever, and how overdue the next one is."""
    if not times:
        return [0.0] * 6
    counts = [sum(now - time <= span for time in times) for span in (1, 3, 7, 30)]
    gap = (max(times) - min(times)) / max(len(times) - 1, 1)
    return [*(math.log1p(count) for count in [*counts, len(times)]), math.log1p((now - max(times)) / (gap + 1))]


def features(past: Sequence[Happened], queries: Sequence[tuple[int, int]], now: int, n: int) -> list[list[float]]:
    rows = []
    for s, r in queries:
        for o in range(n):
            pair = [one for one in past if (one.entity, one.other) == (s, o)]
            exact = {one.time for one in pair if one.relation == r}
            rows.append([*of_times(exact, now), *of_times({one.time for one in pair}, now)])
    return rows


@quick
@given(
    story=commits(12),
    later=st.sampled_from([1, 2, 7, 40]),
    queries=st.lists(st.sampled_from(EVERY_QUERY), min_size=1, max_size=12),
    n=st.sampled_from([1, 4, len(NAMES), len(EVERYONE)]),
)
def test_the_terms_are_those_of_their_definition(
    story: list[Commit], later: int, queries: list[tuple[int, int]], n: int
) -> None:
    history = remember(story)
    now = history.now + later
    questions = ask(queries, now, n)
    found = windows.read(history.state, questions).at(*[every_place(questions)] * 2)
    assert_features(found, features(history.past, queries, now, n))


@quick
@given(
    steps=st.lists(st.sampled_from([1, 1, 1, 2, 3, 62, 63, 64, 200]), min_size=1, max_size=90), later=st.integers(1, 35)
)
def test_one_pair_that_is_seen_again_and_again_is_counted_rightly(steps: list[int], later: int) -> None:
    """Longer than the ticks that a slot remembers one by one."""
    history = remember([(step, [(0, 1, 2)]) for step in steps])
    now = history.now + later
    questions = ask([(0, 1), (2, 1), (0, 0)], now, len(NAMES))
    found = windows.read(history.state, questions).at(*[every_place(questions)] * 2)
    assert_features(found, features(history.past, [(0, 1), (2, 1), (0, 0)], now, len(NAMES)))


def test_places_that_are_none_of_the_pairs_are_silent_between_those_that_are() -> None:
    history = remember([(1, [(0, 0, 1), (0, 1, 5)])])
    questions = ask([(0, 0), (1, 0)], 2, len(NAMES))
    found = windows.read(history.state, questions)
    n = len(NAMES)
    assert found.exact_place.tolist() == [1]
    assert sorted(found.any_place.tolist()) == [1, 5, n + 0]
    rows = found.at(*distinct_places(torch.tensor([0, 1, 5, 6, n, n + 3]), 2 * n))
    assert (rows[:, :6].abs().sum(1) > 0).tolist() == [False, True, False, False, False, False]
    assert (rows[:, 6:].abs().sum(1) > 0).tolist() == [False, True, True, False, True, False]


def test_without_a_past_there_is_nothing_to_say() -> None:
    questions = ask(EVERY_QUERY, 5, len(EVERYONE))
    found = windows.read(empty_state(), questions)
    assert len(found.exact_place) == len(found.any_place) == 0
    assert bool((found.at(*[every_place(questions)] * 2) == 0).all())


def test_a_pair_that_made_room_begins_anew_when_it_comes_back() -> None:
    names = [f"entity {i}" for i in range(40)]
    state = empty_state(names, {"recall.pair_slots": 16, "recall.partner_slots": 16})
    write(state, [(0, 0, 1)], 1)
    for time in range(2, 4):
        write(state, [(0, 0, other) for other in range(2, 18)] * 2, time)  # sixteen that are livelier
    questions = ask([(0, 0)], 4, len(names))
    assert 1 not in windows.read(state, questions).exact_place.tolist()
    write(state, [(0, 0, 1)] * 9, 4)
    questions = ask([(0, 0)], 6, len(names))
    found = windows.read(state, questions).at(*[every_place(questions)] * 2)
    assert_features(found[1:2], [of_times({4}, 6) * 2])
    assert int(state.tensors["pair_fill"].max()) == int(state.tensors["partner_fill"].max()) == 16


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=20))
def test_bits_are_counted_as_python_counts_them(numbers: list[int]) -> None:
    assert windows._bits(torch.tensor(numbers)).tolist() == [number.bit_count() for number in numbers]

"""Strata against their definition, fact by fact."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from adatkg_core.constants import STRATA
from adatkg_core.metrics import StrataIndex

Row = tuple[int, int, int, int]  # subject, relation (r + R asks backwards), answer, time
RELATIONS = 3


def both(facts: list[Row]) -> list[Row]:
    return [*facts, *((o, r + RELATIONS, s, t) for s, r, o, t in facts)]


def oracle(facts: list[Row], query: Row) -> str:
    """The first that holds, by walking through everything that was before."""
    subject, relation, answer, time = query
    past = [row for row in both(facts) if row[3] < time]
    if not any(s == subject for s, *_ in past):
        return "subject_unseen"
    if not any(s == answer for s, *_ in past):
        return "object_unseen"
    if any((s, r, o) == (subject, relation, answer) for s, r, o, _ in past):
        return "exact_repeat"
    if any((s, o) == (subject, answer) for s, _, o, _ in past):
        return "pair_other_relation"
    if any((r, o) == (relation, answer) for _, r, o, _ in past):
        return "object_at_relation"
    return "other_new_pair"


def found(facts: list[Row], queries: list[Row]) -> list[str]:
    masks = StrataIndex(np.array(facts), RELATIONS).masks(*torch.tensor(queries).unbind(1))
    assert list(masks) == list(STRATA)
    member = torch.stack(list(masks.values()))
    assert member.sum(0).tolist() == [1] * len(queries), "each query is in exactly one stratum"
    return [STRATA[i] for i in member.long().argmax(0).tolist()]


def random_facts(seed: int, entities: int = 12, times: int = 8, each: int = 6) -> list[Row]:
    """Few entities at first and more later, so that all strata occur."""
    source = np.random.default_rng(seed)
    facts: list[Row] = []
    for time in range(times):
        known = min(entities, 4 + time)
        for _ in range(each):
            s, o = source.choice(known, 2).tolist()
            facts.append((s, int(source.integers(RELATIONS)), o, time * 10))
    return facts


@pytest.mark.parametrize("seed", range(5))
def test_every_query_is_where_a_walk_through_its_past_puts_it(seed: int) -> None:
    facts = random_facts(seed)
    queries = both(facts)
    wanted = [oracle(facts, query) for query in queries]
    assert found(facts, queries) == wanted
    assert set(wanted) == set(STRATA)


def test_queries_that_never_came_true_and_strangers_have_a_stratum_too() -> None:
    facts = random_facts(7)
    source = np.random.default_rng(1)
    # Entities beyond all facts, and times between and after them.
    ends, kinds, times = source.integers(0, 15, (300, 2)), source.integers(0, 2 * RELATIONS, 300), range(300)
    queries = [(int(s), int(r), int(o), t % 95) for (s, o), r, t in zip(ends, kinds, times, strict=True)]
    assert found(facts, queries) == [oracle(facts, query) for query in queries]


def test_what_happens_at_the_time_itself_was_not_known_before() -> None:
    facts = [(0, 0, 1, 5), (2, 1, 3, 5), (0, 0, 1, 6)]
    assert found(facts, [(0, 0, 1, 5), (0, 0, 1, 6)]) == ["subject_unseen", "exact_repeat"]


def test_an_unseen_subject_goes_before_an_unseen_object() -> None:
    facts = [(0, 0, 1, 0), (2, 0, 3, 1)]
    queries = [(2, 0, 3, 1), (0, 0, 3, 1), (2, 0, 1, 1)]
    assert found(facts, queries) == ["subject_unseen", "object_unseen", "subject_unseen"]


def test_the_same_relation_backwards_is_another_relation() -> None:
    facts = [(0, 0, 1, 0), (1, 0, 0, 1)]
    assert found(facts, [(1, 0, 0, 1), (0, RELATIONS, 1, 1)]) == ["pair_other_relation"] * 2
    assert found(facts, [(1, RELATIONS, 0, 1)]) == ["exact_repeat"]


def test_large_numbers_do_not_collide() -> None:
    far = 2_000_000_000
    facts = [(far, 0, 1, 0), (1, 1, far, 2), (far - 1, 0, 1, 2), (far, 0, 1, 3)]
    assert found(facts, both(facts)) == [oracle(facts, query) for query in both(facts)]


def test_without_facts_everybody_is_unseen() -> None:
    index = StrataIndex(np.zeros((0, 4), dtype=np.int64), RELATIONS)
    masks = index.masks(*torch.tensor([(0, 1, 2, 3)]).unbind(1))
    assert [name for name, mask in masks.items() if bool(mask)] == ["subject_unseen"]

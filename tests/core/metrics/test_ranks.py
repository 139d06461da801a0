"""Ranks, filter, slices and metrics against brute force in plain Python."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from adatkg_core.constants import SLICES
from adatkg_core.errors import AdatkgError
from adatkg_core.metrics import MetricSums, Ranks, SliceIndex, TimeFilter, rank_targets
from adatkg_core.metrics import ranks as ranking

N_ENTITIES, N_RELATIONS = 6, 2
Fact = tuple[int, int, int, int]
Query = tuple[int, int, int, int]

facts_strategy = st.lists(
    st.tuples(
        st.integers(0, N_ENTITIES - 1),
        st.integers(0, N_RELATIONS - 1),
        st.integers(0, N_ENTITIES - 1),
        st.integers(-2, 4),
    ),
    min_size=1,
    max_size=25,
)
# Few distinct scores make ties the rule.
score_strategy = st.sampled_from([-float("inf"), -1.0, 0.0, 0.5, float("inf")])


def both_directions(facts: list[Fact]) -> list[Query]:
    return [q for s, r, o, t in facts for q in ((s, r, o, t), (o, r + N_RELATIONS, s, t))]


def columns(rows: list[Query]) -> list[Tensor]:
    return [torch.tensor(column, dtype=torch.int64) for column in zip(*rows, strict=True)]


def brute_force_rank(scores: list[float], target: int, excluded: set[int]) -> tuple[int, int]:
    others = [x for i, x in enumerate(scores) if i != target and i not in excluded]
    best = 1 + sum(x > scores[target] for x in others)
    return best, 1 + sum(x >= scores[target] for x in others)


def brute_force_slices(facts: list[Fact], train: list[Fact], query: Query) -> set[str]:
    subject, _, answer, time = query
    seen = {e for s, _, o, _ in train for e in (s, o)}

    def is_new(entity: int) -> bool:
        return min(t for s, _, o, t in facts if entity in (s, o)) == time

    found = {"all"}
    for name, unseen in (("emerging", is_new), ("unknown", lambda e: e not in seen)):
        if unseen(subject):
            found |= {name, f"{name}_subject_unseen"}
        if unseen(answer):
            found |= {name, f"{name}_object_unseen"}
    return found


@given(
    data=st.data(),
    rows=st.integers(0, 5),
    candidates=st.integers(1, 7),
    block=st.sampled_from([1, 7, 1 << 18]),
)
def test_ranks_with_ties_and_exclusions_equal_brute_force(
    data: st.DataObject, rows: int, candidates: int, block: int
) -> None:
    row = st.lists(score_strategy, min_size=candidates, max_size=candidates)
    scores = data.draw(st.lists(row, min_size=rows, max_size=rows))
    targets = data.draw(st.lists(st.integers(0, candidates - 1), min_size=rows, max_size=rows))
    pair = st.tuples(st.integers(0, max(rows - 1, 0)), st.integers(0, candidates - 1))
    pairs = data.draw(st.lists(pair, max_size=12)) if rows else []
    matrix = torch.tensor(scores, dtype=torch.float32).reshape(rows, candidates)
    before = matrix.clone()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "_BLOCK_SCORES", block)
        ranks = rank_targets(
            matrix,
            torch.tensor(targets, dtype=torch.int64),
            torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2),
        )
    assert torch.equal(matrix, before)
    for i in range(rows):
        best, worst = brute_force_rank(scores[i], targets[i], {c for r, c in pairs if r == i})
        assert (int(ranks.optimistic[i]), int(ranks.pessimistic[i])) == (best, worst)
        assert ranks.realistic[i] == (best + worst) / 2
    assert ranks.realistic.dtype == torch.float64


def test_without_exclusions_every_candidate_counts() -> None:
    ranks = rank_targets(torch.tensor([[3.0, 1.0, 2.0, 1.0]]), torch.tensor([1]))
    assert (ranks.optimistic.item(), ranks.pessimistic.item()) == (3, 4)


@pytest.mark.parametrize("place", [(0, 0), (1, 2)])
def test_a_nan_score_is_refused(place: tuple[int, int]) -> None:
    scores = torch.zeros(2, 3)
    scores[place] = float("nan")
    with pytest.raises(AdatkgError, match="NaN"):
        rank_targets(scores, torch.tensor([1, 1]))


@pytest.mark.parametrize("pair", [(0, 3), (2, 0), (-1, 0), (0, -1)])
def test_an_excluded_pair_outside_the_scores_is_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="outside"):
        rank_targets(torch.zeros(2, 3), torch.tensor([1, 1]), torch.tensor([pair]))


@given(facts=facts_strategy, others=facts_strategy, as_array=st.booleans())
def test_the_filter_returns_each_true_answer_of_the_same_time_once(
    facts: list[Fact], others: list[Fact], as_array: bool
) -> None:
    answers: dict[tuple[int, int, int], set[int]] = defaultdict(set)
    for s, r, o, t in both_directions(facts):
        answers[s, r, t].add(o)
    # Entities, relations and times that no fact has must find nothing.
    foreign = [
        (N_ENTITIES + 3, 0, 0, 1),
        (0, 2 * N_RELATIONS, 0, 1),
        (-1, 0, 0, 1),
        (0, -1, 0, 1),
        (0, 0, 0, 99),
    ]
    queries = both_directions(facts) + both_directions(others) + foreign
    subject, relation, _, time = columns(queries)
    table = np.array(facts) if as_array else torch.tensor(facts)
    pairs = TimeFilter(table, N_RELATIONS).exclusions(subject, relation, time).tolist()
    expected = [
        (row, answer) for row, (s, r, _, t) in enumerate(queries) for answer in sorted(answers.get((s, r, t), ()))
    ]
    assert [tuple(pair) for pair in pairs] == expected


def test_the_filter_tells_far_apart_times_and_large_ids_apart() -> None:
    far = 2**62
    facts = torch.tensor([[0, 0, 1, far], [0, 0, 2, -far], [2**40, 500, 3, far], [0, 0, 4, far + 1]])
    found = TimeFilter(facts, 1000).exclusions(
        torch.tensor([0, 0, 2**40, 3]), torch.tensor([0, 0, 500, 1500]), torch.tensor([far, -far, far, far])
    )
    assert found.tolist() == [[0, 1], [1, 2], [2, 3], [3, 2**40]]


def test_an_empty_filter_excludes_nothing() -> None:
    one = torch.tensor([1])
    found = TimeFilter(torch.empty(0, 4, dtype=torch.int64), 3).exclusions(one, one, one)
    assert found.shape == (0, 2)


@given(facts=facts_strategy, share=st.floats(0, 1))
def test_slices_equal_brute_force(facts: list[Fact], share: float) -> None:
    facts.sort(key=lambda fact: fact[3])
    train = facts[: int(share * len(facts))]
    queries = both_directions(facts)
    subject, _, answer, time = columns(queries)
    index = SliceIndex(torch.tensor(facts), torch.tensor(train, dtype=torch.int64).reshape(-1, 4))
    masks = index.masks(subject, answer, time)
    assert tuple(masks) == SLICES
    for row, query in enumerate(queries):
        found = {name for name, mask in masks.items() if mask[row]}
        assert found == brute_force_slices(facts, train, query)


def test_an_entity_of_the_catalog_without_facts_is_unknown_and_never_emerging() -> None:
    fact = np.array([[0, 0, 1, 5]])
    masks = SliceIndex(fact, fact, n_entities=4).masks(torch.tensor([3]), torch.tensor([0]), torch.tensor([9]))
    assert {name for name, mask in masks.items() if mask} == {"all", "unknown", "unknown_subject_unseen"}


@settings(deadline=None)
@given(facts=facts_strategy, share=st.floats(0, 1), batch=st.integers(1, 9), seed=st.integers(0, 99))
def test_filtered_metrics_of_a_graph_equal_brute_force_in_any_batches(
    facts: list[Fact], share: float, batch: int, seed: int
) -> None:
    facts.sort(key=lambda fact: fact[3])
    train = facts[: int(share * len(facts))]
    queries = both_directions(facts)
    subject, relation, answer, time = columns(queries)
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(0, 4, (len(queries), N_ENTITIES), generator=generator).float()
    time_filter = TimeFilter(torch.tensor(facts), N_RELATIONS)
    index = SliceIndex(torch.tensor(facts), torch.tensor(train, dtype=torch.int64).reshape(-1, 4), N_ENTITIES)
    sums = MetricSums()
    for low in range(0, len(queries), batch):
        rows = slice(low, low + batch)
        exclude = time_filter.exclusions(subject[rows], relation[rows], time[rows])
        ranks = rank_targets(scores[rows], answer[rows], exclude)
        sums.add(ranks, index.masks(subject[rows], answer[rows], time[rows]))

    collected: dict[str, list[float]] = defaultdict(list)
    for row, (s, r, o, t) in enumerate(queries):
        true = {b for a, p, b, u in queries if (a, p, u) == (s, r, t)}
        best, worst = brute_force_rank(scores[row].tolist(), o, true)
        for name in brute_force_slices(facts, train, (s, r, o, t)):
            collected[name].append((best + worst) / 2)
    result = sums.result()
    assert tuple(result) == SLICES
    for name in SLICES:
        ranks_of_slice = collected[name]
        count = len(ranks_of_slice)
        assert result[name]["count"] == count
        expected = {"mrr": [1 / x for x in ranks_of_slice]}
        expected |= {f"hits@{k}": [float(x <= k) for x in ranks_of_slice] for k in (1, 3, 10)}
        for metric, values in expected.items():
            mean = pytest.approx(sum(values) / count, abs=1e-12) if count else None
            assert result[name][metric] == mean


def test_metrics_of_nothing_are_null_with_count_zero() -> None:
    nothing = {"mrr": None, "hits@1": None, "hits@3": None, "hits@10": None, "count": 0}
    assert MetricSums().result() == {name: nothing for name in SLICES}


def test_a_half_rank_above_k_is_no_hit_at_k() -> None:
    sums = MetricSums()
    everything = {name: torch.tensor([True]) for name in SLICES}
    sums.add(Ranks(torch.tensor([1]), torch.tensor([2])), everything)
    assert sums.result()["all"] == {"mrr": 1 / 1.5, "hits@1": 0.0, "hits@3": 1.0, "hits@10": 1.0, "count": 1}


def test_no_tensor_is_made_on_the_default_device() -> None:
    facts = torch.tensor([[0, 0, 1, 5], [0, 0, 2, 5], [1, 1, 0, 6]])
    subject, relation, answer, time = facts.unbind(dim=1)
    scores = torch.zeros(3, 4)
    torch.set_default_device("meta")
    try:
        exclude = TimeFilter(facts, 2).exclusions(subject, relation, time)
        from_array = TimeFilter(facts.numpy(), 2).exclusions(subject, relation, time)
        ranks = rank_targets(scores, answer, exclude)
        sums = MetricSums()
        sums.add(ranks, SliceIndex(facts, facts[:1]).masks(subject, answer, time))
        result = sums.result()
    finally:
        torch.set_default_device(None)
    assert torch.equal(exclude, from_array)
    assert ranks.pessimistic.tolist() == [3, 3, 4]
    assert result["unknown"]["count"] == 1

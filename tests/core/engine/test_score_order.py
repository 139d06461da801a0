"""Scores put into order: compiled, by tensors, and by definition in plain Python."""

from __future__ import annotations

from math import inf

import pytest
import torch
from torch import Tensor

from adatkg_core.engine import score_order
from adatkg_core.engine.score_order import ScoreOrder, Wanted, by_tensors, put_in_order
from adatkg_core.errors import AdatkgError

VISIBLE, HIDDEN, QUERIES = 200, 6, 9


def drawn(seed: int, distinct: int) -> tuple[Tensor, Wanted]:
    """Scores, many of which tie where few are distinct; later queries exclude more and ask for more."""
    random = torch.Generator().manual_seed(seed)
    scores = torch.randint(-3, distinct, (QUERIES, VISIBLE + HIDDEN), generator=random).float()
    excluded = [(q, int(i)) for q in range(QUERIES) for i in torch.randint(0, VISIBLE, (4 * q,), generator=random)]
    everyone = VISIBLE + HIDDEN
    asked = [(q, int(i)) for q in range(1, QUERIES) for i in torch.randint(0, everyone, (2 * q,), generator=random)]
    return scores, Wanted(VISIBLE, torch.tensor(excluded).view(-1, 2), torch.tensor(asked).view(-1, 2))


def by_definition(scores: Tensor, wanted: Wanted, depth: int, floor: float) -> tuple[list[list[int]], list[float]]:
    """The best columns of each query, and the ranks of those asked for."""
    out = {(q, column) for q, column in wanted.excluded.tolist()}
    lists = []
    for q, row in enumerate(scores.tolist()):
        left = [i for i in range(wanted.visible) if (q, i) not in out and row[i] > floor]
        lists.append(sorted(left, key=lambda i, row=row: (-row[i], i))[:depth])  # type: ignore[misc]
    ranks = []
    for q, target in wanted.asked.tolist():
        row = scores[q].tolist()
        others = [row[i] for i in range(wanted.visible) if (q, i) not in out and i != target]
        ranks.append(1 + sum(one > row[target] for one in others) + sum(one == row[target] for one in others) / 2)
    return lists, ranks


def lists_of(found: ScoreOrder) -> list[list[int]]:
    return [row[:end] for row, end in zip(found.order.tolist(), found.ends.tolist(), strict=True)]


@pytest.mark.parametrize("floor", [-inf, 0.0])
@pytest.mark.parametrize("depth", [1, 10, 64, 150, VISIBLE])
@pytest.mark.parametrize("distinct", [2, 12, 100_000])
def test_the_compiled_pass_says_what_the_definition_says(distinct: int, depth: int, floor: float) -> None:
    for seed in range(5):
        scores, wanted = drawn(seed, distinct)
        found = put_in_order(scores, wanted, depth, floor)
        lists, ranks = by_definition(scores, wanted, depth, floor)
        assert lists_of(found) == lists
        assert found.ranks.tolist() == ranks
        assert [len(row) for row in lists] == found.ends.tolist()
        for q, row in enumerate(lists):
            assert found.best[q, : len(row)].tolist() == scores[q, row].tolist()


@pytest.mark.parametrize("floor", [-inf, 0.0])
@pytest.mark.parametrize("block", [1, 7, 1_024])
def test_tensors_find_the_same_but_for_the_order_of_equals(
    block: int, floor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score_order, "BLOCK", block)
    for seed in range(5):
        scores, wanted = drawn(seed, 100_000)
        one, other = put_in_order(scores, wanted, 30, floor), by_tensors(scores, wanted, 30, floor)
        assert one.ranks.tolist() == other.ranks.tolist() and one.ends.tolist() == other.ends.tolist()
        for q, end in enumerate(one.ends.tolist()):
            assert one.best[q, :end].tolist() == other.best[q, :end].tolist()


def test_scores_and_what_is_wanted_of_them_stay_as_they_are() -> None:
    scores, wanted = drawn(1, 12)
    before = scores.clone(), wanted.excluded.clone(), wanted.asked.clone()
    put_in_order(scores, wanted, 20)
    assert all(map(torch.equal, before, (scores, wanted.excluded, wanted.asked)))


def test_a_part_of_wider_scores_is_ranked_as_if_it_were_all() -> None:
    scores, wanted = drawn(2, 100_000)
    wider = torch.cat((scores, scores), 1)[:, : scores.shape[1]]
    assert not wider.is_contiguous()
    assert lists_of(put_in_order(wider, wanted, 20)) == lists_of(put_in_order(scores, wanted, 20))


def test_what_is_no_number_is_ranked_by_nobody_and_only_ranks_are_refused() -> None:
    scores, wanted = drawn(3, 100)
    scores[QUERIES - 1, 3] = torch.nan
    with pytest.raises(AdatkgError, match="NaN"):
        put_in_order(scores, wanted, 5)
    nobody = Wanted(VISIBLE, wanted.excluded, wanted.asked[:0])
    assert 3 not in lists_of(put_in_order(scores, nobody, VISIBLE))[-1]


def test_where_nobody_is_a_candidate_lists_are_empty_and_everybody_would_be_first() -> None:
    found = put_in_order(torch.zeros(1, 3), Wanted(0, torch.zeros(0, 2).long(), torch.tensor([[0, 2]])), 10)
    assert found.order.shape == (1, 0) and found.ends.tolist() == [0] and found.ranks.tolist() == [1.0]

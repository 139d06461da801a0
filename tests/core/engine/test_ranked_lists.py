"""Exact ranks, however many a query asks for."""

from __future__ import annotations

import pytest
import torch

from adatkg_core.engine import ranked_lists
from adatkg_core.engine.ranked_lists import chunks, exact_ranks
from adatkg_core.errors import AdatkgError
from adatkg_core.events import Query
from adatkg_core.state import Catalog

VISIBLE, HIDDEN = 40, 6
NAMES = [f"e{i}" for i in range(VISIBLE + HIDDEN)]
PLACE = {name: i for i, name in enumerate(NAMES)}


def query(rank_of: list[str], exclude: list[str]) -> Query:
    return Query("r", 1, s="a", rank_of=tuple(rank_of), exclude=tuple(exclude))


@pytest.mark.parametrize("seed", range(5))
def test_many_names_get_the_ranks_that_each_gets_alone(seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    scores = torch.randint(0, 12, (6, len(NAMES)), generator=random).float()  # many ties
    catalog = Catalog(NAMES[:VISIBLE])
    excluded = [[NAMES[i] for i in torch.randperm(len(NAMES), generator=random)[: 3 * row]] for row in range(6)]
    asked = [[NAMES[i] for i in torch.randperm(len(NAMES), generator=random)[: 7 * row]] for row in range(1, 7)]
    together = exact_ranks(scores, [query(*one) for one in zip(asked, excluded, strict=True)], catalog, VISIBLE, PLACE)
    assert max(map(len, asked)) > ranked_lists.FEW > min(map(len, asked))
    for row, names in enumerate(asked):
        alone = [query([name], excluded[row]) for name in names]
        ranks = exact_ranks(scores[[row] * len(names)], alone, catalog, VISIBLE, PLACE)
        assert list(together[row].items()) == [pair for one in ranks for pair in one.items()]


def test_blocks_change_no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, catalog = torch.arange(5 * len(NAMES)).float().view(5, -1).sin(), Catalog(NAMES[:VISIBLE])
    queries = [query(NAMES, NAMES[row::7]) for row in range(5)]
    whole = exact_ranks(scores, queries, catalog, VISIBLE, PLACE)
    monkeypatch.setattr(ranked_lists, "BLOCK_SCORES", 1)
    assert exact_ranks(scores, queries, catalog, VISIBLE, PLACE) == whole


def test_where_nothing_is_visible_everybody_would_be_first() -> None:
    ranks = exact_ranks(torch.zeros(1, len(NAMES)), [query(NAMES, [])], Catalog(), 0, PLACE)
    assert set(ranks[0].values()) == {1.0}


def test_scores_that_are_no_numbers_are_not_ranked() -> None:
    scores = torch.zeros(1, len(NAMES))
    scores[0, 3] = torch.nan
    with pytest.raises(AdatkgError, match="NaN"):
        exact_ranks(scores, [query(NAMES, [])], Catalog(NAMES[:VISIBLE]), VISIBLE, PLACE)


def test_queries_are_answered_in_parts_that_memory_can_hold() -> None:
    sizes = [1, 1, 900, 900, 900, 2_500, 1, 0]
    queries = [query([f"n{i}" for i in range(size)], []) for size in sizes]
    assert list(chunks(range(len(sizes)), queries, 3)) == [[0, 1, 2], [3, 4], [5], [6, 7]]
    assert list(chunks([], queries, 3)) == []

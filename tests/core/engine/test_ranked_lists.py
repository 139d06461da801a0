"""Lists and ranks by name, however many a query asks for."""

from __future__ import annotations

import pytest
import torch

from adatkg_core.engine.ranked_lists import Lists, chunks
from adatkg_core.errors import AdatkgError
from adatkg_core.events import Query
from adatkg_core.state import Catalog

VISIBLE, HIDDEN = 40, 6
NAMES = [f"e{i}" for i in range(VISIBLE + HIDDEN)]
PLACE = {name: i for i, name in enumerate(NAMES)}
CPU = torch.device("cpu")


def query(rank_of: list[str], exclude: list[str], k: int = 10) -> Query:
    return Query("r", 1, s="a", rank_of=tuple(rank_of), exclude=tuple(exclude), k=k)


def lists(queries: list[Query], visible: int = VISIBLE) -> Lists:
    return Lists(queries, Catalog(NAMES[:visible]), visible, PLACE, CPU)


@pytest.mark.parametrize("seed", range(5))
def test_many_names_get_the_ranks_that_each_gets_alone(seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    scores = torch.randint(0, 12, (6, len(NAMES)), generator=random).float()  # many ties
    excluded = [[NAMES[i] for i in torch.randperm(len(NAMES), generator=random)[: 3 * row]] for row in range(6)]
    asked = [[NAMES[i] for i in torch.randperm(len(NAMES), generator=random)[: 7 * row]] for row in range(1, 7)]
    together = lists([query(*one) for one in zip(asked, excluded, strict=True)]).top(scores)
    for row, names in enumerate(asked):
        alone = lists([query([name], excluded[row]) for name in names]).top(scores[[row] * len(names)])
        assert list(together[row][2].items()) == [pair for one in alone for pair in one[2].items()]


def test_a_query_gets_as_many_answers_as_it_asks_for_and_the_names_that_follow() -> None:
    scores = torch.arange(len(NAMES)).float().expand(3, -1)
    asked = [query([], [], k=2), query([], NAMES[30:], k=5), query([], NAMES, k=3)]
    (one, names, _), (two, more, _), (nobody, none, _) = lists(asked).top(scores, depth=4)
    assert [answer.entity for answer in one] == ["e39", "e38"] and list(names) == ["e39", "e38", "e37", "e36"]
    assert [answer.entity for answer in two] == list(more) == ["e29", "e28", "e27", "e26", "e25"]
    assert nobody == () and list(none) == []
    assert one[0].score == 39.0 and one[0].probability == pytest.approx(1 - torch.e**-1)


def test_where_nothing_is_visible_everybody_would_be_first() -> None:
    ((_, _, ranks),) = lists([query(NAMES, [])], 0).top(torch.zeros(1, len(NAMES)))
    assert set(ranks.values()) == {1.0}


def test_scores_that_are_no_numbers_are_not_ranked() -> None:
    scores = torch.zeros(1, len(NAMES))
    scores[0, 3] = torch.nan
    with pytest.raises(AdatkgError, match="NaN"):
        lists([query(NAMES, [])]).top(scores)


def test_queries_are_answered_in_parts_that_memory_can_hold() -> None:
    sizes = [1, 1, 900, 900, 900, 2_500, 1, 0]
    queries = [query([f"n{i}" for i in range(size)], []) for size in sizes]
    assert list(chunks(range(len(sizes)), queries, 3)) == [[0, 1, 2], [3, 4], [5], [6, 7]]
    assert list(chunks([], queries, 3)) == []

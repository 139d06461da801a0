"""From scores to what a query asked for: a ranked list of names, and exact ranks of given ones."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from adatkg_core.catalog import Catalog
from adatkg_core.events import Answer, Query, Recurrent
from adatkg_core.ranking import rank_targets

BLOCK = 1_024  # names ranked at once; bounds memory, never changes a rank


def top_lists(scores: Tensor, queries: Sequence[Query], catalog: Catalog) -> list[tuple[Answer, ...]]:
    """The best candidates of each query among the visible ones, scores [B, N], without those it excludes."""
    probability = scores.softmax(1)
    shown = _without_excluded(scores, queries, catalog)
    best, order = shown.topk(min(max(query.k for query in queries), scores.shape[1]), dim=1)
    columns = (order.tolist(), best.tolist(), probability.gather(1, order).tolist())
    return [
        tuple(
            Answer(catalog.names[row], score, chance)
            for row, score, chance in list(zip(*lists, strict=True))[: query.k]
            if score != -torch.inf
        )
        for query, *lists in zip(queries, *columns, strict=True)
    ]


def recurrent_lists(
    scores: Tensor, queries: Sequence[Query], catalog: Catalog, visible: int, place: Mapping[str, int], depth: int
) -> list[Recurrent]:
    """What scores by the recurrency heuristic [B, M] say to the queries, at most `depth` names each.

    Who never recurred scores 0 and is in no list. A tie that the list's end would cut is left out: which of them came
    first would be chance.
    """
    shown = _without_excluded(scores[:, :visible], queries, catalog)
    best, order = shown.topk(min(depth + 1, visible), dim=1)
    ranks = exact_ranks(scores, queries, catalog, visible, place)
    lists = []
    for some, rows, exact in zip(best.tolist(), order.tolist(), ranks, strict=True):
        end = bisect_left(some, 0.0, key=lambda score: -score)  # from here on nobody recurred
        if end > depth:
            end = bisect_left(some, -some[depth], key=lambda score: -score)
        levels, level = bytearray(), 0
        for i in range(end):
            level += i > 0 and some[i] < some[i - 1]
            levels.append(level)
        lists.append(Recurrent(tuple(catalog.names[row] for row in rows[:end]), bytes(levels), exact))
    return lists


def exact_ranks(
    scores: Tensor, queries: Sequence[Query], catalog: Catalog, visible: int, place: Mapping[str, int]
) -> list[dict[str, float]]:
    """Ranks of the entities asked for, scores [B, M], among the first `visible` columns.

    `place` gives the column of each name; one that is not visible is ranked as if it were.
    """
    asked = [(i, name) for i, query in enumerate(queries) for name in query.rank_of]
    result: list[dict[str, float]] = [{} for _ in queries]
    if not asked:
        return result
    for start in range(0, len(asked), BLOCK):
        part = asked[start : start + BLOCK]
        row = torch.tensor([i for i, _ in part], device=scores.device)
        target = torch.tensor([place[name] for _, name in part], device=scores.device)
        hidden = target >= visible
        own = scores[row, target].masked_fill(~hidden, -torch.inf).unsqueeze(1)
        lines = torch.cat((scores[row][:, :visible], own), 1)
        excluded = _excluded([queries[i].exclude for i, _ in part], catalog, lines[:, :visible])
        ranks = rank_targets(lines, torch.where(hidden, visible, target), excluded).realistic.tolist()
        for (i, name), rank in zip(part, ranks, strict=True):
            result[i][name] = rank
    return result


def _without_excluded(scores: Tensor, queries: Sequence[Query], catalog: Catalog) -> Tensor:
    excluded = _excluded([query.exclude for query in queries], catalog, scores)
    return scores.index_put((excluded[:, 0], excluded[:, 1]), scores.new_tensor(-torch.inf))


def _excluded(names: Sequence[Sequence[str]], catalog: Catalog, scores: Tensor) -> Tensor:
    visible = scores.shape[1]
    pairs = [(i, row) for i, some in enumerate(names) for row in catalog.rows(some) if 0 <= row < visible]
    return torch.tensor(pairs, dtype=torch.int64, device=scores.device).view(-1, 2)

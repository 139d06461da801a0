"""From scores to what a query asked for: a ranked list of names, and exact ranks of given ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from adatkg_core.catalog import Catalog
from adatkg_core.events import Answer, Query
from adatkg_core.ranking import rank_targets

BLOCK = 1_024  # names ranked at once; bounds memory, never changes a rank


def top_lists(scores: Tensor, queries: Sequence[Query], catalog: Catalog) -> list[tuple[Answer, ...]]:
    """The best candidates of each query among the visible ones, scores [B, N], without those it excludes."""
    probability = scores.softmax(1)
    excluded = _excluded([query.exclude for query in queries], catalog, scores)
    shown = scores.index_put((excluded[:, 0], excluded[:, 1]), scores.new_tensor(-torch.inf))
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


def _excluded(names: Sequence[Sequence[str]], catalog: Catalog, scores: Tensor) -> Tensor:
    visible = scores.shape[1]
    pairs = [(i, row) for i, some in enumerate(names) for row in catalog.rows(some) if 0 <= row < visible]
    return torch.tensor(pairs, dtype=torch.int64, device=scores.device).view(-1, 2)

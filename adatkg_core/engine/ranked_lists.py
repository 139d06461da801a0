"""From scores to what a query asked for: a ranked list of names, and exact ranks of given ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from adatkg_core.errors import AdatkgError
from adatkg_core.events import Answer, Query, Recurrent
from adatkg_core.metrics import rank_targets
from adatkg_core.state import Catalog

CHUNK = 256  # queries scored at once at most, and
CHUNK_SCORES = 1 << 25  # scores: this bounds memory, and never changes an answer
BLOCK = 1_024  # names ranked at once; bounds memory, never changes a rank
NAMES = 2_048  # in the queries answered at once, likewise
FEW = 8  # names of a query that are counted against all candidates; more are looked up in their order
BLOCK_SCORES = 1 << 22  # scores put into order at once


def chunk_size(entities: int) -> int:
    """How many queries are scored at once in a graph of so many entities."""
    return min(CHUNK, max(1, CHUNK_SCORES // max(1, entities)))


def chunks(asked: Sequence[int], queries: Sequence[Query], most: int) -> Iterator[list[int]]:
    """The numbers of some queries in parts of at most `most`, and of few enough names to rank."""
    part: list[int] = []
    names = 0
    for i in asked:
        if part and (len(part) == most or names + len(queries[i].rank_of) > NAMES):
            yield part
            part, names = [], 0
        part.append(i)
        names += len(queries[i].rank_of)
    if part:
        yield part


def top_lists(
    scores: Tensor, queries: Sequence[Query], catalog: Catalog, depth: int = 0
) -> list[tuple[tuple[Answer, ...], tuple[str, ...]]]:
    """The best candidates of each query among the visible ones, scores [B, N], without those it excludes.

    Of each query the answers that it asks for, and their names and those that follow, `depth` in all.
    """
    probability = scores.softmax(1)
    shown = _without_excluded(scores, queries, catalog)
    best, order = shown.topk(min(max(depth, *(query.k for query in queries)), scores.shape[1]), dim=1)
    ends = (best > -torch.inf).sum(1).tolist()
    columns = (order.tolist(), best.tolist(), probability.gather(1, order).tolist())
    lists = []
    for query, end, rows, values, chances in zip(queries, ends, *columns, strict=True):
        names = tuple([catalog.names[row] for row in rows[: min(end, max(depth, query.k))]])
        lists.append((tuple(map(Answer, names[: query.k], values, chances)), names))
    return lists


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
    cut = best[:, depth:].clamp(min=0) if visible > depth else best.new_zeros(best.shape[0], 1)  # [B, 1]
    ends = (best > cut).sum(1).tolist()
    falls = F.pad(best[:, 1:] < best[:, :-1], (1, 0))
    levels = falls.cumsum(1).to(torch.uint8).cpu().numpy()
    names = catalog.names
    return [
        Recurrent(tuple([names[row] for row in rows[:end]]), heights[:end].tobytes(), exact)
        for rows, end, heights, exact in zip(order.tolist(), ends, levels, ranks, strict=True)
    ]


def exact_ranks(
    scores: Tensor, queries: Sequence[Query], catalog: Catalog, visible: int, place: Mapping[str, int]
) -> list[dict[str, float]]:
    """Ranks of the entities asked for, scores [B, M], among the first `visible` columns.

    `place` gives the column of each name; one that is not visible is ranked as if it were.
    """
    result: list[dict[str, float]] = [{} for _ in queries]
    many = [i for i, query in enumerate(queries) if len(query.rank_of) > FEW and visible]
    rows = max(1, BLOCK_SCORES // max(1, scores.shape[1]))
    for start in range(0, len(many), rows):
        part = many[start : start + rows]
        found = _ranks_in_order(scores[part], [queries[i] for i in part], catalog, visible, place)
        for i, ranks in zip(part, found, strict=True):
            result[i] = ranks
    asked = [(i, name) for i, query in enumerate(queries) if not result[i] for name in query.rank_of]
    for start in range(0, len(asked), BLOCK):
        block = asked[start : start + BLOCK]
        asking = [i for i, _ in block]
        row = torch.tensor(asking, device=scores.device)
        target = torch.tensor([place[name] for _, name in block], device=scores.device)
        hidden = target >= visible
        # Usually each query asks for one and all are visible: then nothing of this size need be copied.
        lines = (scores if asking == list(range(len(queries))) else scores[row])[:, :visible]
        if bool(hidden.any()):
            own = scores[row, target].masked_fill(~hidden, -torch.inf).unsqueeze(1)
            lines = torch.cat((lines, own), 1)
        excluded = _excluded([queries[i].exclude for i, _ in block], catalog, lines[:, :visible])
        realistic = rank_targets(lines, torch.where(hidden, visible, target), excluded).realistic.tolist()
        for (i, name), rank in zip(block, realistic, strict=True):
            result[i][name] = rank
    return result


def _ranks_in_order(
    scores: Tensor, queries: Sequence[Query], catalog: Catalog, visible: int, place: Mapping[str, int]
) -> list[dict[str, float]]:
    """The same for queries that ask for many: their scores are put into order once, each name is looked up there."""
    wanted = [[place[name] for name in query.rank_of] for query in queries]
    width = max(map(len, wanted))
    target = torch.tensor([row + row[:1] * (width - len(row)) for row in wanted], device=scores.device)  # [B, T]
    own = scores.gather(1, target)
    others = _without_excluded(scores[:, :visible], queries, catalog)
    if bool(scores[:, :visible].amax(1).isnan().any() | own.isnan().any()):
        raise AdatkgError("scores hold NaN and cannot be ranked; check the model and its state for NaN")
    inside = (target < visible) & (others.gather(1, target.clamp(max=visible - 1)) > -torch.inf)
    order = others.sort(1).values
    above = visible - torch.searchsorted(order, own, right=True)
    level = visible - torch.searchsorted(order, own) + ~inside  # counts the target, wherever it is
    realistic = ((above + 1 + level).to(torch.float64) / 2).tolist()
    return [dict(zip(query.rank_of, ranks, strict=False)) for query, ranks in zip(queries, realistic, strict=True)]


def _without_excluded(scores: Tensor, queries: Sequence[Query], catalog: Catalog) -> Tensor:
    excluded = _excluded([query.exclude for query in queries], catalog, scores)
    return scores.index_put((excluded[:, 0], excluded[:, 1]), scores.new_tensor(-torch.inf))


def _excluded(names: Sequence[Sequence[str]], catalog: Catalog, scores: Tensor) -> Tensor:
    visible = scores.shape[1]
    pairs = [(i, row) for i, some in enumerate(names) for row in catalog.rows(some) if 0 <= row < visible]
    return torch.tensor(pairs, dtype=torch.int64, device=scores.device).view(-1, 2)

"""From scores to what queries asked for: ranked lists of names, and exact ranks of given ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from adatkg_core.engine.score_order import ScoreOrder, Wanted, put_in_order
from adatkg_core.events import Answer, Query, Recurrent
from adatkg_core.state import Catalog, NamesAt

CHUNK = 256  # queries scored at once at most, and
CHUNK_SCORES = 1 << 25  # scores: this bounds memory, and never changes an answer
NAMES = 2_048  # in the queries answered at once, likewise


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


class Lists:
    """What queries want to know of their scores, by name."""

    def __init__(
        self,
        queries: Sequence[Query],
        catalog: Catalog,
        visible: int,
        place: Mapping[str, int],
        device: torch.device,
    ) -> None:
        """Candidates are the first `visible` rows of the catalog; `place` gives the column of each name asked for, and
        one that is not visible is ranked as if it were; `device` is that of the scores."""
        self._queries, self._catalog = queries, catalog
        excluded = [
            (i, row)
            for i, query in enumerate(queries)
            if query.exclude
            for row in catalog.rows(query.exclude)
            if 0 <= row < visible
        ]
        asked = [(i, place[name]) for i, query in enumerate(queries) for name in query.rank_of]
        self._wanted = Wanted(visible, _pairs(excluded, device), _pairs(asked, device))

    def top(self, scores: Tensor, depth: int = 0) -> list[tuple[tuple[Answer, ...], NamesAt, dict[str, float]]]:
        """Of each query, by scores [B, M], the answers that it asks for; their names and those that follow, `depth` in
        all; and the ranks."""
        most = max(query.k for query in self._queries)
        found = put_in_order(scores, self._wanted, max(depth, most))
        chances = scores[:, : self._wanted.visible].softmax(1).gather(1, found.order[:, :most])
        first, values, probabilities = (part[:, :most].tolist() for part in (found.order, found.best, chances))
        rows, ranks, names = found.order.cpu().numpy(), self._ranks(found), self._catalog.names
        lists = []
        for i, (query, end) in enumerate(zip(self._queries, found.ends.tolist(), strict=True)):
            best = map(Answer, [names[row] for row in first[i][: min(query.k, end)]], values[i], probabilities[i])
            lists.append((tuple(best), NamesAt(names, rows[i, : min(end, max(depth, query.k))]), ranks[i]))
        return lists

    def recurrent(self, scores: Tensor, depth: int) -> list[Recurrent]:
        """What scores by the recurrency heuristic [B, M] say, at most `depth` names each.

        Who never recurred scores 0 and is in no list. A tie that the list's end would cut is left out: which of them
        came first would be chance.
        """
        found = put_in_order(scores, self._wanted, depth + 1, floor=0.0)
        best = found.best
        if best.shape[1] > depth:  # of a list that is full the last says which tie is cut
            is_cut = (found.ends > depth).unsqueeze(1) & (best == best[:, depth:])
            ends = (found.ends - is_cut.sum(1)).tolist()
        else:
            ends = found.ends.tolist()
        levels = F.pad(best[:, 1:] < best[:, :-1], (1, 0)).cumsum(1).to(torch.uint8).cpu().numpy()
        columns = zip(ends, found.order.cpu().numpy(), levels, self._ranks(found), strict=True)
        names = self._catalog.names
        return [
            Recurrent(NamesAt(names, rows[:end]), heights[:end].tobytes(), ranks)
            for end, rows, heights, ranks in columns
        ]

    def _ranks(self, found: ScoreOrder) -> list[dict[str, float]]:
        ranks = iter(found.ranks.tolist())
        return [{name: next(ranks) for name in query.rank_of} for query in self._queries]


def _pairs(pairs: Sequence[tuple[int, int]], device: torch.device) -> Tensor:
    return torch.tensor(pairs, dtype=torch.int64, device=device).view(-1, 2)

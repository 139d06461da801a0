"""Scores of queries put into order: the best candidates of each, and the exact places of those asked for."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from adatkg_core.errors import AdatkgError
from adatkg_core.metrics import rank_targets

BLOCK = 1_024  # places counted at once by tensors; bounds memory, never changes a rank


@dataclass(frozen=True)
class Wanted:
    """What some queries want to know of their scores [B, M], where candidates are columns."""

    visible: int  # the first columns are the candidates; who stands behind them can be asked for
    excluded: Tensor  # [P, 2] query and candidate, in the order of the queries
    asked: Tensor  # [T, 2] query and column, likewise: whose place is wanted


@dataclass(frozen=True)
class ScoreOrder:
    """The best candidates of each query, best first, and the places of those asked for."""

    order: Tensor  # [B, D] columns, some behind the end too; among equals the first
    best: Tensor  # [B, D] their scores
    ends: Tensor  # [B] how many of the D there are
    ranks: Tensor  # [T] float64, the mean of the best and the worst place


def put_in_order(scores: Tensor, wanted: Wanted, depth: int, floor: float = -inf) -> ScoreOrder:
    """At most `depth` candidates of each query that it does not exclude and that score above `floor`.

    Raises AdatkgError where a place among scores is wanted that are no numbers.
    """
    depth = min(depth, wanted.visible)
    if scores.device.type == "cpu":
        return _compiled(scores.contiguous(), wanted, depth, floor)
    return by_tensors(scores, wanted, depth, floor)


def by_tensors(scores: Tensor, wanted: Wanted, depth: int, floor: float) -> ScoreOrder:
    """The same on any device; who comes first among equals is chance."""
    visible, excluded = wanted.visible, wanted.excluded
    shown = scores[:, :visible].index_put((excluded[:, 0], excluded[:, 1]), scores.new_tensor(-torch.inf))
    best, order = shown.topk(depth, dim=1)
    ranks = [_ranks(scores, wanted, part) for part in torch.split(wanted.asked, BLOCK)]
    nothing = torch.zeros(0, dtype=torch.float64, device=scores.device)
    return ScoreOrder(order, best, (best > floor).sum(1), torch.cat([nothing, *ranks]))


def _ranks(scores: Tensor, wanted: Wanted, asked: Tensor) -> Tensor:
    """Of some of those asked for, [t]."""
    row, target = asked.unbind(1)
    hidden = target >= wanted.visible
    own = scores[row, target].masked_fill(~hidden, -torch.inf).unsqueeze(1)
    lines = torch.cat((scores[row, : wanted.visible], own), 1)
    place, pair = torch.nonzero(row.unsqueeze(1) == wanted.excluded[:, 0], as_tuple=True)
    excluded = torch.stack((place, wanted.excluded[pair, 1]), 1)
    return rank_targets(lines, torch.where(hidden, wanted.visible, target), excluded).realistic


def _compiled(scores: Tensor, wanted: Wanted, depth: int, floor: float) -> ScoreOrder:
    from adatkg_core.engine.compiled_order import Room, order_rows  # not at the top: numba takes half a second

    size, columns = scores.shape
    order = torch.zeros(size, depth, dtype=torch.int64, device=scores.device)
    best, ends = scores.new_empty(size, depth), order.new_empty(size)
    asked, excluded = wanted.asked.contiguous(), wanted.excluded.clone().contiguous()
    ranks = torch.empty(asked.shape[0], dtype=torch.float64, device=scores.device)
    left_out = torch.zeros(wanted.visible, dtype=torch.int64, device=scores.device)
    room = Room._make(map(Tensor.data_ptr, (excluded, asked, left_out, order, best, ends, ranks)))
    sizes = (size, columns, wanted.visible, depth, excluded.shape[0], asked.shape[0])
    if not order_rows(scores.data_ptr(), *sizes, floor, room):
        raise AdatkgError("scores hold NaN and cannot be ranked; check the model and its state for NaN")
    return ScoreOrder(order, best, ends, ranks)


def compile_order() -> None:
    """Have it compiled, which takes a second once on a machine, before anybody waits for it."""
    device = torch.device("cpu")
    nobody = torch.zeros(0, 2, dtype=torch.int64, device=device)
    put_in_order(torch.zeros(1, 1, device=device), Wanted(1, nobody, nobody), 1)

"""What the recurrency heuristic says to queries, bit for bit as tensor operations find it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from adatkg_core.evidence.compiled.gather import find_table
from adatkg_core.evidence.compiled.layout import ONE, Table, single
from adatkg_core.evidence.compiled.memory import Cells, floats, narrow, wide
from adatkg_core.evidence.compiled.tables import slot_of
from adatkg_core.evidence.questions import OLDEST, shares_left
from adatkg_core.runtime import compiled
from adatkg_core.state import GraphState


def count_recurrence(
    state: GraphState, subject: Tensor, relation: Tensor, time: int, n: int, same_pair: float, same_relation: float
) -> Tensor:
    """Queries [B] -> scores [B, n]: decayed counts of the fact, of the pair and of the relation's far end."""
    subject, relation = subject.contiguous(), relation.contiguous()
    scores = torch.zeros(subject.shape[0], n, device=subject.device)
    span, left = state.config.recall.slow, shares_left(state.config.recall.slow, subject.device)
    tables = find_table(state, "pair"), find_table(state, "relation")
    asked = subject.data_ptr(), relation.data_ptr(), subject.shape[0], time, n
    _count(*tables, *asked, left.data_ptr(), span, same_pair, same_relation, scores.data_ptr())
    return scores


@compiled
def _count(
    pair: Table,
    far: Table,
    subjects: int,
    relations: int,
    size: int,
    time: int,
    n: int,
    left: int,
    span: float,
    same_pair: float,
    same_relation: float,
    into: int,
) -> None:
    subject, relation, scores, shares = wide(subjects), wide(relations), floats(into), floats(left)
    other, slow, last = narrow(far.other), floats(far.slow), narrow(far.last)
    slow_span, of_pair, of_relation = single(span), single(same_pair), single(same_relation)
    for q in range(size):
        for i in range(narrow(far.fill)[relation[q]]):
            slot = slot_of(narrow(far.pages), far.width, relation[q], i)
            scores[q * n + other[slot]] = of_relation * (slow[slot] * _left(last[slot], time, shares, slow_span))
    held, others, slowly, latest = narrow(pair.relation), narrow(pair.other), floats(pair.slow), narrow(pair.last)
    for q in range(size):
        for i in range(narrow(pair.fill)[subject[q]]):
            slot = slot_of(narrow(pair.pages), pair.width, subject[q], i)
            lively = slowly[slot] * _left(latest[slot], time, shares, slow_span)
            scores[q * n + others[slot]] += lively * (ONE if held[slot] == relation[q] else of_pair)


@compiled
def _left(last: int, time: int, shares: Cells[float], span: float) -> float:
    """What is left of a count; of one older than the table knows, too."""
    age = max(time - last, 0)
    return shares[age] if age < OLDEST - 1 else np.exp(-single(age) / span)

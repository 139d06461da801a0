"""Which queries a training step asks, and as whom."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from adatkg_core.datasets import Facts
from adatkg_core.metrics import TimeFilter
from adatkg_core.settings import TrainConfig
from adatkg_core.state import NAME_TENSORS, GraphState, to_device


def learned(facts: Facts, burn_in: float) -> Facts:
    """The facts whose queries are learned from."""
    times = np.unique(facts[:, 3])
    return facts[np.searchsorted(facts[:, 3], times[int(len(times) * burn_in)]) :]


def batches(
    asked: tuple[Tensor, Tensor, Tensor] | None, size: int, by_direction: bool
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Parts of at most about `size` queries in random order, or one part for each direction; None asks nothing."""
    if asked is None:
        return
    subject, relation, answer = asked
    count = len(subject)
    if by_direction:
        parts = torch.arange(count, device=subject.device).chunk(2)
    else:
        parts = to_device(torch.randperm(count), subject.device).tensor_split(-(-count // size))
    for part in parts:
        if len(part) > 1:  # a batch of one has no batch statistics
            yield subject[part], relation[part], answer[part]


def with_strangers(
    state: GraphState, subject: Tensor, relation: Tensor, ids: Tensor, settings: TrainConfig
) -> tuple[Tensor, Tensor]:
    """Some subjects are asked about through an empty row with their name: the queries' rows, and all rows in use.

    Only where the subject has done nothing under the relation asked: else the tables of relations and groups, which
    know of it, would give the answer away.
    """
    if settings.protocol == "snapshot" or settings.strangers == 0:
        return subject, ids
    young = state.tensors["interactions"][subject] < settings.strangers_below
    if state.config.recall.enabled:
        owner, slot = state.pair_table.slots(state, subject)
        done = owner[state.tensors["pair_relation"][slot] == relation[owner]]
        young = young.index_fill(0, done, False)
    drawn = to_device(torch.rand(subject.shape[0]) < settings.strangers, state.device)
    strange = (young & drawn).nonzero().squeeze(1)
    rows = state.entities + torch.arange(strange.shape[0], device=state.device)
    state.reserve(state.entities + strange.shape[0])
    for name in NAME_TENSORS:
        if name in state.tensors:
            state.tensors[name][rows] = state.tensors[name][subject[strange]]
    return subject.index_copy(0, strange, rows), torch.cat((ids, rows))


def other_answers(
    known: TimeFilter, subject: Tensor, relation: Tensor, answer: Tensor, time: int
) -> tuple[Tensor, Tensor]:
    """Other true answers of the same query and time: they are no mistakes and take no part in the loss."""
    row, candidate = known.exclusions(subject, relation, torch.full_like(subject, time)).unbind(1)
    other = candidate != answer[row]
    return row[other], candidate[other]

"""The snapshot protocol's forward pass: the queries of one time and direction are scored together.

It exists to compare with published figures. An entity that is the subject of a query carries the query's encoding
on the candidate side too, and with `before` timing its memory has already taken in the signal of that query: the
queries of a time see each other, which no live system could offer.
"""

from __future__ import annotations

import torch
from torch import Tensor

from adatkg_core.model.adatkg import AdaTKG, LastUpdate, View
from adatkg_core.state import GraphState, group_mean


def score_snapshot(
    model: AdaTKG, state: GraphState, ids: Tensor, subject: Tensor, relation: Tensor, time: int
) -> Tensor:
    """Scores [B, N] of the entities `ids` for all queries of a time in one direction."""
    encoding, view = view_snapshot(model, state, ids, subject, relation, time)
    return model.score(state, view, subject, relation, time, encoding=encoding).total


def view_snapshot(
    model: AdaTKG,
    state: GraphState,
    ids: Tensor,
    subject: Tensor,
    relation: Tensor,
    time: int,
    last: LastUpdate | None = None,
) -> tuple[Tensor, View]:
    """The chain encodings [B, d] of all queries of a time in one direction, and the view of `ids` that they share."""
    vectors = model.relations()
    encoding, _ = model.encode_chains(state, subject, relation, time, vectors)
    who, group = torch.unique(subject, return_inverse=True)
    mark = group_mean(encoding + vectors[relation], group, who.shape[0])
    extra = mark.new_zeros(ids.shape[0], mark.shape[1]).index_copy(0, who, mark)
    if model.memory is not None and model.config.model.timing == "before":
        previous, updates = state.tensors["memory"][who], state.tensors["updates"][who]
        last = LastUpdate(who, previous, updates, group, encoding.detach(), relation)
    return encoding, model.view(state, ids, last, extra)

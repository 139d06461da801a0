"""What a subject itself did with each candidate, in rows of features: by tensors, or by one pass of compiled code."""

from __future__ import annotations

import torch
from torch import Tensor

from adatkg_core.evidence import (
    Gathered,
    OwnSources,
    Questions,
    follow,
    gather_evidence,
    lift_of,
    own_features,
    totals_of,
)
from adatkg_core.model.recall_context import BASE_FEATURES, Context, counted
from adatkg_core.model.recall_view import RecallView
from adatkg_core.state import GraphState, distinct_places


def is_compiled(state: GraphState) -> bool:
    """Whether compiled code may read a state: it knows no gradients and no other device."""
    return state.device.type == "cpu" and not torch.is_grad_enabled()


def own_rows(state: GraphState, view: RecallView, questions: Questions, context: Context) -> tuple[Tensor, Tensor]:
    """The places query * n + candidate [U] of whom the subjects have met and who is proposed, and features [U, …]."""
    recall = state.config.recall
    gathered = gather_evidence(state, questions, recall.proposals) if recall.evidence else None
    lift = None
    if gathered is not None:
        with torch.no_grad():
            lift = lift_of(state, questions.kinds, view.once("followed", lambda: totals_of(state)))
    if not is_compiled(state):
        return _by_tensors(state, questions, context, gathered, lift)
    place, entry = _places(state, questions) if gathered is None else (gathered.place, gathered.entry)
    far = context.planes.far
    known = OwnSources(
        context.similarity,
        context.affinity,
        lift,
        context.embedded,
        (far.owner, far.other, far.features),
        context.activity,
        context.warmth,
    )
    return place, own_features(state, questions, place, entry, None if gathered is None else gathered.features, known)


def _places(state: GraphState, questions: Questions) -> tuple[Tensor, Tensor]:
    """Whom the subjects have met, and the row of each of their slots."""
    owner, slot = state.pair_table.slots(state, questions.subject)
    seen = owner * questions.n + state.tensors["pair_other"][slot]
    place, number = distinct_places(seen, questions.subject.shape[0] * questions.n)
    return place, number[seen]


def _by_tensors(
    state: GraphState, questions: Questions, context: Context, gathered: Gathered | None, lift: Tensor | None
) -> tuple[Tensor, Tensor]:
    slots = state.pair_table.read(state, questions.subject, questions.time)
    asked = context.relation[slots.owner]
    exact = (slots.relation == asked).float()
    place, entry = _places(state, questions) if gathered is None else (gathered.place, gathered.entry)
    lively = torch.stack((slots.fast, slots.slow), 1)  # [M, 2]
    near = context.similarity[asked, slots.relation].unsqueeze(1)
    affinity = context.affinity[context.kind[slots.owner], slots.relation]  # [M, heads]
    exactly = torch.stack(counted(slots), 1) * exact.unsqueeze(1)  # one slot at most, so a sum is a copy
    # How long what another relation says holds: by slow counts, by fast ones, and by the age of its latest fact.
    kernels = (slots.slow, slots.fast, 1 / (1 + slots.age))[: 2 if gathered is None else 3]
    told = [affinity * kernel.unsqueeze(1) for kernel in kernels]
    columns = torch.cat((exactly, slots.count.unsqueeze(1), lively, near * lively, *told), 1)
    total = columns.new_zeros(place.shape[0], columns.shape[1]).index_add(0, entry, columns)
    latest = columns.new_zeros(place.shape[0]).scatter_reduce(0, entry, 1 / (1 + slots.age), "amax")
    wider: tuple[Tensor, ...] = ()
    if gathered is not None and lift is not None:
        with torch.no_grad():
            said = lift[questions.kind[slots.owner], slots.relation]
            wider = gathered.features, follow(said, slots, entry, place.shape[0])
    exact_part, rest = total[:, :BASE_FEATURES], torch.log1p(total[:, BASE_FEATURES:])
    return place, torch.cat((exact_part, rest, latest.unsqueeze(1), *wider, context.of(place)), 1)

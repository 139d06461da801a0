"""What a subject did with each candidate, and what else is known of the two: a row of features each, in one pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from adatkg_core.evidence.compiled.gather import find_table
from adatkg_core.evidence.compiled.layout import ONE, ZERO, Table, single
from adatkg_core.evidence.compiled.memory import Cells, floats, narrow, wide
from adatkg_core.evidence.compiled.tables import slot_of
from adatkg_core.evidence.own_sources import OwnSources
from adatkg_core.evidence.questions import Questions
from adatkg_core.runtime import compiled
from adatkg_core.state import GraphState

COUNTED = 5  # of a slot: seen, counts, recency
FOLLOWED = 3  # features of what follows what
LITTLE = single(0.1)  # as `transitions.follow` adds it


class Asked(NamedTuple):
    """Queries as they were asked."""

    size: int
    subject: int  # [B]
    relation: int  # [B]
    kind: int  # [B] place of the relation among the distinct ones
    warmth: int  # [B]
    amount: int  # [slots] the counts of the table of pairs
    time: int
    n: int


class Related(NamedTuple):
    """What relations say about those that are asked about."""

    both: int  # how many relations there are
    heads: int
    kernels: int  # how many ways to tell how long that holds
    width: int  # of an embedding
    near: int  # [2R, 2R]
    affinity: int  # [Q, 2R, heads]
    lift: int  # [Q, 2R], 0 where it does not count
    embedded: int  # [Q, width]
    fast: float  # ticks in which a count falls to 1/e
    slow: float


class FarSeen(NamedTuple):
    """Whom the far ends of the relations have seen."""

    size: int
    owner: int  # [M]
    other: int  # [M]
    features: int  # [M, COUNTED]
    number: int  # [Q * n] room


class Rows(NamedTuple):
    """Where the features go."""

    size: int
    place: int  # [U] query * n + candidate
    entry: int  # the row of each of the subjects' slots
    more: int  # columns of the wider evidence
    wider: int  # [U, more]
    activity: int  # [n, active]
    active: int
    width: int
    features: int  # [U, width]


def own_features(
    state: GraphState, questions: Questions, place: Tensor, entry: Tensor, wider: Tensor | None, known: OwnSources
) -> Tensor:
    """Features [U, …] of places [U]; `entry` [M] has the row of each slot of the subjects, in their order."""
    recall, n, heads = state.config.recall, questions.n, known.affinity.shape[2]
    kernels = 2 if known.lift is None else 3
    more = 0 if wider is None else wider.shape[1]
    active, width = known.activity.shape[1], known.embedded.shape[1]
    columns = 3 * COUNTED + 1 + kernels * heads + more + active + width + 1
    columns += 0 if known.lift is None else FOLLOWED
    features = torch.empty(place.shape[0], columns, device=place.device)
    lifted = None if known.lift is None else known.lift.contiguous()
    held = known.near, known.affinity.contiguous(), lifted, known.embedded, known.activity.contiguous()
    near, affinity, lift, embedded, activity = (0 if one is None else one.data_ptr() for one in held)
    amount, number = state.tensors["pair_count"], place.new_empty(questions.kinds.shape[0] * n, dtype=torch.int32)
    told = questions.subject, questions.relation, questions.kind, known.warmth, amount
    owner, other, seen = known.far
    own = write_features(
        find_table(state, "pair"),
        Asked._make((questions.subject.shape[0], *map(Tensor.data_ptr, told), questions.time, n)),
        Related(known.near.shape[0], heads, kernels, width, near, affinity, lift, embedded, recall.fast, recall.slow),
        FarSeen(owner.shape[0], *map(Tensor.data_ptr, (owner, other, seen, number))),
        Rows(
            place.shape[0],
            place.data_ptr(),
            entry.data_ptr(),
            more,
            0 if wider is None else wider.data_ptr(),
            activity,
            active,
            columns,
            features.data_ptr(),
        ),
    )
    features[:, COUNTED : own - 1].log1p_()  # several at a time, which compiled code does one by one
    return features


@compiled
def write_features(pair: Table, asked: Asked, related: Related, far: FarSeen, rows: Rows) -> int:
    """Fill the rows; returns how many columns tell of the subject's own slots, whose sums have no logarithm yet."""
    features = floats(rows.features)
    own = 2 * COUNTED + 1 + related.kernels * related.heads
    for i in range(rows.size):
        for column in range(own):
            features[i * rows.width + column] = ZERO
    follows = own + rows.more
    if related.lift != 0:
        for i in range(rows.size):
            for column in range(FOLLOWED):
                features[i * rows.width + follows + column] = ZERO
    _sum_slots(pair, asked, related, rows, own, follows)
    _finish(asked, related, rows, own, follows)
    _write_context(asked, related, far, rows, follows + (FOLLOWED if related.lift != 0 else 0))
    return own


@compiled
def _sum_slots(pair: Table, asked: Asked, related: Related, rows: Rows, own: int, follows: int) -> None:
    """Add up what the slots of each subject say, in their order."""
    subject, relation, kind, entry = wide(asked.subject), wide(asked.relation), wide(asked.kind), wide(rows.entry)
    fill, pages, held, last = narrow(pair.fill), narrow(pair.pages), narrow(pair.relation), narrow(pair.last)
    amount, slowly, quickly = floats(asked.amount), floats(pair.slow), floats(pair.fast)
    near, affinity, lift = floats(related.near), floats(related.affinity), floats(related.lift)
    slow_span, quick_span = single(related.slow), single(related.fast)
    features, i, heads, both = floats(rows.features), 0, related.heads, related.both
    for q in range(asked.size):
        wanted, of_kind = relation[q], kind[q] * both
        for j in range(fill[subject[q]]):
            slot = slot_of(pages, pair.width, subject[q], j)
            at = entry[i] * rows.width
            i += 1
            age = single(max(asked.time - last[slot], 0))
            count, recency = amount[slot], ONE / (ONE + age)
            fast, slow = quickly[slot] * np.exp(-age / quick_span), slowly[slot] * np.exp(-age / slow_span)
            if held[slot] == wanted:
                _count(features, at, count, fast, slow, recency)
            like = near[wanted * both + held[slot]]
            features[at + COUNTED] += count
            features[at + COUNTED + 1] += fast
            features[at + COUNTED + 2] += slow
            features[at + COUNTED + 3] += like * fast
            features[at + COUNTED + 4] += like * slow
            for head in range(heads):
                says = affinity[(of_kind + held[slot]) * heads + head]
                told = at + 2 * COUNTED + head
                features[told] += says * slow
                features[told + heads] += says * fast
                if related.kernels > 2:
                    features[told + 2 * heads] += says * recency
            features[at + own - 1] = max(features[at + own - 1], recency)
            if related.lift != 0:
                is_first = features[at + COUNTED] == count
                _add_lift(features, at + follows, lift[of_kind + held[slot]], slow, fast, is_first)


@compiled
def _count(features: Cells[float], at: int, count: float, fast: float, slow: float, recency: float) -> None:
    features[at] = ONE
    features[at + 1] = np.log1p(count)
    features[at + 2] = np.log1p(fast)
    features[at + 3] = np.log1p(slow)
    features[at + 4] = recency


@compiled
def _add_lift(features: Cells[float], at: int, lift: float, slow: float, fast: float, is_first: bool) -> None:
    features[at] += lift * slow
    features[at + 1] += lift * fast
    features[at + 2] = lift if is_first else max(features[at + 2], lift)


@compiled
def _finish(asked: Asked, related: Related, rows: Rows, own: int, follows: int) -> None:
    """Sums become means where the network reads means, and the wider evidence comes beside them."""
    features, wider = floats(rows.features), floats(rows.wider)
    for i in range(rows.size):
        at = i * rows.width
        if related.lift != 0:
            features[at + follows] /= features[at + COUNTED + 2] + LITTLE
            features[at + follows + 1] /= features[at + COUNTED + 1] + LITTLE
        for column in range(rows.more):
            features[at + own + column] = wider[i * rows.more + column]


@compiled
def _write_context(asked: Asked, related: Related, far: FarSeen, rows: Rows, first: int) -> None:
    """What every term knows of a query and a candidate."""
    features, place, kind, warmth = floats(rows.features), wide(rows.place), wide(asked.kind), floats(asked.warmth)
    owner, other, seen, number = wide(far.owner), wide(far.other), floats(far.features), narrow(far.number)
    activity, embedded, n = floats(rows.activity), floats(related.embedded), asked.n
    for i in range(far.size):
        number[owner[i] * n + other[i]] = i
    for i in range(rows.size):
        q, candidate, at = place[i] // n, place[i] % n, i * rows.width + first
        found = number[kind[q] * n + candidate]
        is_seen = 0 <= found < far.size and owner[found] == kind[q] and other[found] == candidate
        for column in range(COUNTED):
            features[at + column] = seen[found * COUNTED + column] if is_seen else ZERO
        at += COUNTED
        for column in range(rows.active):
            features[at + column] = activity[candidate * rows.active + column]
        at += rows.active
        for column in range(related.width):
            features[at + column] = embedded[kind[q] * related.width + column]
        features[at + related.width] = warmth[q]

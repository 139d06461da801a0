"""Whom relations have seen at their far ends, kept slot by slot: what has not changed is not described again."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from adatkg_core.evidence.compiled.gather import find_table
from adatkg_core.evidence.compiled.layout import ONE, Table, single
from adatkg_core.evidence.compiled.memory import floats, narrow, wide
from adatkg_core.evidence.compiled.own_features import COUNTED
from adatkg_core.evidence.compiled.tables import slot_of
from adatkg_core.evidence.questions import Questions
from adatkg_core.runtime import compiled
from adatkg_core.state import GraphState, grown

NEVER = -1
MARKS = 4  # whose slot it is, the other end, the latest time, and the count, by which a change is told


class Kept(NamedTuple):
    """What is known of slots, by address."""

    seen: int  # [slots] the version of the state as of which a slot was described, NEVER where it was not
    mark: int  # [slots, MARKS]
    features: int  # [slots, COUNTED]


class Found(NamedTuple):
    """The slots of some relations, one relation after the other."""

    owner: int  # [M] which of the relations
    other: int  # [M]
    slot: int  # [M]
    stale: int  # [M] the slots that are to be described


class KeptFarEnd:
    """That of one table as of one time."""

    def __init__(self) -> None:
        self._seen = torch.empty(0, dtype=torch.int64, device="cpu")
        self._mark = self._seen.new_empty(0, MARKS, dtype=torch.int32)
        self._features = torch.empty(0, COUNTED, device="cpu")
        self._value = torch.empty(0, device="cpu")

    def read(
        self,
        state: GraphState,
        table: str,
        questions: Questions,
        weigh: Callable[[Tensor], Tensor],
        known: tuple[Tensor, Tensor],
        changes: tuple[Tensor, int],
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of the distinct relations: owner, other, features and value of each slot, [M, …].

        `known` are what else `weigh` reads: activity [n, …] and embeddings of all relations; `changes` are the version
        at which each entity changed last, and that of the state as it is.
        """
        get, kinds = state.tensors, questions.kinds
        self._reserve(get[f"{table}_last"].shape[0])
        size, rows = int(get[f"{table}_fill"][kinds].sum()), find_table(state, table)
        owner, other, slot, stale = kinds.new_empty(4, size).unbind()
        found = Found._make(map(Tensor.data_ptr, (owner, other, slot, stale)))
        kept = Kept._make(map(Tensor.data_ptr, (self._seen, self._mark, self._features)))
        count, (changed, version) = get[f"{table}_count"], changes
        asked = kinds.data_ptr(), kinds.shape[0], count.data_ptr()
        several = _find(rows, kept, found, *asked, changed.data_ptr(), changed.shape[0])
        if several:
            activity, embedded = known
            width, active = embedded.shape[1], activity.shape[1]
            columns = activity.new_empty(several, COUNTED + active + width)
            recall = state.config.recall
            beside = activity.data_ptr(), active, embedded.data_ptr(), width, columns.data_ptr()
            spans = recall.fast, recall.slow
            _describe(rows, kept, stale.data_ptr(), several, count.data_ptr(), questions.time, version, *spans, *beside)
            try:
                self._value[stale[:several]] = weigh(columns).squeeze(1)
            except BaseException:
                self._seen[stale[:several]] = NEVER  # they are described, but what they are worth is not known
                raise
        return owner, other, self._features[slot], self._value[slot]

    def _reserve(self, slots: int) -> None:
        if self._seen.shape[0] < slots:
            self._seen = grown(self._seen, slots, NEVER)
            self._mark, self._features = grown(self._mark, slots), grown(self._features, slots)
            self._value = grown(self._value, slots)


@compiled
def _find(
    table: Table, kept: Kept, found: Found, asked: int, size: int, amounts: int, changes: int, entities: int
) -> int:
    """Fill `found`; returns how many slots are to be described, which are marked as they are now."""
    kinds, amount, changed = wide(asked), narrow(amounts), wide(changes)
    seen, mark, others, last = wide(kept.seen), narrow(kept.mark), narrow(table.other), narrow(table.last)
    owner, other, slots, stale = wide(found.owner), wide(found.other), wide(found.slot), wide(found.stale)
    at, several = 0, 0
    for q in range(size):
        kind = kinds[q]
        for i in range(narrow(table.fill)[kind]):
            slot = slot_of(narrow(table.pages), table.width, kind, i)
            entity, its = others[slot], slot * MARKS
            owner[at], other[at], slots[at] = q, entity, slot
            at += 1
            is_same = mark[its] == kind and mark[its + 1] == entity and mark[its + 2] == last[slot]
            is_known = seen[slot] != NEVER and is_same and mark[its + 3] == amount[slot]
            if is_known and (entity >= entities or changed[entity] <= seen[slot]):
                continue
            mark[its], mark[its + 1], mark[its + 2], mark[its + 3] = kind, entity, last[slot], amount[slot]
            seen[slot], stale[several] = NEVER, slot
            several += 1
    return several


@compiled
def _describe(
    table: Table,
    kept: Kept,
    stale: int,
    size: int,
    amounts: int,
    time: int,
    version: int,
    fast: float,
    slow: float,
    activities: int,
    active: int,
    embeddings: int,
    width: int,
    into: int,
) -> None:
    """Write what is known of slots, and rows with what else is known of their entities and relations."""
    slots, seen, mark, features = wide(stale), wide(kept.seen), narrow(kept.mark), floats(kept.features)
    last, amount, quickly, slowly = narrow(table.last), floats(amounts), floats(table.fast), floats(table.slow)
    activity, embedded, columns = floats(activities), floats(embeddings), floats(into)
    quick_span, slow_span = single(fast), single(slow)
    at = 0
    for i in range(size):
        slot = slots[i]
        seen[slot] = version
        mine, kind, entity = slot * COUNTED, mark[slot * MARKS], mark[slot * MARKS + 1]
        age = single(max(time - last[slot], 0))
        features[mine] = ONE
        features[mine + 1] = np.log1p(amount[slot])
        features[mine + 2] = np.log1p(quickly[slot] * np.exp(-age / quick_span))
        features[mine + 3] = np.log1p(slowly[slot] * np.exp(-age / slow_span))
        features[mine + 4] = ONE / (ONE + age)
        for column in range(COUNTED):
            columns[at + column] = features[mine + column]
        at += COUNTED
        for column in range(active):
            columns[at + column] = activity[entity * active + column]
        at += active
        for column in range(width):
            columns[at + column] = embedded[kind * width + column]
        at += width

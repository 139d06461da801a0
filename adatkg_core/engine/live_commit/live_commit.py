"""The facts of one tick taken into a state as they come, so that none of them is ever taken in twice.

What a commit writes belongs to rows: of entities, of relations, of groups and roles of names. When a further fact of
the tick comes, the few rows that it touches go back to where they were before the tick and take in all that the tick
has for them, at once, as a single commit of the whole tick would. So every row is bitwise what that commit makes of it,
however the facts arrived; only the numbers of new pages tell, and `settle` of the pending facts sees to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from adatkg_core.engine.live_commit.entity_rows import (
    count_entities,
    count_transitions,
    end_transitions,
    forget_entities,
    keep_entities,
    measure_rows,
    restore_entities,
)
from adatkg_core.engine.live_commit.layout import NOBODY, EntityRows, Followed, KeptEntities, Narrow, Single, Wide
from adatkg_core.engine.live_commit.live_memory import LiveMemory
from adatkg_core.engine.live_commit.live_table import LiveTable, left_after
from adatkg_core.evidence import shares_left
from adatkg_core.settings import Config, ModelConfig, RecallConfig
from adatkg_core.state import GraphState, Overwritten, both_sides

ABSENT: Single = np.empty(0, np.float32)
LONGEST = 100_000.0  # ticks that a count may take to fall; more would want too large a table of what is left


@dataclass(frozen=True)
class _Interactions:
    entity: Wide
    relation: Wide
    other: Wide
    rows: Wide  # the distinct entities


class LiveCommit:
    """Facts of a tick in a state on a CPU that has the recall head's tables; `undo` takes them out, bitwise."""

    def __init__(self, state: GraphState, memory: LiveMemory | None = None) -> None:
        """`memory` is there where the paper's model is switched on."""
        self._state, self._memory = state, memory
        self._tables = {name: LiveTable(state, table) for name, table in state.tables().items()}
        self._entities = _EntityKeeper(state)
        self._followed, self._places = _followed(2 * state.n_relations if state.keeps_evidence else 0), 0
        self.parts = 0  # in how many the tick's facts have come so far

    @classmethod
    def fits(cls, state: GraphState) -> bool:
        """Whether a state can be written so."""
        recall = state.config.recall
        return state.device.type == "cpu" and recall.enabled and max(recall.fast, recall.slow) <= LONGEST

    def take(self, facts: Tensor, time: int) -> None:
        """Further facts [n, 3] of the tick."""
        self.parts += 1
        self._state.tentative = self
        columns = both_sides(facts, self._state.n_relations)
        entity, relation, other = (column.numpy() for column in columns)
        some = _Interactions(entity, relation, other, np.unique(entity))
        entities = self._entities.restore(some.rows)
        if self._memory is not None:
            self._memory.take(*columns[:2], self._entities.places(), time)
        is_new = self._state.tensors["interactions"].numpy()[entity] < self._state.config.recall.cold_below
        nothing = np.zeros_like(relation)
        if self._state.keeps_evidence:
            self._take_evidence(some, nothing, time)
        self._tables["pair"].take(entity, relation, other, time)
        self._tables["relation"].take(relation, nothing, other, time)
        self._tables["newcomer"].take(relation[is_new], nothing[is_new], other[is_new], time)
        self._entities.count(entities, self._tables["pair"], some, facts.shape[0], time)

    def undo(self) -> None:
        """The state is bitwise what it was before the tick."""
        self._end(restore=True)

    def keep(self) -> None:
        """What was taken in stays."""
        self._state.note_changed("entity", torch.from_numpy(self._entities.written()))
        for name, table in self._tables.items():
            rows = self._state.layout[f"{name}_fill"].rows
            self._state.note_changed(name, torch.from_numpy(table.written_slots()))
            self._state.note_changed(rows, torch.from_numpy(table.written_rows()))
        self._end(restore=False)

    def overwritten(self) -> Iterator[Overwritten]:
        """What had been where the tick has written, for a copy of the state without it."""
        for table in self._tables.values():
            yield from table.overwritten()
        yield from self._entities.overwritten()
        if self._memory is not None:
            yield from self._memory.overwritten(self._entities.written())
        place = torch.from_numpy(self._followed.place[: self._places].copy())
        if self._places:
            before, now = place.unbind(1)
            yield "followed", (before, now), torch.from_numpy(self._followed.was)[before, now]

    def _take_evidence(self, some: _Interactions, nothing: Wide, time: int) -> None:
        get, tables = self._state.tensors, self._tables
        entity, relation, other = some.entity, some.relation, some.other
        tables["pair"].restore_rows(some.rows)
        pair, followed = tables["pair"].places()[0], get["followed"].numpy()
        self._places = count_transitions(pair, entity, relation, other, self._followed, followed, self._places)
        fill_before = get["partner_fill"].numpy()[some.rows].astype(np.int64)
        tables["partner"].take(entity, nothing, other, time)
        tables["fact"].take(relation, entity, other, time)
        left = shares_left(self._state.config.recall.slow, self._state.device).numpy()
        partner, lengths = tables["partner"], get["row_length"].numpy()
        measure_rows(partner.places()[0], lengths, some.rows, fill_before, time, left)
        group, role = get["group"].numpy(), get["role"].numpy()
        for name, kin in (("group_fact", group), ("role_fact", role)):
            belongs = kin[entity] >= 0
            tables[name].take(kin[entity[belongs]], relation[belongs], other[belongs], time)
        inside = (group[entity] >= 0) & (group[entity] == group[other])
        tables["inside"].take(relation[inside], role[entity[inside]], role[other[inside]], time)

    def _end(self, *, restore: bool) -> None:
        if self.parts and self._state.is_captured:
            self._state.note_overwritten(self.overwritten())
        self._state.tentative = None
        for table in self._tables.values():
            table.undo() if restore else table.keep()
        if self._memory is not None:
            self._memory.end(self._entities.written(), restore=restore)
        self._entities.end(restore=restore)
        if self._places:
            end_transitions(self._followed, self._state.tensors["followed"].numpy(), self._places, restore)
        self._places = self.parts = 0


class _EntityKeeper:
    """The rows of entities themselves."""

    def __init__(self, state: GraphState) -> None:
        self._state = state
        self._count = 0  # rows that are kept
        self._kept = _kept_entities(self.rows(), 0, 0)
        self._of_object = np.empty(0, np.int64)

    def rows(self) -> EntityRows:
        """The state's arrays, as long as its tensors do not grow."""
        get = self._state.tensors
        return EntityRows._make(get[name].numpy() if name in get else ABSENT for name in EntityRows._fields)

    def restore(self, rows: Wide) -> EntityRows:
        """Bring distinct rows back to before the tick; `count` must follow, with the arrays that are returned."""
        entities = self.rows()
        there, size = entities.interactions.size, self._count + rows.size
        if there > self._kept.place.size or size > self._kept.entity.size:
            before = self._kept
            self._kept = _kept_entities(entities, there, max(2 * before.entity.size, size, 64))
            self._kept.place[: before.place.size] = before.place
            self._kept.entity[: self._count] = before.entity[: self._count]
            for old, new in zip(before.was, self._kept.was, strict=True):
                new[: old.shape[0]] = old
        self._count = keep_entities(entities, self._kept, rows, self._count)
        return entities

    def count(self, entities: EntityRows, pair: LiveTable, some: _Interactions, facts: int, time: int) -> None:
        """Take in what the tick has for these rows; `pair` holds its interactions, the latest of them `some`."""
        self._of_object = np.concatenate((self._of_object, np.repeat(np.array((0, 1)), facts)))
        recall = self._state.config.recall
        fast, slow = left_after(recall.fast), left_after(recall.slow)
        count_entities(entities, pair.waiting, self._of_object, some.rows, time, fast, slow)

    def places(self) -> Narrow:
        """The number of each row that the tick has changed, from 0 on in the order of `written`."""
        return self._kept.place

    def written(self) -> Wide:
        """The rows that the tick has changed."""
        return self._kept.entity[: self._count].copy()

    def overwritten(self) -> Iterator[Overwritten]:
        """What had been where the tick has written; of rings, which are long, only the places."""
        before, now = self._kept.was, self.rows()
        rows, rings = self.written(), ("ring_relation", "ring_other", "ring_time")
        many = np.minimum(now.interactions[rows] - before.interactions[: rows.size], now.ring_time.shape[1])
        kept = np.repeat(np.arange(rows.size), many)
        since = np.arange(kept.size) - np.repeat(many.cumsum() - many, many)
        column = (before.interactions[kept] + since) % now.ring_time.shape[1]
        places = torch.from_numpy(rows[kept]), torch.from_numpy(column)
        for name, was in zip(EntityRows._fields, before, strict=True):
            if name in rings:
                yield name, places, torch.from_numpy(was[kept, column])
            elif was.size:
                yield name, torch.from_numpy(rows), torch.from_numpy(was[: rows.size].copy())

    def end(self, *, restore: bool) -> None:
        """Forget the tick; with `restore` it had never been."""
        if restore:
            restore_entities(self.rows(), self._kept, self._count)
        else:
            forget_entities(self._kept, self._count)
        self._count, self._of_object = 0, self._of_object[:0]


def _kept_entities(like: EntityRows, rows: int, size: int) -> KeptEntities:
    was = (np.empty((size if one.size else 0, *one.shape[1:]), one.dtype) for one in like)
    return KeptEntities(np.full(rows, NOBODY, np.int32), np.empty(size, np.int64), EntityRows._make(was))


def _followed(both: int) -> Followed:
    shape = (both, both)
    return Followed(np.zeros(shape, np.int32), np.empty(shape, np.float32), np.empty((both * both, 2), np.int64))


def prepare() -> None:
    """Have everything compiled, which takes seconds once on a machine, before anybody waits for it."""
    device = torch.device("cpu")
    state = GraphState(Config(ModelConfig(dim=8, memory="none", prior=False), RecallConfig(enabled=True)), 1, 1, device)
    state.reserve(2)
    live, fact = LiveCommit(state), torch.tensor([[0, 0, 1]], device=device)
    live.take(fact, 1)
    live.keep()
    live.take(fact, 2)  # which follows something, as the one before does not
    live.undo()

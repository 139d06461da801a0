"""What the paper's model writes while the facts of a tick come in: prototypes of clusters, memories of entities.

A chain looks only before the tick, so each interaction is encoded once, when it comes. Prototypes and the sums of
signals are added to; an entity's memory is always one step from where it was before the tick, by the mean of all its
signals so far. A tick that comes at once is bitwise the single commit, one that comes in parts is it but for rounding.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from adatkg_core.engine.commit import move_prototypes
from adatkg_core.engine.live_commit.layout import Narrow, Wide
from adatkg_core.model import AdaTKG
from adatkg_core.state import GraphState, Overwritten, group_sums, grown

PROTOTYPES = ("prototype_sum", "prototype_weight")


class LiveMemory:
    """Rows of entities are numbered by whoever keeps them, from 0 on in each tick."""

    def __init__(self, model: AdaTKG, state: GraphState) -> None:
        self._model, self._state = model, state
        self._relations: Tensor | None = None  # [2R, d] of the tick under way
        self._prototypes: dict[str, Tensor] = {}  # before the tick, once they have moved
        self._memories = _MemoryKeeper(model, state) if model.memory is not None else None

    @torch.no_grad()
    def take(self, entity: Tensor, relation: Tensor, place: Narrow, time: int) -> None:
        """Further interactions [I] of the tick; `place` [rows] numbers their entities, whose rings are as before it."""
        model = self._model
        if self._relations is None:
            self._relations = model.relations()
        encoding, nonempty = model.encode_chains(self._state, entity, relation, time, self._relations)
        if model.config.model.prior:
            self._move_prototypes(entity[nonempty], encoding[nonempty])
        if self._memories is not None:
            self._memories.take(entity, model.signal(encoding, relation, self._relations), place)

    def overwritten(self, rows: Wide) -> Iterator[Overwritten]:
        """What had been where the tick has written; `rows` are its entities in the order of their numbers."""
        for name, before in self._prototypes.items():
            yield name, slice(None), before
        if self._memories is not None:
            yield from self._memories.overwritten(torch.from_numpy(rows))

    def end(self, rows: Wide, *, restore: bool) -> None:
        """Forget the tick, whose entities `rows` are; with `restore` it had never been."""
        if restore:
            for name, index, before in self.overwritten(rows):
                self._state.tensors[name][index] = before
        self._relations, self._prototypes = None, {}
        if self._memories is not None:
            self._memories.forget()

    def _move_prototypes(self, entity: Tensor, encoding: Tensor) -> None:
        get, decay = self._state.tensors, 1.0  # what there was has faded when the tick began
        if not self._prototypes:
            self._prototypes = {name: get[name].clone() for name in PROTOTYPES}
            decay = self._model.config.model.prototype_decay
        for name, values in zip(PROTOTYPES, move_prototypes(self._state, entity, encoding, decay), strict=True):
            get[name].copy_(values)


class _MemoryKeeper:
    """Memories of entities before the tick, and the signals that it has for them so far."""

    def __init__(self, model: AdaTKG, state: GraphState) -> None:
        self._model, self._state = model, state
        self._count = 0  # entities of the tick
        self._memory = state.tensors["memory"][:0].clone()  # [U, …]
        self._updates = state.tensors["updates"][:0].clone()  # [U]
        self._total = self._memory.new_zeros(0, model.config.model.dim)  # [U, d]
        self._size = self._memory.new_zeros(0)  # [U]

    def take(self, entity: Tensor, signal: Tensor, place: Narrow) -> None:
        """Further signals [I, d]."""
        get = self._state.tensors
        rows, group = torch.unique(entity, return_inverse=True)
        at = torch.from_numpy(place[rows.numpy()]).long()  # [u]
        self._keep(rows[at >= self._count])
        total, size = group_sums(signal, group, rows.shape[0])
        self._total[at] += total
        self._size[at] += size
        updates = self._updates[at]
        mean = self._total[at] / self._size[at].unsqueeze(1)
        get["memory"][rows] = self._model.step_memory(self._state, rows, self._memory[at], updates, mean)
        get["updates"][rows] = updates + 1

    def overwritten(self, rows: Tensor) -> Iterator[Overwritten]:
        """What had been there; of `rows` [U], those that were kept."""
        rows = rows[: self._count]
        yield "memory", rows, self._memory[: self._count].clone()
        yield "updates", rows, self._updates[: self._count].clone()

    def forget(self) -> None:
        """The next tick begins."""
        self._count = 0

    def _keep(self, rows: Tensor) -> None:
        """Entities [n] that are new in the tick, in the order of their numbers."""
        start, end = self._count, self._count + rows.shape[0]
        self._memory, self._updates = grown(self._memory, end), grown(self._updates, end)
        self._total, self._size = grown(self._total, end), grown(self._size, end)
        self._memory[start:end] = self._state.tensors["memory"][rows]
        self._updates[start:end] = self._state.tensors["updates"][rows]
        self._total[start:end] = self._size[start:end] = 0
        self._count = end

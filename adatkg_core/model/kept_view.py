"""The view of all entities, kept from read to read and renewed where the state has changed."""

from __future__ import annotations

import torch
from torch import Tensor

from adatkg_core.model.adatkg import AdaTKG, View
from adatkg_core.model.kept_rows import Index, KeptRows
from adatkg_core.model.recall_view import RecallView
from adatkg_core.state import GraphState

# Rounding errors within which a prototype is the same: at each tick all of them fade, sums and weights alike. Rows are
# as of the prototypes that are kept, so what is let pass never adds up.
SAME = 4


class KeptView:
    """It belongs to certain parameters and to a state, of which it is told whose rows have changed.

    What else an entity's vector depends on is its cluster's prototype: which of those have moved it sees by itself.
    """

    def __init__(self, model: AdaTKG) -> None:
        self._model = model
        self._recalled = RecallView()
        self._rows = KeptRows()
        self._relations: Tensor | None = None  # [2R, d]
        self._prototypes: Tensor | None = None  # [K, d] those that the rows were computed with
        self._view: View | None = None

    def renew(self, state: GraphState, entities: Tensor) -> None:
        """The state has changed in the rows of these entities."""
        self._recalled.grow(state.entities)
        self._recalled.renew(entities)
        if self._model.config.model.enabled:
            self._rows.renew(entities)
            self._view = None

    def read(self, state: GraphState) -> View:
        """All entities as of the state."""
        if self._view is None or self._view.cluster.shape[0] != state.entities:
            self._recalled.grow(state.entities)
            self._view = self._read(state)
        return self._view

    def _read(self, state: GraphState) -> View:
        everyone = torch.arange(state.entities, device=state.device)
        if not self._model.config.model.enabled:
            return self._model.view(state, everyone, recalled=self._recalled)
        if self._relations is None:
            self._relations = self._model.relations()
        if self._model.config.model.prior:
            self._renew_members(state)

        def compute(rows: Index) -> tuple[Tensor, ...]:
            some = self._model.view(state, everyone[rows], vectors=self._relations)
            return some.fused, some.unit, some.gate, some.cluster

        fused, unit, gate, cluster = self._rows.get(state.entities, state.entities, compute)
        return View(fused, unit, gate, cluster, self._relations, fused.new_zeros(()), self._recalled)

    def _renew_members(self, state: GraphState) -> None:
        """Members of clusters whose prototypes have moved are stale."""
        prototypes = self._model.prototypes(state)
        if self._prototypes is None:
            self._prototypes = prototypes
            return
        before = self._prototypes
        moved = (prototypes - before).abs().amax(1) > SAME * torch.finfo(before.dtype).eps * before.abs().amax(1)
        self._rows.renew(moved[state.tensors["cluster"][: state.entities]].nonzero().squeeze(1))
        before[moved] = prototypes[moved]

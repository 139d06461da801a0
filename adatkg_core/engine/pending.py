"""The facts at the watermark: they wait beside the state, or stand in it by a commit that can be taken back."""

from __future__ import annotations

import torch
from torch import Tensor

from adatkg_core.engine.commit import commit_facts
from adatkg_core.model import AdaTKG
from adatkg_core.state import GraphState, grown


class PendingFacts:
    """Facts of one time in the order of the log; `include` and `exclude` say whether the state shows them."""

    def __init__(self, model: AdaTKG, state: GraphState, facts: Tensor) -> None:
        """`facts` [n, 3] are those that wait already, on the state's device."""
        self._model, self._state = model, state
        self._facts, self._count = grown(facts.clone(), 16), facts.shape[0]
        self._included = False

    def all(self) -> Tensor:
        """All of them, [n, 3], whether or not the state shows them."""
        return self._facts[: self._count]

    def outside(self) -> Tensor:
        """Those that are not part of the state as it stands, [n, 3]."""
        return self._facts[: 0 if self._included else self._count]

    def add(self, facts: Tensor) -> None:
        """More facts [n, 3] of the same time; the state must not show the earlier ones."""
        end = self._count + facts.shape[0]
        self._facts = grown(self._facts, end)
        self._facts[self._count : end] = facts
        self._count = end

    def include(self, time: int) -> bool:
        """Commit them as of `time`, so that it can be taken back; whether the state has changed."""
        if not self._count or self._included:
            return False
        self._state.begin()
        try:
            commit_facts(self._model, self._state, self.all(), time)
        except BaseException:
            self._state.rollback()
            raise
        self._included = True
        return True

    def exclude(self) -> bool:
        """Take the commit back, bitwise; whether the state has changed."""
        if not self._included:
            return False
        self._state.rollback()
        self._included = False
        return True

    def settle(self) -> None:
        """Their commit stays, and nothing is pending any more."""
        if self._included:
            self._state.keep()
        self._included, self._count = False, 0

    def move(self, device: torch.device) -> None:
        """Go where the state has gone."""
        self._facts = self._facts.to(device)

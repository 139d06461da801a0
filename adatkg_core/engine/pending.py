"""The facts at the watermark: they wait beside the state, or stand in it by a commit that can be taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from adatkg_core.engine.commit import commit_facts
from adatkg_core.model import AdaTKG
from adatkg_core.state import GraphState, grown

if TYPE_CHECKING:
    from adatkg_core.engine.live_commit import LiveCommit


class PendingFacts:
    """Facts of one time in the order of the log; `include` and `exclude` say whether the state shows them.

    Where a `LiveCommit` fits, facts that come after a read are added to those that the state shows already; else these
    are taken back first.
    """

    def __init__(self, model: AdaTKG, state: GraphState, facts: Tensor) -> None:
        """`facts` [n, 3] are those that wait already, on the state's device."""
        self._model, self._state = model, state
        self._facts, self._count = grown(facts.clone(), 16), facts.shape[0]
        self._included = 0
        self._time = 0  # as of which those were included
        self._live = _live_commit(model, state)

    @property
    def has_no_journal(self) -> bool:
        """Whether the state shows facts that nobody but `exclude` could take back."""
        return self._included > 0 and self._live is not None

    def all(self) -> Tensor:
        """All of them, [n, 3], whether or not the state shows them."""
        return self._facts[: self._count]

    def outside(self) -> Tensor:
        """Those that are not part of the state as it stands, [n, 3]."""
        return self._facts[self._included : self._count]

    def add(self, facts: Tensor) -> None:
        """More facts [n, 3] of the same time; the state does not show them yet."""
        end = self._count + facts.shape[0]
        self._facts = grown(self._facts, end)
        self._facts[self._count : end] = facts
        self._count = end

    def include(self, time: int) -> Tensor | None:
        """Commit them as of `time`, so that it can be taken back; the facts [n, 3] that this adds to the state."""
        outside = self.outside()
        if outside.shape[0] == 0:
            return None
        self._time = time
        if self._live is not None:
            self._take_live(self._live, outside)
        else:
            self._commit_anew()
        self._included = self._count
        return outside

    def exclude(self) -> Tensor | None:
        """Take the commit back, bitwise; the facts [n, 3] that the state no longer shows."""
        if not self._included:
            return None
        if self._live is not None:
            self._live.undo()
        else:
            self._state.rollback()
        taken_back, self._included = self._facts[: self._included], 0
        return taken_back

    def settle(self) -> Tensor | None:
        """Their commit stays, bitwise that of all of them at once, and nothing is pending any more; the facts [n, 3]
        that were therefore taken in once more, which may have changed what the state shows by rounding."""
        again = None
        if self._included and self._live is not None:
            if self._live.parts > 1:
                again = self._facts[: self._included]
                self._live.undo()
                self._take_live(self._live, again)
            self._live.keep()
        elif self._included:
            self._state.keep()
        self._included = self._count = 0
        return again

    def move(self, device: torch.device) -> None:
        """Go where the state has gone."""
        self._facts = self._facts.to(device)
        self._live = _live_commit(self._model, self._state)

    def _take_live(self, live: LiveCommit, facts: Tensor) -> None:
        try:
            live.take(facts, self._time)
        except BaseException:
            live.undo()
            self._included = 0
            raise

    def _commit_anew(self) -> None:
        self.exclude()
        self._state.begin()
        try:
            commit_facts(self._model, self._state, self.all(), self._time)
        except BaseException:
            self._state.rollback()
            raise


def _live_commit(model: AdaTKG, state: GraphState) -> LiveCommit | None:
    if model.recall is None or state.device.type != "cpu":
        return None
    from adatkg_core.engine.live_commit import LiveCommit, LiveMemory  # not at the top: numba takes half a second

    memory = LiveMemory(model, state) if model.config.model.enabled else None
    return LiveCommit(state, memory) if LiveCommit.fits(state) else None

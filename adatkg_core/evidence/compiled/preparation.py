"""Compiling all of it."""

from __future__ import annotations

import torch

from adatkg_core.evidence.compiled.activity import activity_features
from adatkg_core.evidence.compiled.alike import alike_sums
from adatkg_core.evidence.compiled.far_end import KeptFarEnd
from adatkg_core.evidence.compiled.gather import gather
from adatkg_core.evidence.compiled.own_features import COUNTED, own_features
from adatkg_core.evidence.compiled.recurrence import count_recurrence
from adatkg_core.evidence.own_sources import Neighbours, OwnSources
from adatkg_core.evidence.questions import Questions
from adatkg_core.settings import Config, ModelConfig, RecallConfig
from adatkg_core.state import GraphState

_CPU = torch.device("cpu")


def prepare() -> None:
    """Have everything compiled, which takes seconds once on a machine, before anybody waits for it."""
    state = GraphState(Config(ModelConfig(dim=8, memory="none", prior=False), RecallConfig(enabled=True)), 1, 1, _CPU)
    state.reserve(1)
    nobody, one = torch.zeros(1, dtype=torch.int64, device=_CPU), torch.zeros(2, 2, device=_CPU)
    questions = Questions.of(nobody, nobody, 0, 1)
    place, entry, wider = gather(state, questions, 1)
    far = nobody[:0], nobody[:0], one.new_zeros(0, COUNTED)
    known = OwnSources(one, one.view(1, 2, 2), one[:1], one[:1], far, one[:1], one[0, :1])
    own_features(state, questions, place, entry, wider, known)
    activity_features(state, nobody, 0)
    alike_sums(state, Neighbours(nobody.view(1, 1), one[:1, :1], nobody, nobody, one, one.view(1, 2, 2)), 0, 1)
    count_recurrence(state, nobody, nobody, 0, 1, 1.0, 1.0)
    # A relation without a past has nothing to describe, so one slot is counted first.
    state.relation_table.add(state, nobody, nobody, nobody, 0)
    changes = nobody[:0], 0
    KeptFarEnd().read(state, "relation", questions, lambda known: known[:, :1], (one[:1], one), changes)

"""Compiled code, which knows no gradients, scores as tensor operations do, which can be learned through."""

from __future__ import annotations

import pytest
import torch

from adatkg_core.model.recall_view import RecallView
from tests.support.small_graph import engine_with_past


@pytest.mark.parametrize("name", ["default", "no-evidence", "groups", "recall-alone"])
@pytest.mark.parametrize("later", [1, 4, 5_000])
def test_a_score_is_the_same_with_and_without_a_gradient(name: str, later: int) -> None:
    engine = engine_with_past(name)
    time = int(engine.watermark or 0) + later
    engine.turn_to(time)
    n, relations = engine.state.entities, 2 * len(engine.relations)
    subject = torch.arange(n).repeat_interleave(relations)
    relation = torch.arange(relations).repeat(n)
    recall = engine.model.recall
    assert recall is not None
    with torch.enable_grad():
        learned = recall(engine.state, RecallView(n), subject, relation, time, n)
    with torch.no_grad():
        answered = recall(engine.state, RecallView(n), subject, relation, time, n)
    assert learned.requires_grad and not answered.requires_grad
    assert torch.allclose(answered, learned.detach(), atol=1e-5)

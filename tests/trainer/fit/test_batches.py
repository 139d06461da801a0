"""Who is asked about as a stranger in training, and what a stranger has of the entity it stands for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from adatkg_core.settings import TrainConfig
from adatkg_core.state import NAME_TENSORS, GraphState
from tests.support.evidence_history import EVERY_QUERY, NAMES, Commit, Happened, commits, empty_state, remember
from tests.support.small_graph import small_config
from trainer.fit.batches import with_strangers

quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
IDS = torch.arange(len(NAMES))
QUERIES = [(s, r) for s, r in EVERY_QUERY if s < len(NAMES)]


def settings_with(**changes: Any) -> TrainConfig:
    wanted = {"strangers": 1.0, "strangers_below": 1_000, **changes}
    return small_config({f"train.{name}": value for name, value in wanted.items()}).train


def asked_as(state: GraphState, queries: list[tuple[int, int]], **changes: Any) -> tuple[Tensor, Tensor]:
    subject, relation = torch.tensor(queries).unbind(1)
    return with_strangers(state, subject, relation, IDS, settings_with(**changes))


def did(past: list[Happened], s: int, r: int) -> bool:
    return any((one.entity, one.relation) == (s, r) for one in past)


@quick
@given(story=commits(4), queries=st.lists(st.sampled_from(QUERIES), min_size=1, max_size=30))
def test_exactly_those_who_did_nothing_under_the_relation_asked_are_strangers(
    story: list[Commit], queries: list[tuple[int, int]]
) -> None:
    history = remember(story)
    subject, everyone = asked_as(history.state, queries)
    strange = [row >= len(NAMES) for row in subject.tolist()]
    assert strange == [not did(history.past, s, r) for s, r in queries]
    assert [row for row, is_new in zip(subject.tolist(), strange, strict=True) if not is_new] == [
        s for (s, _), is_new in zip(queries, strange, strict=True) if not is_new
    ]
    assert everyone.tolist() == [*range(len(NAMES)), *(row for row in subject.tolist() if row >= len(NAMES))]


@quick
@given(story=commits(4), below=st.integers(0, 12))
def test_nobody_with_more_interactions_is_a_stranger(story: list[Commit], below: int) -> None:
    history = remember(story)
    interactions = [sum(one.entity == s for one in history.past) for s in range(len(NAMES))]
    subject, _ = asked_as(history.state, QUERIES, strangers_below=below)
    for (s, r), row in zip(QUERIES, subject.tolist(), strict=True):
        assert (row >= len(NAMES)) == (interactions[s] < below and not did(history.past, s, r))


def test_a_strangers_row_has_the_name_of_its_subject_with_group_and_role_and_no_past() -> None:
    history = remember([(1, [(0, 0, 1), (3, 1, 4), (6, 2, 5)])])
    state = history.state
    state.tensors["text"][: len(NAMES)] = torch.arange(4.0 * len(NAMES)).view(-1, 4)
    state.tensors["cluster"][: len(NAMES)] = torch.arange(len(NAMES)) % 4
    queries = [(0, 1), (0, 2), (1, 0), (6, 0), (8, 0), (3, 1)]
    subject, _ = asked_as(state, queries)
    rows = subject[subject >= len(NAMES)]
    whose = torch.tensor([0, 0, 1, 6, 8])
    assert len(set(rows.tolist())) == len(rows) == 5
    for name in NAME_TENSORS:
        assert torch.equal(state.tensors[name][rows], state.tensors[name][whose]), name
    for name in ("interactions", "row_length", "pair_fill", "partner_fill"):
        assert bool((state.tensors[name][rows] == 0).all()), name
    assert state.entities == len(NAMES), "nobody is registered"


def test_a_share_of_the_young_are_strangers_by_chance() -> None:
    state = empty_state()
    torch.manual_seed(3)
    subject, _ = asked_as(state, QUERIES * 20, strangers=0.25)
    assert 0.2 < float((subject >= len(NAMES)).float().mean()) < 0.3


@pytest.mark.parametrize("changes", [{"strangers": 0.0}, {"protocol": "snapshot"}])
def test_without_strangers_everybody_is_asked_about_as_who_it_is(changes: dict[str, Any]) -> None:
    state = empty_state()
    subject, everyone = asked_as(state, QUERIES, **changes)
    assert subject.tolist() == [s for s, _ in QUERIES]
    assert everyone is IDS


def test_a_state_without_tables_or_evidence_has_strangers_too() -> None:
    for changes in ({"recall.enabled": False}, {"recall.evidence": False}):
        config = small_config(changes)
        state = GraphState(config, 4, 3, torch.device("cpu"))
        state.reserve(len(NAMES))
        state.entities = len(NAMES)
        subject, _ = asked_as(state, [(0, 0), (1, 2)])
        assert subject.tolist() == [len(NAMES), len(NAMES) + 1]

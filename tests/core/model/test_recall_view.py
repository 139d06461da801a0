"""What the recall head keeps of a state between two commits changes no score, and is read once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from adatkg_core.engine import Engine
from adatkg_core.events import Fact
from adatkg_core.model.kept_rows import Index, KeptRows
from adatkg_core.model.recall_view import RecallView
from tests.support.small_graph import engine_with_past


@contextmanager
def described(engine: Engine) -> Iterator[list[int]]:
    """How many slots of the far ends are described at each read while this lasts."""
    assert engine.model.recall is not None
    sizes: list[int] = []
    hook = engine.model.recall.base.register_forward_pre_hook(lambda _, known: sizes.append(known[0].shape[0]))
    try:
        yield sizes
    finally:
        hook.remove()


def test_each_relation_is_read_once_as_of_a_time() -> None:
    engine = engine_with_past("recall-alone")
    now = int(engine.watermark or 0) + 1
    engine.turn_to(now)
    fill = engine.state.tensors["relation_fill"]
    with described(engine) as sizes:
        for relations in ([1, 3], [3], [2, 3, 4], [4, 1]):
            scores_of(engine, [0] * len(relations), relations, now)
        assert sizes == [int(fill[[1, 3]].sum()), int(fill[[2, 4]].sum())]
        scores_of(engine, [0], [3], now + 1)
    assert sizes[2:] == [int(fill[3])]


def test_after_a_fact_only_what_it_changed_is_described_again() -> None:
    engine = engine_with_past("recall-alone")
    now, names = int(engine.watermark or 0) + 1, engine.catalog.names
    engine.advance(now)
    relations = list(range(2 * len(engine.relations)))
    scores_of(engine, [0] * len(relations), relations, now + 1)
    with described(engine) as sizes:
        engine.observe([Fact(names[1], next(iter(engine.relations)), names[5], now)])
        found = scores_of(engine, [0] * len(relations), relations, now + 1)
    slots = engine.state.relation_table.slots(engine.state, torch.tensor(relations))[1]
    changed = torch.isin(engine.state.tensors["relation_other"][slots], torch.tensor([1, 5]))
    assert sizes == [int(changed.sum())] and not bool(changed.all())
    engine.read_anew()
    assert torch.allclose(scores_of(engine, [0] * len(relations), relations, now + 1), found, atol=1e-6)


def test_a_commit_that_is_taken_back_leaves_nothing_of_it_in_what_was_read() -> None:
    engine = engine_with_past("recall-alone")
    now, names = int(engine.watermark or 0) + 1, engine.catalog.names
    engine.advance(now)
    relations = list(range(2 * len(engine.relations)))
    before = scores_of(engine, [1] * len(relations), relations, now)
    engine.observe([Fact(names[1], next(iter(engine.relations)), names[5], now)])
    assert not torch.allclose(scores_of(engine, [1] * len(relations), relations, now + 1), before, atol=1e-6)
    assert torch.allclose(scores_of(engine, [1] * len(relations), relations, now), before, atol=1e-6)


def test_rows_are_computed_when_first_wanted_when_stale_and_when_they_belong_to_strangers() -> None:
    computed: list[list[int]] = []
    everyone, values = torch.arange(20), torch.arange(20.0)

    def compute(rows: Index) -> tuple[Tensor]:
        computed.append(everyone[rows].tolist())
        return (values[rows].clone(),)

    kept = KeptRows()
    assert torch.equal(kept.get(3, 5, compute)[0], values[:5])
    values[1] = values[4] = 50.0
    kept.renew(torch.tensor([1]))
    assert torch.equal(kept.get(4, 6, compute)[0], values[:6])
    assert torch.equal(kept.get(4, 4, compute)[0], values[:4])
    assert computed == [[0, 1, 2, 3, 4], [3, 4, 5], [1]]


def test_rows_that_are_stale_for_long_without_a_question_are_not_listed_for_ever() -> None:
    computed: list[Index] = []

    def compute(rows: Index) -> tuple[Tensor]:
        computed.append(rows)
        return (torch.arange(20.0)[rows].clone(),)

    kept = KeptRows()
    kept.get(5, 5, compute)
    for _ in range(6):
        kept.renew(torch.tensor([1]))
    assert torch.equal(kept.get(5, 5, compute)[0], torch.arange(5.0))
    assert computed == [slice(0, 5), slice(0, 5)]


def test_names_of_strangers_are_projected_each_time() -> None:
    view, text, projected = RecallView(4), torch.arange(12.0).view(6, 2), []

    def project(names: Tensor) -> Tensor:
        projected.append(names.shape[0])
        return names * 2

    for n in (6, 4, 5, 4):
        strangers = text[:n] + (torch.arange(n) >= 4).unsqueeze(1) * n
        with torch.no_grad():
            assert torch.equal(view.names(strangers, project), strangers * 2)
    assert projected == [6, 1]


def scores_of(engine: Engine, subject: list[int], relation: list[int], time: int) -> Tensor:
    rows = engine.score_rows(torch.tensor(subject), torch.tensor(relation), time)
    return torch.cat([scores for _, scores in rows])


def test_a_score_does_not_depend_on_what_was_asked_before() -> None:
    asked = ([0, 1, 2, 3, 4], [0, 1, 2, 3, 0])
    fresh, used = engine_with_past(), engine_with_past()
    now = int(fresh.watermark or 0) + 1
    for time in (now, now + 9, now):
        scores_of(used, [5], [3], time)
        scores_of(used, [6, 2], [0, 3], time)
    expected = scores_of(fresh, *asked, now)
    assert torch.allclose(scores_of(used, *asked, now), expected, atol=1e-6)
    names = fresh.catalog.names
    for engine in (fresh, used):
        engine.observe([Fact(names[1], next(iter(engine.relations)), names[5], now)])
    again = scores_of(fresh, *asked, now + 1)
    assert torch.allclose(scores_of(used, *asked, now + 1), again, atol=1e-6)
    assert not torch.allclose(again, expected, atol=1e-6)

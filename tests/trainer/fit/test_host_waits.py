"""How often a GPU would be waited for does not depend on how much there is to compute."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch

from adatkg_core.datasets import Dataset, facts_by_time, synthesize
from adatkg_core.engine import Engine, commit_facts
from adatkg_core.events import Query
from adatkg_core.metrics import TimeFilter
from adatkg_core.model import AdaTKG
from adatkg_core.state import both_sides
from adatkg_core.text import text_of
from adatkg_core.text.encoder import HashEncoder
from tests.support.host_waits import counted_waits
from tests.support.small_graph import small_config
from trainer.fit.batches import other_answers, with_strangers
from trainer.fit.objective import enter, objective

ENCODER = HashEncoder(24)
KINDS: dict[str, dict[str, Any]] = {
    "live": {"model.enabled": False},
    "full": {},
}


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The evidence is gathered by tensor operations, as on every device but a CPU."""
    from adatkg_core.evidence import all_families

    monkeypatch.setattr("adatkg_core.model.own_rows.gather_evidence", all_families.gather_by_planes)
    for module in ("own_rows", "recall_head"):
        monkeypatch.setattr(f"adatkg_core.model.{module}.is_compiled", lambda state: False)


def engine_after(dataset: Dataset, changes: dict[str, Any]) -> Engine:
    """An engine that has seen all but the last time."""
    torch.manual_seed(1)
    relations = ENCODER.encode([text_of(name) for name in dataset.relations])
    model = AdaTKG(small_config(changes), relations, dataset.n_entities).eval()
    engine = Engine(model, dataset.relations, ENCODER, entities=dataset.entities)
    last = int(dataset.facts[-1, 3])
    engine.observe_rows(torch.from_numpy(dataset.facts[dataset.facts[:, 3] < last]))
    engine.turn_to(last)
    return engine


def waits_of_a_step(entities: int, batch: int, changes: dict[str, Any]) -> Counter[str]:
    """One step of training: a batch, its loss, its gradient."""
    dataset = synthesize(entities, 5, 16, 12, seed=3)
    engine = engine_after(dataset, changes)
    model, state, settings = engine.model, engine.state, engine.model.config.train
    time = int(dataset.facts[-1, 3])
    known = TimeFilter(dataset.facts, dataset.n_relations)
    rows = torch.from_numpy(dataset.facts[-batch:, :3].copy())
    subject, relation, answer = both_sides(rows, dataset.n_relations)
    enter(model, "together")
    model.view(state, torch.arange(entities))  # the codebook begins
    with counted_waits() as found:
        exclude = other_answers(known, subject, relation, answer, time)
        asked_as, everyone = with_strangers(state, subject, relation, torch.arange(entities), settings)
        view = model.view(state, everyone)
        scores = model.score(state, view, asked_as, relation, time).among(entities)
        objective(scores, answer, exclude, "together", settings).backward()  # type: ignore[no-untyped-call]
    return found


def waits_of_a_commit(entities: int, count: int, changes: dict[str, Any]) -> Counter[str]:
    dataset = synthesize(entities, 5, 16, 12, seed=3)
    engine = engine_after(dataset, changes)
    *_, (time, rows) = facts_by_time(dataset.facts)
    with counted_waits() as found:
        commit_facts(engine.model, engine.state, torch.from_numpy(rows[:count, :3].copy()), time)
    return found


def waits_of_a_prediction(entities: int, count: int, changes: dict[str, Any]) -> Counter[str]:
    dataset = synthesize(entities, 5, 16, 12, seed=3)
    engine = engine_after(dataset, changes)
    last = dataset.facts[-1]
    name, time = dataset.relations[int(last[1])], int(last[3])
    queries = [Query(s=dataset.entities[int(s)], r=name, t=time) for s in dataset.facts[-count:, 0]]
    with counted_waits() as found:
        engine.predict(queries)
    return found


# What docs/how-to/gpu.md says, with some room: more is a loop over what should be one operation.
MOST = {
    "live": {"step": 100, "prediction": 100, "commit": 220},
    "full": {"step": 115, "prediction": 110, "commit": 230},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_waits_as_often_for_many_queries_and_entities_as_for_few(kind: str) -> None:
    few, batch, graph = (waits_of_a_step(*size, KINDS[kind]) for size in ((40, 4), (40, 12), (160, 4)))
    assert few == batch == graph
    assert 0 < few.total() <= MOST[kind]["step"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_prediction_waits_as_often_for_many_queries_and_entities_as_for_few(kind: str) -> None:
    few, batch, graph = (waits_of_a_prediction(*size, KINDS[kind]) for size in ((40, 4), (40, 12), (160, 4)))
    assert few == batch == graph
    assert 0 < few.total() <= MOST[kind]["prediction"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_waits_as_often_in_a_large_graph_as_in_a_small_one(kind: str) -> None:
    assert waits_of_a_commit(40, 12, KINDS[kind]) == waits_of_a_commit(160, 12, KINDS[kind])
    assert 0 < waits_of_a_commit(40, 12, KINDS[kind]).total() <= MOST[kind]["commit"]


def test_what_makes_the_host_wait_is_counted() -> None:
    values = torch.arange(6)
    with counted_waits() as found:
        values[values > 2].tolist()
        values.index_select(0, values.nonzero().squeeze(1))
        bool(values.sum() > 3)
        torch.repeat_interleave(values, output_size=15)
        (values * 2).cumsum(0)
    assert found == {"index by mask": 1, "tolist": 1, "nonzero": 1, "_local_scalar_dense": 1}

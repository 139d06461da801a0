"""The two ways to measure a model: each query alone in the stream, or a snapshot's queries together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from adatkg_core.datasets import Dataset, Split, facts_by_time
from adatkg_core.engine import CHUNK, Engine
from adatkg_core.errors import InputError
from adatkg_core.metrics import MetricSums, Ranks, SliceIndex, TimeFilter, rank_targets
from adatkg_core.model import Recurrency, score_snapshot
from adatkg_core.settings import Protocol
from adatkg_core.state import both_sides

Results = dict[str, dict[str, float | None]]


@dataclass(frozen=True)
class Asked:
    """The queries of one time, both directions, their answers, and how they were ranked."""

    time: int
    subject: Tensor  # [B]
    relation: Tensor  # [B]
    answer: Tensor  # [B]
    ranks: Ranks  # [B]
    baseline: Ranks | None  # [B] by the recurrency heuristic
    interactions: Tensor  # [B, 2] of subject and answer, before the query
    gate: Tensor  # [B] mean gate of the subject, before the query
    slices: dict[str, Tensor]  # [B] each, which of the queries belong to it


def measure(
    engine: Engine,
    dataset: Dataset,
    split: Split,
    protocol: Protocol = "streaming",
    progress: Callable[[int], None] = lambda _: None,
    *,
    baseline: bool = True,
) -> Iterator[Asked]:
    """Replay an `aligned` data set through a fresh engine and rank the queries of the split.

    `streaming`: each query alone, memory strictly before its time, filtered by time. `snapshot`: the queries of a
    time and direction together, raw ranks. With `baseline`, the recurrency heuristic ranks them too.
    """
    questions = dataset.split(split)
    if not len(questions):
        raise InputError(f"data set {dataset.name}: its {split} split is empty; it needs facts at more times")
    first, last = int(questions[0, 3]), int(questions[-1, 3])
    known = TimeFilter(dataset.facts, dataset.n_relations, engine.device)
    index = SliceIndex(dataset.facts, dataset.split("train"), dataset.n_entities, engine.device)
    heuristic = Recurrency(dataset.n_relations, engine.device) if baseline else None
    for time, rows in facts_by_time(dataset.facts):
        if time > last:
            return
        facts = torch.from_numpy(rows).to(engine.device)
        if time >= first:
            asked = both_sides(facts[:, :3], dataset.n_relations)
            slices = index.masks(asked[0], asked[2], torch.full_like(asked[0], time))
            yield _ask(engine, heuristic, known, asked, time, protocol, slices)
            progress(2 * len(facts))
        engine.observe_rows(facts)
        if heuristic is not None:
            heuristic.observe(facts[:, :3], time)


def summarize(asked: Iterable[Asked]) -> tuple[Results, Results]:
    """Metrics per slice of the model and of the recurrency heuristic."""
    model, heuristic = MetricSums(), MetricSums()
    for one in asked:
        model.add(one.ranks, one.slices)
        if one.baseline is not None:
            heuristic.add(one.baseline, one.slices)
    return model.result(), heuristic.result()


def _ask(
    engine: Engine,
    heuristic: Recurrency | None,
    known: TimeFilter,
    asked: tuple[Tensor, Tensor, Tensor],
    time: int,
    protocol: Protocol,
    slices: dict[str, Tensor],
) -> Asked:
    subject, relation, answer = asked
    visible = engine.turn_to(time)
    counts = engine.state.tensors["interactions"]
    ranks, baseline = [], []
    parts = engine.score_rows(subject, relation, time) if protocol == "streaming" else _together(engine, asked, time)
    for part, scores in parts:
        exclude = None
        if protocol == "streaming":
            exclude = known.exclusions(subject[part], relation[part], torch.full_like(subject[part], time))
        ranks.append(rank_targets(scores, answer[part], exclude))
        if heuristic is not None:
            simple = heuristic.score(subject[part], relation[part], time, visible)
            baseline.append(rank_targets(simple, answer[part], exclude))
    interactions = torch.stack((counts[subject], counts[answer]), 1)
    return Asked(
        time,
        subject,
        relation,
        answer,
        _joined(ranks),
        _joined(baseline) if baseline else None,
        interactions,
        engine.gates(time)[subject],
        slices,
    )


@torch.no_grad()
def _together(engine: Engine, asked: tuple[Tensor, Tensor, Tensor], time: int) -> Iterator[tuple[slice, Tensor]]:
    """Scores of each direction's queries together, handed out in chunks."""
    subject, relation, _ = asked
    ids = torch.arange(engine.turn_to(time), device=engine.device)
    half = subject.shape[0] // 2
    for start in (0, half):
        side = slice(start, start + half)
        scores, _ = score_snapshot(engine.model, engine.state, ids, subject[side], relation[side], time)
        for begin in range(0, half, CHUNK):
            end = min(begin + CHUNK, half)
            yield slice(start + begin, start + end), scores[begin:end]


def _joined(ranks: list[Ranks]) -> Ranks:
    return Ranks(torch.cat([r.optimistic for r in ranks]), torch.cat([r.pessimistic for r in ranks]))

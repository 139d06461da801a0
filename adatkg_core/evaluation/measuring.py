"""The two ways to measure a model: each query alone in the stream, or a snapshot's queries together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from adatkg_core.datasets import Dataset, Split, facts_by_time
from adatkg_core.engine import CHUNK, Engine
from adatkg_core.errors import InputError
from adatkg_core.metrics import Ranks, SliceIndex, TimeFilter, rank_targets
from adatkg_core.model import Recurrency, score_snapshot
from adatkg_core.runtime import ScatteredMemory
from adatkg_core.settings import Protocol
from adatkg_core.state import both_sides

Candidates = Literal["all", "causal"]


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


@dataclass(frozen=True)
class _Questions:
    """The queries of one time as they are asked."""

    time: int
    subject: Tensor  # [B]
    relation: Tensor  # [B]
    answer: Tensor  # [B]
    strangers: tuple[str, ...]  # names that the catalog lacks, for the rows behind it
    hidden: Tensor  # [H] rows that are no candidates


def measure(
    engine: Engine,
    dataset: Dataset,
    split: Split,
    protocol: Protocol = "streaming",
    progress: Callable[[int], None] = lambda _: None,
    *,
    baseline: bool = True,
    candidates: Candidates = "all",
    takes: Callable[[int], bool] = lambda _: True,
) -> Iterator[Asked]:
    """Replay an `aligned` data set through a fresh engine and rank the queries of the split.

    `streaming`: each query alone, memory strictly before its time, filtered by time. `snapshot`: the queries of a
    time and direction together, raw ranks. With `baseline`, the recurrency heuristic ranks them too. Candidates are
    all that the engine was made with and whoever came since; `causal` leaves out those in no fact before the query.
    `takes` says at which of the split's times, numbered from 0, queries are asked: what one of several processes does.
    An entity that the engine lacks enters with its first fact, in the order of the data set's numbers. While a time's
    queries are in the caller's hand, the engine stands strictly before it.
    """
    questions = dataset.split(split)
    if not len(questions):
        raise InputError(f"data set {dataset.name}: its {split} split is empty; it needs facts at more times")
    first, last = int(questions[0, 3]), int(questions[-1, 3])
    known = TimeFilter(dataset.facts, dataset.n_relations, engine.device)
    index = SliceIndex(dataset.facts, dataset.split("train"), dataset.n_entities, engine.device)
    heuristic = Recurrency(dataset.n_relations, engine.device) if baseline else None
    number, memory = -1, ScatteredMemory()
    for time, rows in facts_by_time(dataset.facts):
        if time > last:
            return
        number += time >= first
        facts = torch.from_numpy(rows).to(engine.device)
        present = len(engine.catalog)
        newcomers = dataset.entities[present : int(rows[:, [0, 2]].max()) + 1]
        if time >= first and takes(number):
            asked = both_sides(facts[:, :3], dataset.n_relations)
            slices = index.masks(asked[0], asked[2], torch.full_like(asked[0], time))
            unseen = (index.first_seen[: present + len(newcomers)] >= time).nonzero().squeeze(1)
            hidden = unseen if candidates == "causal" else unseen[:0]
            yield _ask(engine, heuristic, known, _Questions(time, *asked, newcomers, hidden), protocol, slices)
        if time >= first:
            progress(2 * len(facts))
        engine.register(newcomers)
        engine.observe_rows(facts, present)
        memory.give_back()
        if heuristic is not None:
            heuristic.observe(facts[:, :3], time)


def _ask(
    engine: Engine,
    heuristic: Recurrency | None,
    known: TimeFilter,
    asked: _Questions,
    protocol: Protocol,
    slices: dict[str, Tensor],
) -> Asked:
    time, subject, relation, answer = asked.time, asked.subject, asked.relation, asked.answer
    ranks, baseline = [], []
    if protocol == "streaming":
        parts = engine.score_rows(subject, relation, time, asked.strangers)
    else:
        parts = _together(engine, asked)
    for part, scores in parts:
        exclude = _pairs(part, asked.hidden)
        if protocol == "streaming":
            others = known.exclusions(subject[part], relation[part], torch.full_like(subject[part], time))
            exclude = torch.cat((others, exclude))
        ranks.append(rank_targets(scores, answer[part], exclude))
        if heuristic is not None:
            simple = heuristic.score(subject[part], relation[part], time, scores.shape[1])
            baseline.append(rank_targets(simple, answer[part], exclude))
    # Who is not in the catalog has neither interactions nor a gate.
    behind = (0, len(asked.strangers))
    counts = F.pad(engine.state.tensors["interactions"][: len(engine.catalog)], behind)
    return Asked(
        time,
        subject,
        relation,
        answer,
        _joined(ranks),
        _joined(baseline) if baseline else None,
        torch.stack((counts[subject], counts[answer]), 1),
        F.pad(engine.gates(time), behind)[subject],
        slices,
    )


@torch.no_grad()
def _together(engine: Engine, asked: _Questions) -> Iterator[tuple[slice, Tensor]]:
    """Scores of each direction's queries together, handed out in chunks."""
    with engine.rows_for(asked.strangers):
        ids = torch.arange(engine.turn_to(asked.time) + len(asked.strangers), device=engine.device)
        half = asked.subject.shape[0] // 2
        for start in (0, half):
            subject, relation = asked.subject[start : start + half], asked.relation[start : start + half]
            scores = score_snapshot(engine.model, engine.state, ids, subject, relation, asked.time)
            for begin in range(0, half, CHUNK):
                end = min(begin + CHUNK, half)
                yield slice(start + begin, start + end), scores[begin:end]


def _pairs(part: slice, hidden: Tensor) -> Tensor:
    """Each query of a part, by its row there, with each hidden candidate: [P, 2]."""
    return torch.cartesian_prod(torch.arange(part.stop - part.start, device=hidden.device), hidden)


def _joined(ranks: list[Ranks]) -> Ranks:
    return Ranks(torch.cat([r.optimistic for r in ranks]), torch.cat([r.pessimistic for r in ranks]))

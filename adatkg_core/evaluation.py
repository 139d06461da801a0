"""The two ways to measure a model: each query alone in the stream, or a snapshot's queries together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from adatkg_core.commit import both_sides
from adatkg_core.datasets import Dataset, Split
from adatkg_core.engine import Engine
from adatkg_core.ranking import MetricSums, Ranks, SliceIndex, TimeFilter, rank_targets

Results = dict[str, dict[str, float | int | None]]


@dataclass(frozen=True)
class Asked:
    """Queries of one time with their answers, both directions, and how the model ranked them."""

    time: int
    subject: Tensor  # [B]
    relation: Tensor  # [B]
    answer: Tensor  # [B]
    ranks: Ranks  # [B]


def facts_by_time(facts: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(time, rows [n, 4]) for facts sorted by time."""
    times, starts = np.unique(facts[:, 3], return_index=True)
    for time, rows in zip(times.tolist(), np.split(facts, starts[1:]), strict=True):
        yield time, rows


def streaming_ranks(
    engine: Engine, dataset: Dataset, split: Split, progress: Callable[[int], None] = lambda _: None
) -> Iterator[Asked]:
    """Replay the data set and rank each query of the split from memory strictly before its time, filtered."""
    first = int(dataset.split(split)[0, 3])
    last = int(dataset.split(split)[-1, 3])
    known = TimeFilter(dataset.facts, dataset.n_relations)
    for time, rows in facts_by_time(dataset.facts):
        if time > last:
            break
        facts = torch.from_numpy(rows).to(engine.device)
        if time >= first:
            subject, relation, answer = both_sides(facts[:, :3], dataset.n_relations)
            exclude = known.exclusions(subject, relation, torch.full_like(subject, time))
            ranks = []
            for part, scores in engine.score_rows(subject, relation, time):
                inside = exclude[(exclude[:, 0] >= part.start) & (exclude[:, 0] < part.stop)]
                inside = torch.stack((inside[:, 0] - part.start, inside[:, 1]), 1)
                ranks.append(rank_targets(scores, answer[part], inside))
            yield Asked(time, subject, relation, answer, joined(ranks))
            progress(len(subject))
        engine.observe_rows(facts)


def joined(ranks: list[Ranks]) -> Ranks:
    """The ranks of several chunks in one."""
    return Ranks(torch.cat([r.optimistic for r in ranks]), torch.cat([r.pessimistic for r in ranks]))


def summarize(asked: Iterator[Asked], dataset: Dataset) -> Results:
    """Metrics per slice."""
    index = SliceIndex(dataset.facts, dataset.split("train"))
    sums = MetricSums()
    for one in asked:
        masks = index.masks(one.subject, one.answer, torch.full_like(one.subject, one.time))
        sums.add(one.ranks, masks)
    return sums.result()

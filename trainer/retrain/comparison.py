"""Candidate and present bundle on the same newest window, each query from the facts before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from adatkg_core.datasets import Dataset, aligned
from adatkg_core.evaluation import measure
from adatkg_core.messages import Verdict
from adatkg_core.metrics import SliceIndex
from adatkg_core.storage import Bundle, Saved
from adatkg_core.text import TextEncoder

Report = Callable[[str, int, int], None]


@dataclass(frozen=True)
class ModelUnderTest:
    """A bundle as a worker would have it: a state made from files is where it starts, the log comes after."""

    bundle: Bundle
    encoder: TextEncoder
    state: Saved | None = None

    def starts_from(self, dataset: Dataset) -> Saved | None:
        """Its state, unless that knows something of the window already."""
        if self.state is None or self.state.known_through is None:
            return None  # a state made from the log is made again
        return self.state if self.state.known_through < dataset.split_bounds[0] else None


def judge(
    candidate: ModelUnderTest,
    present: ModelUnderTest | None,
    dataset: Dataset,
    slice: str,
    margin: float,
    report: Report = lambda stage, done, total: None,
) -> Verdict | None:
    """Both follow the log and choose among the same entities; None where the slice has no query."""
    others = present.bundle.entities if present else ()
    mine = window_score(candidate, dataset, slice, others, lambda done, total: report("candidate", done, total))
    if mine is None:
        return None
    theirs = None
    if present is not None:
        others = candidate.bundle.entities
        theirs = window_score(present, dataset, slice, others, lambda done, total: report("present", done, total))
    return Verdict(slice, margin, mine, theirs)


def window_score(
    contender: ModelUnderTest,
    dataset: Dataset,
    slice: str,
    others: Sequence[str] = (),
    report: Callable[[int, int], None] = lambda done, total: None,
) -> float | None:
    """The MRR over a slice of the valid split; None for an empty slice.

    Facts whose relation the bundle does not know stay out of its state, and asked about them it gains nothing.
    """
    bundle, start = contender.bundle, contender.starts_from(dataset)
    engine = bundle.engine(contender.encoder, snapshot=start.snapshot if start else None)
    engine.register((*others, *dataset.entities))
    dataset = aligned(dataset, engine.catalog.names, dataset.relations)
    index = SliceIndex(dataset.facts, dataset.split("train"), dataset.n_entities, engine.device)
    window = torch.from_numpy(dataset.split("valid")).to(engine.device)
    subject, other = torch.cat((window[:, 0], window[:, 2])), torch.cat((window[:, 2], window[:, 0]))
    count = int(index.masks(subject, other, window[:, 3].repeat(2))[slice].sum())
    if count == 0:
        return None
    known = _known_part(dataset, bundle.relations, start.known_through if start else None)
    if not len(known.split("valid")):
        return 0.0
    asked, of = 0, 2 * len(known.split("valid"))

    def tell(more: int) -> None:
        nonlocal asked
        asked += more
        report(asked, of)

    total = torch.zeros((), dtype=torch.float64, device=engine.device)
    for one in measure(engine, known, "valid", progress=tell, baseline=False):
        # Whether an entity is new is a matter of all facts, also of those that this bundle cannot read.
        mask = index.masks(one.subject, one.answer, torch.full_like(one.subject, one.time))[slice]
        total += one.ranks.realistic.reciprocal()[mask].sum()
    return float(total) / count


def _known_part(dataset: Dataset, relations: tuple[str, ...], known_through: int | None) -> Dataset:
    """The facts with these relations, numbered as they are here, without those that came by files before."""
    row = {name: i for i, name in enumerate(relations)}
    rows = np.array([row.get(name, -1) for name in dataset.relations], dtype=np.int64)
    kind = rows[dataset.facts[:, 1]]
    taken = kind >= 0
    if known_through is not None:
        taken &= dataset.facts[:, 3] > known_through
    facts = dataset.facts[taken]
    facts[:, 1] = kind[taken]
    return replace(dataset, relations=relations, facts=facts)

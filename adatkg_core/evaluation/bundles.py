"""A bundle measured on a data set: everything that `adatkg evaluate` says of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from adatkg_core.datasets import Dataset, Split, aligned, by_first_appearance, without_later
from adatkg_core.engine import Engine
from adatkg_core.errors import InputError
from adatkg_core.evaluation.causality import CausalityCheck
from adatkg_core.evaluation.figures import Figures
from adatkg_core.evaluation.measuring import Asked, Candidates, measure
from adatkg_core.settings import Protocol
from adatkg_core.storage import Bundle
from adatkg_core.text import TextEncoder

Report = Callable[[str, int, int], None]  # stage, done, of how many
Watch = Callable[[Dataset, Asked, dict[str, Tensor]], None]  # and the strata of what was asked


@dataclass(frozen=True)
class How:
    """What is asked, and under which rules."""

    split: Split = "test"
    protocol: Protocol = "streaming"
    candidates: Candidates = "all"
    without_memory: bool = False  # every gate is zero when it is read
    check: int = 0  # queries whose causality is checked
    seed: int = 0  # of their choice
    last: int | None = None  # the tick up to which queries are asked, where that is not the end of the split

    def described(self) -> dict[str, Any]:
        """What stands beside the figures."""
        return {
            "protocol": self.protocol,
            "split": self.split,
            "catalog": self.candidates,
            "without_memory": self.without_memory,
        }


def evaluate_bundle(
    bundle: Bundle,
    dataset: Dataset,
    how: How,
    *,
    encoder: TextEncoder | None = None,
    report: Report = lambda stage, done, total: None,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Replay a data set through the bundle's engine and rank the queries of a split, beside the heuristic.

    `watch` is shown the queries of each time with the numbering that they are in.
    """
    if how.check and how.protocol == "snapshot":
        raise InputError("causality is a promise of the streaming protocol: in a snapshot queries see each other")
    measured = dataset if how.last is None else without_later(dataset, how.last)
    data, names = _numbered(bundle, measured, how.candidates)
    bundle.model.reads_memory = not how.without_memory
    try:
        engine = _engine(bundle, names, encoder)
        check = CausalityCheck(data, how.split, how.check, how.seed) if how.check else None
        figures, total = Figures(data, engine.device), 2 * len(data.split(how.split))
        began = time.perf_counter()
        tell = _count(report, f"evaluate {how.split}", total)
        asked = measure(engine, data, how.split, how.protocol, tell, candidates=how.candidates)
        for one in asked if check is None else check.follow(asked, engine):
            strata = figures.add(one)
            if watch is not None:
                watch(data, one, strata)
        result = how.described()
        if how.last is not None:
            result |= {"to": how.last, "share_of_split": round(total / (2 * len(dataset.split(how.split))), 4)}
        result |= {"encoder": bundle.model.config.model.encoder, "bundle": bundle.version}
        result |= figures.result()
        result["queries_per_second"] = round(total / (time.perf_counter() - began), 1)
        if check is not None:
            reference = _engine(bundle, names, engine.encoder)
            tell = _count(report, "check causality", min(how.check, total))
            result["causality"] = check.compare(reference, tell)
        return result
    finally:
        bundle.model.reads_memory = True


def _numbered(bundle: Bundle, dataset: Dataset, candidates: Candidates) -> tuple[Dataset, tuple[str, ...]]:
    """The data set with numbers as the engine will give them, and the names that the engine begins with.

    Where candidates are causal that is nobody, unless the model has weights for single entities, which begin the rows.
    """
    if candidates == "all":
        data = aligned(dataset, bundle.entities, bundle.relations)
        return data, data.entities
    weighted = bundle.entities[: bundle.model.entities]
    return aligned(by_first_appearance(dataset), weighted, bundle.relations), weighted


def _engine(bundle: Bundle, names: tuple[str, ...], encoder: TextEncoder | None) -> Engine:
    return replace(bundle, entities=names).engine(encoder)


def _count(report: Report, stage: str, total: int) -> Callable[[int], None]:
    done = 0

    def tell(more: int) -> None:
        nonlocal done
        done += more
        report(stage, done, total)

    return tell

"""Answers that were published, against what the log says by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from adatkg_core.events import Source
from adatkg_core.messages import Prediction

CLOSE = 2e-5  # between scores that differ only by the company in which they were computed
TOLD = 20  # differences in words


def compare_published(wanted: Iterable[Prediction], published: Mapping[Source, Sequence[Prediction]]) -> dict[str, Any]:
    """How many queries of a log were answered, and answered as the log says; `wanted` are its own answers.

    The mean reciprocal rank is of the names in the queries' `rank_of`, None where there are none.
    """
    found = {"asked": 0, "answered": 0, "repeated": 0, "missing": 0, "different": 0}
    versions: Counter[str] = Counter()
    reciprocal, problems = list[float](), list[str]()
    for answer in wanted:
        made = published.get(answer.source, ())
        found["asked"] += 1
        found["answered" if made else "missing"] += 1
        found["repeated"] += len(made) > 1
        versions[answer.model] += 1
        reciprocal += [1 / rank for rank in answer.ranks.values()]
        wrong = [why for one in made if (why := why_other(one, answer)) is not None]
        found["different"] += bool(wrong)
        if (wrong or not made) and len(problems) < TOLD:
            place = f"partition {answer.source.partition}, offset {answer.source.offset}"
            problems.append(f"{place}: {wrong[0] if wrong else 'no answer'}")
    mrr = sum(reciprocal) / len(reciprocal) if reciprocal else None
    return {**found, "versions": dict(versions), "mrr": mrr, "problems": problems}


def why_other(made: Prediction, wanted: Prediction) -> str | None:
    """Where two answers to one query differ by more than rounding; None if they do not."""
    for name in ("model", "as_of", "late", "interactions"):
        mine, theirs = getattr(made, name), getattr(wanted, name)
        if mine != theirs:
            return f"{name} is {mine}, not {theirs}"
    if len(made.top) != len(wanted.top):
        return f"{len(made.top)} candidates, not {len(wanted.top)}"
    scores = {one.entity: one.score for one in wanted.top}
    for place, (one, other) in enumerate(zip(made.top, wanted.top, strict=True), 1):
        # Candidates closer than rounding may have swapped places, also across the end of the list.
        if abs(one.score - other.score) > CLOSE or abs(scores.get(one.entity, other.score) - one.score) > 2 * CLOSE:
            return f"{one.entity} with {one.score:.5f} in place {place}, not {other.entity} with {other.score:.5f}"
    return None

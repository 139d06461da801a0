"""Published answers against those of the log: what lacks, what is other, and what is only rounding."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from adatkg_core.evaluation import compare_published
from adatkg_core.events import Source
from adatkg_core.messages import Prediction, decode_prediction


def prediction(offset: int = 0, **changes: Any) -> Prediction:
    body = {
        "v": 1,
        "id": f"0-{offset}",
        "graph": "g",
        "query": {"kind": "query", "v": 1, "id": "q", "s": "a", "r": "r", "t": 4, "k": 2},
        "top": [
            {"entity": "b", "score": 2.0, "probability": 0.7, "seen_before": True},
            {"entity": "c", "score": 1.0, "probability": 0.3, "seen_before": True},
        ],
        "ranks": {"c": 2.0},
        "as_of": 4,
        "late": False,
        "model": "m1",
        "cold_start": False,
        "gate": 0.0,
        "interactions": 3,
        "source": {"partition": 0, "offset": offset},
    }
    return decode_prediction(msgspec.json.encode({**body, **changes}))


def top(*scores: tuple[str, float]) -> list[dict[str, Any]]:
    return [{"entity": name, "score": score, "probability": 0.5, "seen_before": True} for name, score in scores]


def compared(*made: Prediction) -> dict[str, Any]:
    return compare_published([prediction()], {Source(0, 0): made} if made else {})


def test_equal_answers_are_counted_and_repeats_are_no_difference() -> None:
    found = compared(prediction(), prediction())
    assert (found["asked"], found["answered"], found["repeated"]) == (1, 1, 1)
    assert (found["missing"], found["different"], found["problems"]) == (0, 0, [])
    assert found["versions"] == {"m1": 1} and found["mrr"] == 0.5


def test_a_query_without_an_answer_is_missing_and_told_with_its_place() -> None:
    found = compared()
    assert (found["answered"], found["missing"]) == (0, 1)
    assert found["problems"] == ["partition 0, offset 0: no answer"]


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "m2"},
        {"as_of": 3},
        {"interactions": 2},
        {"late": True},
        {"top": top(("b", 2.0))},
        {"top": top(("b", 2.0), ("c", 1.1))},
        {"top": top(("c", 2.0), ("b", 1.0))},
    ],
)
def test_what_differs_is_found_also_behind_an_equal_one(changes: dict[str, Any]) -> None:
    found = compared(prediction(), prediction(**changes))
    assert found["different"] == 1 and len(found["problems"]) == 1


def test_rounding_and_candidates_that_swap_within_it_are_no_difference() -> None:
    wanted = prediction(top=top(("b", 2.0), ("c", 1.99999)))
    made = prediction(top=top(("c", 2.00000), ("b", 1.99999)))
    assert compare_published([wanted], {Source(0, 0): [made]})["different"] == 0

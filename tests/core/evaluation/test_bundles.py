"""A bundle measured under each set of rules."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor

from adatkg_core.datasets import Dataset
from adatkg_core.errors import InputError
from adatkg_core.evaluation import GROUPS, Asked, Candidates, How, evaluate_bundle, measure, summarize
from adatkg_core.storage import Bundle
from tests.core.evaluation.graph import empty, fresh, graph, ranks_of
from tests.support.small_graph import ENCODER, PER_ENTITY, shared_model, small_graph


def bundle(name: str = "default") -> Bundle:
    """A bundle that knows all names, in the order of the stream, as training writes it."""
    return Bundle(shared_model(name), graph().relations, graph().entities, "v1")


def evaluated(how: How, name: str = "default", **options: Any) -> dict[str, Any]:
    return evaluate_bundle(bundle(name), small_graph(), how, encoder=ENCODER, **options)


@pytest.mark.parametrize("candidates", ["all", "causal"])
def test_the_figures_are_those_of_the_measurement_that_was_asked_for(candidates: Candidates) -> None:
    result = evaluated(How("valid", candidates=candidates))
    engine = fresh() if candidates == "all" else empty()
    slices, baseline = summarize(measure(engine, graph(), "valid", candidates=candidates))
    assert (result["slices"], result["baseline"]) == (slices, baseline)
    assert (result["catalog"], result["split"], result["protocol"]) == (candidates, "valid", "streaming")
    assert result.keys() >= {key for keys in GROUPS for key in keys} and "causality" not in result


def test_causal_candidates_make_another_figure() -> None:
    rules: tuple[Candidates, Candidates] = ("all", "causal")
    whole, seen = (evaluated(How("valid", candidates=which))["slices"]["all"]["mrr"] for which in rules)
    assert seen > whole


@pytest.mark.parametrize("candidates", ["all", "causal"])
@pytest.mark.parametrize("name", ["default", *PER_ENTITY])
def test_causality_is_checked_with_whatever_rules_were_asked_for(name: str, candidates: Candidates) -> None:
    told: list[tuple[Any, ...]] = []
    how = How("test", candidates=candidates, without_memory=True, check=30, seed=4)
    result = evaluated(how, name, report=lambda *news: told.append(news))
    assert result["causality"] == {"checked": 30, "different": 0, "seed": 4, "examples": []}
    asked = 2 * len(graph().split("test"))
    assert ("evaluate test", asked, asked) in told
    assert told[-1] == ("check causality", 30, 30)


def test_a_check_in_the_snapshot_protocol_is_refused() -> None:
    with pytest.raises(InputError, match="streaming protocol"):
        evaluated(How("valid", "snapshot", check=3))


def test_memory_is_left_out_only_where_that_was_asked_for() -> None:
    without = evaluated(How("test", without_memory=True), "model-alone")
    assert shared_model("model-alone").reads_memory
    whole = evaluated(How("test"), "model-alone")
    assert (without["without_memory"], whole["without_memory"]) == (True, False)
    assert without["slices"]["all"]["mrr"] != whole["slices"]["all"]["mrr"]
    for key in ("strata", "by_interactions"):
        counts = [[row["count"] for row in result[key].values()] for result in (without, whole)]
        assert counts[0] == counts[1]
        assert without[f"baseline_{key}"] == whole[f"baseline_{key}"]


def test_who_watches_is_shown_every_query_with_its_stratum() -> None:
    seen: list[Asked] = []
    counts: dict[str, int] = {}

    def watch(data: Dataset, asked: Asked, strata: dict[str, Tensor]) -> None:
        assert data.entities == graph().entities
        seen.append(asked)
        for name, mask in strata.items():
            counts[name] = counts.get(name, 0) + int(mask.sum())

    result = evaluated(How("valid"), watch=watch)
    assert ranks_of(seen) == ranks_of(list(measure(fresh(), graph(), "valid")))
    assert counts == {name: row["count"] for name, row in result["strata"].items()}

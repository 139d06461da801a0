"""Both bundles are measured on the same queries, with the same past and the same candidates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from adatkg_core.constants import SLICES
from adatkg_core.datasets import Dataset, aligned, synthesize
from adatkg_core.evaluation import measure, summarize
from adatkg_core.model import AdaTKG
from adatkg_core.storage import Bundle
from tests.support.small_graph import ENCODER, randomize, small_config
from trainer import starting_state
from trainer.retrain.comparison import ModelUnderTest, judge, window_score

pytestmark = pytest.mark.slow  # seconds of models in all


@pytest.fixture(scope="module")
def data() -> Dataset:
    made = synthesize(40, 5, 16, 12, seed=3)
    return replace(made, bounds=(12, 16))


def bundle(
    relations: tuple[str, ...], entities: tuple[str, ...] = (), seed: int = 1, changes: dict[str, Any] | None = None
) -> Bundle:
    model = AdaTKG(small_config(changes or {}), ENCODER.encode(relations), len(entities))
    randomize(model, seed)
    return Bundle(model.eval(), relations, entities, f"v{seed}")


def test_it_is_the_figure_of_evaluate(data: Dataset) -> None:
    one = bundle(data.relations[::-1])  # in an order of its own
    engine = one.engine(ENCODER, data.entities)
    results, _ = summarize(measure(engine, aligned(data, data.entities, one.relations), "valid", baseline=False))
    for name in SLICES:
        assert window_score(ModelUnderTest(one, ENCODER), data, name) == pytest.approx(results[name]["mrr"], abs=1e-12)


def test_queries_of_unknown_relations_count_as_missed(data: Dataset) -> None:
    one = bundle(data.relations[:3])
    known = replace(data, facts=data.facts[data.facts[:, 1] < 3], relations=data.relations[:3])
    results, _ = summarize(measure(one.engine(ENCODER, data.entities), known, "valid", baseline=False))
    share = len(known.split("valid")) / len(data.split("valid"))
    assert 0 < share < 1
    assert results["all"]["mrr"] is not None
    assert window_score(ModelUnderTest(one, ENCODER), data, "all") == pytest.approx(
        results["all"]["mrr"] * share, abs=1e-12
    )
    assert window_score(ModelUnderTest(bundle(("Nothing of the kind",)), ENCODER), data, "all") == 0.0


def test_entities_that_one_of_them_knows_are_candidates_for_both(data: Dataset) -> None:
    unseen = tuple(f"Stranger {i}" for i in range(50))
    same = bundle(data.relations), bundle(data.relations, unseen)
    verdict = judge(ModelUnderTest(same[0], ENCODER), ModelUnderTest(same[1], ENCODER), data, "all", 0.0)
    assert verdict is not None and verdict.candidate == pytest.approx(verdict.present, abs=1e-6)


def test_bundles_whose_states_hold_other_tensors_are_compared(data: Dataset) -> None:
    """A `live` of before kept memories that no later one keeps; each is measured with a state of its own."""
    before = bundle(data.relations, data.entities, changes={"model.enabled": False})
    slim = {"model.enabled": False, "model.memory": "none", "model.chain_capacity": 8}
    now = bundle(data.relations, data.entities, changes=slim)
    present = ModelUnderTest(
        before, ENCODER, starting_state(before, replace(data, bounds=(4, 8)), ENCODER, "g", "valid")
    )
    now.model.load_state_dict(before.model.state_dict(), strict=False)
    verdict = judge(ModelUnderTest(now, ENCODER), present, data, "all", 0.0)
    assert verdict is not None and verdict.candidate == pytest.approx(verdict.present, abs=1e-12)


def test_a_bundle_from_files_is_measured_with_what_the_files_told_it(data: Dataset) -> None:
    one = bundle(data.relations, data.entities)
    state = starting_state(one, replace(data, bounds=(4, 8)), ENCODER, "g", "valid")  # the facts before 8
    assert state.known_through == 7
    whole = window_score(ModelUnderTest(one, ENCODER), data, "all")
    part = replace(data, facts=data.facts[data.facts[:, 3] >= 6])  # of the log only this is left
    assert window_score(ModelUnderTest(one, ENCODER, state), part, "all") == pytest.approx(whole, abs=1e-12)
    assert window_score(ModelUnderTest(one, ENCODER), part, "all") != pytest.approx(whole, abs=1e-4)
    # A state that has seen the window is no start for a fair question.
    all_of_it = starting_state(one, data, ENCODER, "g", "all")
    assert window_score(ModelUnderTest(one, ENCODER, all_of_it), data, "all") == whole


def test_a_slice_without_queries_gives_no_verdict(data: Dataset) -> None:
    one = ModelUnderTest(bundle(data.relations), ENCODER)
    # Everybody has been there from the first time on.
    everybody = np.array([[row, 0, row, -1] for row in range(data.n_entities)])
    calm = replace(data, facts=np.concatenate((everybody, data.facts)))
    assert judge(one, one, calm, "emerging", 0.0) is None
    assert judge(one, None, calm, "all", 0.5) is not None


def test_nothing_of_the_window_is_known_before_it_is_asked(data: Dataset) -> None:
    one = bundle(data.relations)
    later = data.facts.copy()
    last = later[:, 3] == 15
    generator = np.random.default_rng(1)
    later[last, 2] = generator.permutation(later[last, 2])
    earlier = replace(data, bounds=(12, 15))
    changed = replace(earlier, facts=later)
    with torch.no_grad():
        scores = [window_score(ModelUnderTest(one, ENCODER), each, "all", data.entities) for each in (earlier, changed)]
    assert scores[0] == scores[1]

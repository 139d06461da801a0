"""A bundle that says nothing of a setting was made before there was one, and answers as it did then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adatkg_core.events import Query, Ranking
from adatkg_core.settings import Config, config_from_dict
from adatkg_core.storage import Bundle, load_bundle, read_artifact, save_bundle, write_artifact
from adatkg_core.storage.legacy import BEFORE, with_former_settings
from tests.support.small_graph import ENCODER, EVERYTHING, named, small_config, small_graph, small_model

GRAPH = small_graph()


def scores(bundle: Bundle) -> list[tuple[str, float]]:
    engine = bundle.engine(ENCODER)
    engine.observe(named(GRAPH.facts.tolist()))
    asked = Query(GRAPH.relations[0], int(GRAPH.facts[-1, 3]) + 1, s=GRAPH.entities[0], k=EVERYTHING)
    (found,) = engine.predict([asked])
    assert isinstance(found, Ranking)
    return [(one.entity, one.score) for one in found.top]


def test_a_bundle_without_later_settings_answers_bitwise_as_one_that_names_the_former_ways(tmp_path: Path) -> None:
    former = {f"{section}.{key}": value for section, settings in BEFORE.items() for key, value in settings.items()}
    bundle = Bundle(small_model(small_config(former)), GRAPH.relations, GRAPH.entities[:12], "graph-1")
    save_bundle(bundle, str(tmp_path / "new"))
    tensors, meta = read_artifact(tmp_path / "new", "bundle")
    for section, settings in BEFORE.items():
        for key in settings:
            del meta["config"][section][key]
    write_artifact(tmp_path / "old", "bundle", tensors, meta)
    again = load_bundle(str(tmp_path / "old"))
    assert again.model.config == bundle.model.config
    assert scores(again) == scores(bundle)


def test_what_a_bundle_says_itself_is_left_alone() -> None:
    default = Config()
    assert config_from_dict(with_former_settings(default.as_dict()), where="test") == default


def test_every_former_setting_is_one_that_there_is() -> None:
    config_from_dict(BEFORE, where="test")


@pytest.mark.parametrize("odd", [None, [], {"model": 3}])
def test_what_is_no_table_is_left_for_the_reader_to_refuse(odd: Any) -> None:
    found = with_former_settings(odd)
    assert found == odd if not isinstance(odd, dict) else found["model"] == 3

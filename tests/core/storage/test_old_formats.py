"""What was written once is read by every later version, with the same answers, or refused with the remedy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from adatkg_core.clock import Clock
from adatkg_core.engine import Engine
from adatkg_core.errors import InputError
from adatkg_core.events import Fact, Query, Ranking
from adatkg_core.storage import Bundle, ModelStore, Saved, SnapshotStore

FORMAT_1 = Path(__file__).parents[2] / "fixtures" / "format-1"
PEOPLE = ("Ann", "Bob", "Cem", "Dora", "Eve", "Finn", "Ida", "Zoë 李")
RELATIONS = ("meets", "writes to", "pays")
FACTS = [Fact(PEOPLE[i % 8], RELATIONS[i % 3], PEOPLE[(3 * i + 1) % 8], i // 4) for i in range(32) if i % 8 != 3]
SEEN = 14  # of them are in the state that came with the bundle; the snapshot was made after all
CLOCK = Clock("2024-02-28", zone="Europe/Berlin")
# What the version that wrote the files answered to these.
QUESTIONS = (
    Query("meets", 8, s="Ann", k=8),
    Query("pays", 8, o="Zoë 李", k=8),
    Query("writes to", 9, s="Newcomer", k=8),
)
RANKED = (
    {
        "Cem": -1.80546,
        "Ann": -2.35934,
        "Ida": -2.6186,
        "Eve": -2.7893,
        "Zoë 李": -2.95226,
        "Dora": -3.14935,
        "Bob": -3.18252,
        "Finn": -3.18599,
    },
    {
        "Dora": -0.91679,
        "Zoë 李": -1.06285,
        "Bob": -1.17431,
        "Finn": -1.39673,
        "Eve": -1.66273,
        "Ann": -1.74573,
        "Ida": -1.83908,
        "Cem": -2.33756,
    },
    {
        "Ida": 9.13847,
        "Bob": 8.08882,
        "Cem": 7.55726,
        "Dora": 1.55169,
        "Ann": 0.31277,
        "Finn": -0.27623,
        "Zoë 李": -1.62608,
        "Eve": -2.41229,
    },
)


@pytest.fixture
def models() -> ModelStore:
    return ModelStore(str(FORMAT_1 / "models"))


@pytest.fixture
def bundle(models: ModelStore) -> Bundle:
    version = models.present("town")
    assert version == "first"
    return models.bundle("town", version)


def newest(snapshots: Path = FORMAT_1 / "snapshots") -> Saved | None:
    return next(iter(SnapshotStore(str(snapshots), "town", "log-1").newest_first("first", "cpu")), None)


def assert_ranks_as_then(engine: Engine) -> None:
    for question, wanted in zip(QUESTIONS, RANKED, strict=True):
        (found,) = engine.predict([question])
        assert isinstance(found, Ranking)
        assert [one.entity for one in found.top] == list(wanted)
        assert [one.score for one in found.top] == pytest.approx(list(wanted.values()), abs=1e-4)


def test_a_bundle_of_format_1_says_what_it_said(models: ModelStore, bundle: Bundle) -> None:
    assert models.graphs() == ["town"] and models.versions("town") == ["first"]
    assert (bundle.version, bundle.graph, bundle.clock) == ("first", "town", CLOCK)
    assert (bundle.relations, bundle.entities, bundle.metrics) == (RELATIONS, ("Ann",), {"epoch": 1})
    assert "created" in models.note("town", "first")


def test_a_bundle_of_format_1_ranks_as_it_did_after_the_same_facts(bundle: Bundle) -> None:
    engine = bundle.engine()
    engine.observe(FACTS)
    assert_ranks_as_then(engine)


def test_a_state_of_format_1_goes_on_where_it_stopped(models: ModelStore, bundle: Bundle) -> None:
    state = models.state("town", "first")
    assert state is not None
    assert (state.graph, state.version, state.offset, state.log) == ("town", "first", 0, "")
    assert state.known_through == FACTS[SEEN - 1].t
    engine = bundle.engine(snapshot=state.snapshot)
    engine.observe(FACTS[SEEN:])
    assert_ranks_as_then(engine)


def test_a_snapshot_of_format_1_ranks_as_the_engine_that_it_was_taken_from(bundle: Bundle) -> None:
    saved = newest()
    assert saved is not None
    assert (saved.offset, saved.known_through, saved.log) == (len(FACTS), None, "log-1")
    assert_ranks_as_then(bundle.engine(snapshot=saved.snapshot))


def test_a_store_of_a_format_to_come_is_refused_with_the_remedy(tmp_path: Path) -> None:
    shutil.copytree(FORMAT_1, tmp_path, dirs_exist_ok=True)
    for manifest in tmp_path.glob("**/manifest.json"):
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": 99}))
    models = ModelStore(str(tmp_path / "models"))
    with pytest.raises(InputError, match=r"bundle has format version 99 .* upgrade adatkg"):
        models.bundle("town", "first")
    with pytest.raises(InputError, match=r"snapshot has format version 99 .* upgrade adatkg"):
        models.state("town", "first")
    with capture_logs() as logs:
        assert newest(tmp_path / "snapshots") is None
    assert "upgrade adatkg" in logs[0]["problem"]

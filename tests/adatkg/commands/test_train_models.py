"""`adatkg train DATASET --models`: how a new bundle becomes the present one of a graph."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from adatkg.main import main
from adatkg_core.datasets import synthesize, write_dataset
from adatkg_core.messages import Announcement, decode_announcement
from adatkg_core.storage import Bundle, ModelStore
from streams.kafka import Topics
from tests.support.fake_graph import fresh_topics, records
from tests.support.small_graph import shared_model, small_graph

GRAPH = synthesize(40, 4, 14, 10, seed=2)
Train = Callable[..., tuple[int, str, str]]


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Train:
    """The command for graph g, on a data set of this test: exit code, what it printed, and its errors."""
    write_dataset(GRAPH, tmp_path / "graph")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADATKG_LOG", "warning")
    monkeypatch.setattr("streams.kafka.topics.BOOTSTRAP_MS", 500)

    def run(*arguments: str) -> tuple[int, str, str]:
        place = ("--config", "tiny", "--epochs", "1", "--models", "models", "--graph", "g", "--work", "work")
        monkeypatch.setattr("sys.argv", ["adatkg", "train", "graph", *place, "--json", *arguments])
        with pytest.raises(SystemExit) as exit_:
            main()
        captured = capsys.readouterr()
        return int(exit_.value.code or 0), captured.out, captured.err

    return run


def present_bundle(folder: Path, relations: tuple[str, ...]) -> ModelStore:
    """A store in which graph g has a bundle that knows these relations."""
    store = ModelStore(str(folder / "models"))
    bundle = Bundle(shared_model("default"), relations, ("a", "b"), "now", {})
    store.put("g", bundle, None)
    store.make_present("g", "now")
    return store


def known(relations: int) -> tuple[str, ...]:
    """Five relations, as many as the model of the tests has, of which the data set has these."""
    return (*GRAPH.relations[:relations], *(f"other {i}" for i in range(len(small_graph().relations) - relations)))


def test_a_bundle_that_may_answer_is_present_noted_and_announced(
    train: Train, tmp_path: Path, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics: Topics = fresh_topics(bootstrap)
    store = ModelStore(str(tmp_path / "models"))
    code, out, error = train("--seed", "1", "--offline")
    assert code == 0, error
    first = json.loads(out)
    assert first["announced"] is False
    assert records(bootstrap, topics.models) == []
    monkeypatch.setenv("ADATKG_BOOTSTRAP", bootstrap)
    monkeypatch.setenv("ADATKG_TOPIC_PREFIX", topics.prefix)
    code, out, error = train("--seed", "2")
    assert code == 0, error
    second = json.loads(out)
    assert second["announced"] is True
    assert store.line("g") == [second["version"], first["version"]]
    (record,) = records(bootstrap, topics.models)
    wanted = Announcement("g", second["version"], "present", "trained from graph", forced=False, verdict=None)
    assert decode_announcement(record.value) == wanted
    assert store.note("g", second["version"])["reason"] == "trained from graph"


def test_without_a_broker_the_bundle_is_present_and_the_command_says_who_was_not_told(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADATKG_BOOTSTRAP", "127.0.0.1:1")
    assert train("--seed", "1")[0] == 0, "the first of a graph needs no broker"
    code, out, error = train("--seed", "2")
    assert code == 0
    assert json.loads(out)["announced"] is False
    assert "no running worker is told: no Kafka broker answers at 127.0.0.1:1" in error
    assert ModelStore(str(tmp_path / "models")).present("g") == json.loads(out)["version"]


def test_a_data_set_that_lacks_a_relation_of_the_present_bundle_is_refused_before_training(
    train: Train, tmp_path: Path
) -> None:
    store = present_bundle(tmp_path, known(4))
    code, out, error = train("--offline")
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert "data set graph lacks relation 'other 0' that the present one, now, knows" in error
    assert store.versions("g") == store.line("g") == ["now"]
    assert not (tmp_path / "work").exists()


def test_a_bundle_that_turns_out_unfit_after_training_is_kept_as_a_candidate(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = present_bundle(tmp_path, known(4))
    monkeypatch.setattr("adatkg.commands.train._check_relations", lambda *_: None)
    code, out, error = train("--offline")
    assert (code, out) == (2, "")
    assert "lacks relation 'other 0' that the present one, now, knows" in error
    assert store.present("g") == "now"
    (candidate,) = set(store.versions("g")) - {"now"}
    assert store.note("g", candidate)["status"] == "candidate"
    assert "lacks relation 'other 0'" in store.note("g", candidate)["reason"]

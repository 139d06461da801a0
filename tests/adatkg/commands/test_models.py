from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import adatkg_core.storage.bundle
from adatkg.main import main
from adatkg_core.messages import Announcement, Verdict, decode_announcement
from adatkg_core.storage import Bundle, ModelStore, Saved, save_bundle, why_unfit
from streams.kafka import Topics
from tests.support.fake_graph import fresh_topics, records
from tests.support.small_graph import engine_with_past, shared_model, small_config, small_graph, small_model

RELATIONS = small_graph().relations
VALID = {"valid": {"protocol": "streaming", "slices": {"all": {"mrr": 0.4321}}}}


def bundle(version: str, relations: int = 5, **changes: Any) -> Bundle:
    model = shared_model("default") if relations == 5 else small_model(small_config(), relations)
    return replace(Bundle(model, RELATIONS[:relations], ("a", "b"), version, VALID), **changes)


class Command:
    """`adatkg models` on a store of this test: graph g with bundle old before the present one, and a candidate."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.url, self._patch, self._capsys = str(folder / "models"), monkeypatch, capsys
        self.store = ModelStore(self.url)
        self.reach: tuple[str, ...] = ("--offline",)
        for i, version in enumerate(("old", "now", "new")):
            self.add(bundle(version))
            self.store.add_note("g", version, created=f"2024-01-0{i + 1}T00:00:00+00:00")
        for version in ("old", "now"):
            self.store.make_present("g", version)

    def add(self, made: Bundle, **note: Any) -> None:
        self.store.put("g", made, None)
        self.store.add_note("g", made.version, **note)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        self._patch.setattr("sys.argv", ["adatkg", "models", *arguments, "--models", self.url])
        with pytest.raises(SystemExit) as exit_:
            main()
        captured = self._capsys.readouterr()
        return int(exit_.value.code or 0), captured.out, captured.err

    def json(self, *arguments: str) -> Any:
        code, out, error = self.run(*arguments, "--json")
        assert code == 0, error
        return json.loads(out)

    def change(self, *arguments: str) -> Any:
        return self.json(*arguments, *self.reach)

    def refused(self, *arguments: str, code: int = 2) -> str:
        """The one line that says why; the store is as it was."""
        line = self.store.line("g")
        found, out, error = self.run(*arguments, *self.reach)
        assert (found, out, error.count("\n")) == (code, "", 1), error
        assert self.store.line("g") == line
        return error


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, monkeypatch, capsys)


@pytest.fixture
def online(bootstrap: str, command: Command) -> Topics:
    """Its topics, which the command is told of."""
    topics = fresh_topics(bootstrap)
    command.reach = ("--bootstrap", bootstrap, "--topic-prefix", topics.prefix)
    return topics


def announced(bootstrap: str, topics: Topics) -> list[tuple[bytes | None, Announcement]]:
    return [(record.key, decode_announcement(record.value)) for record in records(bootstrap, topics.models)]


# -- list and show --------------------------------------------------------------------------------------------


def test_list_says_of_each_bundle_what_it_is_and_how_it_was_measured(command: Command) -> None:
    command.store.add_note("g", "new", reason="too bad", scores={**SCORES, "candidate": 0.25})
    rows = command.json("list")["bundles"]
    assert [(row["version"], row["is"], row["mrr"], row["reason"]) for row in rows] == [
        ("old", "before", 0.4321, None),
        ("now", "present", 0.4321, None),
        ("new", "candidate", 0.25, "too bad"),
    ]
    assert [row["measured_on"] for row in rows] == ["valid, all", "valid, all", "newest window, all"]
    assert command.json("list", "g")["bundles"] == rows
    code, out, _ = command.run("list")
    assert code == 0 and "2024-01-03" in out and "0.2500" in out


@pytest.mark.parametrize("columns", [40, 80])
def test_list_keeps_versions_whole_on_a_narrow_terminal(
    command: Command, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    longest = "a-customer-with-a-long-name-0a1b2c3d-12"
    command.add(bundle(longest), created="2024-01-04T00:00:00+00:00", scores={**SCORES, "candidate": 0.25})
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, _ = command.run("list")
    shown = [line.split()[0] for line in out.splitlines() if line.startswith(" ") and line.split()]
    assert code == 0 and {"old", "now", "new", longest} <= set(shown)
    assert columns < 80 or {"candidate", "2024-01-04", "0.2500"} <= set(out.split())


def test_list_shows_a_damaged_bundle_among_the_others(command: Command) -> None:
    (Path(command.store.bundle_url("g", "new")) / "meta.json").write_text("{}")
    rows = {row["version"]: row for row in command.json("list", "g")["bundles"]}
    assert "meta.json" in rows["new"]["problem"] and rows["now"]["problem"] is None


def test_an_empty_store_says_how_to_fill_it(command: Command, tmp_path: Path) -> None:
    command.url = str(tmp_path / "nothing")
    code, out, _ = command.run("list")
    assert code == 0 and "adatkg train --models" in out
    assert command.json("list") == {"bundles": []}


def test_show_tells_everything(command: Command) -> None:
    made = bundle("stateful")
    state = Saved(engine_with_past().snapshot(), graph="g", version="stateful", offset=17, known_through=15)
    command.store.put("g", made, state)
    shown = command.json("show", "g", "stateful")
    assert (shown["relations"], shown["entities"], shown["encoder"]) == (5, 2, "hash:24")
    assert (shown["state"]["offset"], shown["state"]["known_through"]) == (17, 15)
    assert shown["config"]["model"]["dim"] == 16 and shown["metrics"] == VALID and shown["note"]["created"]
    assert shown["bytes"] > 1_000 and shown["state"]["bytes"] > 1_000 and shown["problem"] is None
    code, out, _ = command.run("show", "g", "stateful")
    assert code == 0 and "config.model.dim" in out


def test_show_takes_the_present_one_and_says_what_is_wrong_with_it(command: Command) -> None:
    truncate(command, "now")
    shown = command.json("show", "g")
    assert shown["version"] == "now" and "tensors" in shown["problem"]


@pytest.mark.parametrize("arguments", [("show", "h"), ("list", "h")])
def test_an_unknown_graph_is_named_with_those_that_are_there(command: Command, arguments: tuple[str, ...]) -> None:
    code, _, error = command.run(*arguments)
    assert code == 2 and "no bundles of graph h, only of: g" in error


def test_an_unknown_version_is_named_with_those_that_are_there(command: Command) -> None:
    assert "graph g has no bundle best; it has new, now, old" in command.refused("promote", "g", "best")


# -- promote --------------------------------------------------------------------------------------------------

SCORES = {"slice": "all", "margin": 0.0, "candidate": 0.5, "present": 0.4}
WORSE = Verdict("all", 0.01, 0.4, 0.41)


def truncate(command: Command, version: str) -> None:
    file = Path(command.store.bundle_url("g", version)) / "tensors.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


def test_promote_changes_the_store_and_tells_the_workers(command: Command, bootstrap: str, online: Topics) -> None:
    command.store.add_note("g", "new", scores=SCORES)
    assert command.change("promote", "g", "new") == {
        "graph": "g",
        "version": "new",
        "before": "now",
        "announced": True,
    }
    assert command.store.line("g") == ["new", "now", "old"]
    verdict = Verdict("all", 0.0, 0.5, 0.4)
    wanted = Announcement("g", "new", "present", "promoted by hand", forced=False, verdict=verdict)
    assert announced(bootstrap, online) == [(b"g", wanted)]
    assert command.store.note("g", "new")["reason"] == "promoted by hand"


def test_a_refused_bundle_is_not_announced(command: Command, bootstrap: str, online: Topics) -> None:
    truncate(command, "new")
    command.refused("promote", "g", "new")
    assert announced(bootstrap, online) == []


def test_offline_only_the_store_changes(command: Command) -> None:
    assert command.change("promote", "g", "new")["announced"] is False
    assert command.store.present("g") == "new"


def test_without_a_broker_nothing_changes(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.kafka.topics.BOOTSTRAP_MS", 500)
    command.reach = ("--bootstrap", "127.0.0.1:1")
    assert "no Kafka broker answers at 127.0.0.1:1" in command.refused("promote", "g", "new", code=1)
    assert "no Kafka broker answers at 127.0.0.1:1" in command.refused("rollback", "g", code=1)


def test_a_truncated_bundle_is_refused(command: Command) -> None:
    truncate(command, "new")
    assert "tensors.safetensors" in command.refused("promote", "g", "new", "--force")


def test_a_bundle_with_nan_is_refused(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model(small_config())
    with torch.no_grad():
        next(model.parameters()).view(-1)[0] = torch.nan
    broken = bundle("nan", model=model)
    assert "holds NaN" in str(why_unfit(replace(broken, graph="g"), None, "g", None, True))
    with monkeypatch.context() as patch:
        patch.setattr(adatkg_core.storage.bundle, "require_finite", lambda *_: None)
        command.add(broken)
    assert "holds NaN or infinity" in command.refused("promote", "g", "nan", "--force")


def test_a_bundle_that_lacks_a_relation_is_refused(command: Command) -> None:
    command.add(bundle("poor", relations=3))
    reason = command.refused("promote", "g", "poor", "--force")
    assert f"bundle poor of graph g lacks relation {RELATIONS[3]!r} that the present one, now, knows" in reason


def test_a_bundle_of_another_graph_is_refused(command: Command) -> None:
    save_bundle(bundle("foreign", graph="h"), command.store.bundle_url("g", "foreign"))
    assert "bundle foreign was made for graph h, not for g" in command.refused("promote", "g", "foreign", "--force")
    save_bundle(bundle("bare"), command.store.bundle_url("g", "bare"))
    assert "bundle bare was made for no graph, not for g" in command.refused("promote", "g", "bare")


def test_a_bundle_that_did_worse_is_refused_with_both_figures_unless_forced(
    command: Command, bootstrap: str, online: Topics
) -> None:
    command.add(bundle("worse"), scores={"slice": "all", "margin": 0.01, "candidate": 0.4, "present": 0.41})
    assert "0.4000 against 0.4100 (all) and had to be better by 0.01" in command.refused("promote", "g", "worse")
    command.change("promote", "g", "worse", "--force")
    [(_, announcement)] = announced(bootstrap, online)
    assert announcement.forced and announcement.verdict == WORSE
    assert command.store.note("g", "worse")["reason"] == "promoted by hand, by force"


def test_a_damaged_present_bundle_can_be_replaced(command: Command) -> None:
    truncate(command, "now")
    code, _, error = command.run("promote", "g", "new", "--offline")
    assert code == 0 and "the present bundle cannot be compared with" in error
    assert command.store.present("g") == "new"


def test_a_note_that_cannot_be_read_is_named(command: Command) -> None:
    command.store.add_note("g", "new", scores={"slice": 3})
    assert "note on bundle new of graph g" in command.refused("promote", "g", "new")


def test_a_bundle_is_announced_again_when_it_is_promoted_again(
    command: Command, bootstrap: str, online: Topics
) -> None:
    command.change("promote", "g", "new")
    command.change("promote", "g", "new")
    assert len(announced(bootstrap, online)) == 2 and command.store.line("g") == ["new", "now", "old"]


# -- rollback -------------------------------------------------------------------------------------------------


def test_rollback_brings_the_one_before_back_even_if_it_did_worse(
    command: Command, bootstrap: str, online: Topics
) -> None:
    command.store.add_note("g", "old", scores={**SCORES, "candidate": 0.1})
    assert command.change("rollback", "g")["version"] == "old"
    assert command.store.line("g") == ["old"]
    assert announced(bootstrap, online) == [
        (b"g", Announcement("g", "old", "present", "rolled back by hand", forced=True, verdict=None))
    ]
    assert command.store.note("g", "now")["reason"] == "rolled back by hand to old"
    assert "no bundle before the present one" in command.refused("rollback", "g")


def test_rollback_from_a_damaged_bundle_works_and_to_one_does_not(command: Command) -> None:
    truncate(command, "now")
    assert command.run("rollback", "g", "--offline")[0] == 0
    command.change("promote", "g", "new")
    truncate(command, "old")
    assert "tensors.safetensors" in command.refused("rollback", "g")


def test_an_announcement_that_fails_leaves_the_store_changed_and_says_so(
    command: Command, online: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adatkg_core.errors import AdatkgError

    def fail(*_: Any) -> None:
        raise AdatkgError("the broker is gone")

    monkeypatch.setattr("streams.promotion.announce", fail)
    code, _, error = command.run("promote", "g", "new", *command.reach)
    assert code == 1 and "tell them with `adatkg models promote g new --force`: the broker is gone" in error
    assert command.store.present("g") == "new"

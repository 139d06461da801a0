"""One file for every command: whatever reaches the brokers finds them by its [kafka] section."""

from __future__ import annotations

from pathlib import Path

import pytest

from adatkg.main import main
from adatkg_core.storage import Bundle, ModelStore
from tests.support.command_tree import tree
from tests.support.small_graph import shared_model, small_graph

NOWHERE = "127.0.0.1:1"
COMMANDS = {
    "ask": ("ask", "g", "someone", "Consult"),
    "tail": ("tail", "g"),
    "replay": ("replay", "icews14", "--to", "2014-01-02"),
    "worker": ("worker",),
    "retrain": ("retrain", "g"),
    "deadletters list": ("deadletters", "list"),
    "deadletters show": ("deadletters", "show", "0-1"),
    "deadletters retry": ("deadletters", "retry", "0-1"),
    "models promote": ("models", "promote", "g", "one"),
    "models rollback": ("models", "rollback", "g"),
}


def error_of(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    monkeypatch.setattr("sys.argv", ["adatkg", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    return capsys.readouterr().err


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that names a broker which is not there, and a store with two bundles."""
    store = ModelStore(str(tmp_path / "store"))
    for version in ("one", "two"):
        store.put("g", Bundle(shared_model("default"), small_graph().relations, (), version), None)
        store.make_present("g", version)
    made = tmp_path / "mine.toml"
    made.write_text(f'[kafka]\nbootstrap = "{NOWHERE}"\n[stream]\nmodels = "{store.url}"\n')
    monkeypatch.setattr("streams.kafka.topics.BOOTSTRAP_MS", 200)
    monkeypatch.delenv("ADATKG_BOOTSTRAP", raising=False)
    monkeypatch.chdir(tmp_path)
    return made


def test_every_command_that_reaches_the_brokers_takes_a_file() -> None:
    reaching = {
        name for name, command in tree().items() if any("--bootstrap" in option.opts for option in command.params)
    }
    assert reaching == COMMANDS.keys()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_finds_the_brokers_by_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    wanted = f"no Kafka broker answers at {NOWHERE} "
    assert wanted in error_of(monkeypatch, capsys, *COMMANDS[command], "--config", str(file))
    monkeypatch.setenv("ADATKG_CONFIG", str(file))
    assert wanted in error_of(monkeypatch, capsys, *COMMANDS[command])


def test_flags_win_over_variables_and_variables_over_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ADATKG_BOOTSTRAP", "127.0.0.1:2")
    monkeypatch.setenv("ADATKG_CONFIG", str(file))
    assert "answers at 127.0.0.1:2 " in error_of(monkeypatch, capsys, "tail", "g")
    assert "answers at 127.0.0.1:3 " in error_of(monkeypatch, capsys, "tail", "g", "--bootstrap", "127.0.0.1:3")

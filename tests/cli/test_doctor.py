from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from adatkg_cli import doctor
from adatkg_cli.main import main

Capture = pytest.CaptureFixture[str]


def diagnose(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> tuple[int, dict[str, Any]]:
    monkeypatch.setattr("sys.argv", ["adatkg", "doctor", "--json"])
    with pytest.raises(SystemExit) as exit_:
        main()
    found = json.loads(capsys.readouterr().out)
    return int(exit_.value.code or 0), {check["name"]: check for check in found["checks"]}


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    monkeypatch.setenv("ADATKG_BOOTSTRAP", "127.0.0.1:1")
    monkeypatch.delenv("ADATKG_JAVA", raising=False)


def test_what_is_required_is_here(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    code, found = diagnose(monkeypatch, capsys)
    assert code == 0
    assert list(found) == ["python", "torch", "encoder", "java", "docker", "broker"]
    assert all(check["ok"] for check in found.values() if check["required"])


def test_whatever_is_missing_has_a_remedy(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    code, found = diagnose(monkeypatch, capsys)
    assert code == 1  # the encoder is required
    missing = {name for name, check in found.items() if not check["ok"]}
    assert missing == {"encoder", "java", "docker", "broker"}
    assert all(found[name]["remedy"] for name in missing)


def test_a_broker_that_listens_is_found(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("ADATKG_BOOTSTRAP", f"127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}")
        _, found = diagnose(monkeypatch, capsys)
    assert found["broker"]["ok"]


def test_without_an_address_the_broker_is_looked_for_where_every_command_looks(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.delenv("ADATKG_BOOTSTRAP")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setattr("streams.connection.DEFAULT_BOOTSTRAP", address)
        _, found = diagnose(monkeypatch, capsys)
    assert (found["broker"]["ok"], found["broker"]["detail"]) == (True, address)


@pytest.mark.parametrize("host", ["nonsense", "ssh://far/away", "tcp://127.0.0.1:1"])
def test_an_engine_that_cannot_be_reached_is_reported(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    check = doctor._docker()
    assert not check.ok
    assert host in check.detail

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adatkg.commands import doctor
from adatkg.main import main

Capture = pytest.CaptureFixture[str]
NOBODY = "127.0.0.1:1"


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
    here = ["python", "torch", "encoder", "cache", "disk"]
    assert list(found) == [*here, "java", "kafka", "broker", "docker", "chromium"]
    assert all(found[name]["ok"] for name in here)
    assert all(check["ok"] for check in found.values() if check["required"])


def test_whatever_is_missing_has_a_remedy(monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr(doctor, "_ROOM", 1 << 60)
    (tmp_path / "file").touch()
    monkeypatch.setenv("ADATKG_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.delenv("ADATKG_CHROMIUM", raising=False)
    code, found = diagnose(monkeypatch, capsys)
    assert code == 1  # the encoder is required
    missing = {name for name, check in found.items() if not check["ok"]}
    assert missing == {"encoder", "cache", "disk", "java", "kafka", "broker", "docker", "chromium"}
    assert all(found[name]["remedy"] for name in missing)
    assert "Not a directory" in found["cache"]["detail"] and NOBODY in found["broker"]["detail"]


def test_a_broker_that_answers_is_found(monkeypatch: pytest.MonkeyPatch, bootstrap: str) -> None:
    monkeypatch.setenv("ADATKG_BOOTSTRAP", f"{NOBODY},{bootstrap}")
    assert doctor._broker() == doctor.Check("broker", True, False, f"{bootstrap}, PLAINTEXT")


def test_a_broker_that_wants_something_else_is_reported(monkeypatch: pytest.MonkeyPatch, bootstrap: str) -> None:
    monkeypatch.setenv("ADATKG_BOOTSTRAP", bootstrap)
    monkeypatch.setenv("ADATKG_KAFKA_SECURITY", "ssl")
    check = doctor._broker()
    assert not check.ok and "hangs up on SSL" in check.detail and "ADATKG_KAFKA_SECURITY" in check.remedy


def test_settings_that_make_no_sense_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADATKG_BOOTSTRAP", "broker")
    check = doctor._broker()
    assert not check.ok and "bootstrap broker" in check.detail + check.remedy and check.remedy


@pytest.mark.parametrize("host", ["nonsense", "ssh://far/away", "tcp://127.0.0.1:1"])
def test_an_engine_that_cannot_be_reached_is_reported(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    check = doctor._docker()
    assert not check.ok
    assert host in check.detail

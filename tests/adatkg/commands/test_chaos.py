"""What `adatkg chaos` says when a promise was broken: no run breaks one on purpose, so the verdict is made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from adatkg import chaos
from adatkg.chaos import Outcome
from adatkg.chaos.checker import Verdict
from adatkg.main import app

SOUND: dict[str, Any] = {"asked": 9, "answered": 9}
BROKEN: list[dict[str, Any]] = [
    {"missing": 1},
    {"different": 1},
    {"state_equal": False},
    {"lost_events": 1},
    {"dead_letters_missing": 1},
    {"asked": 0},
]


def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **verdict: Any) -> tuple[int, dict[str, Any], str]:
    outcome = Outcome(Verdict(**SOUND | verdict, problems=["query 7 has no answer"] if verdict else []))
    monkeypatch.setattr(chaos, "conduct", lambda plan, stop, report: outcome)
    done = CliRunner().invoke(app, ["chaos", "--seed", "4711", "--folder", str(tmp_path / "left"), "--json"])
    return done.exit_code, orjson.loads(done.stdout), done.stderr


@pytest.mark.parametrize("verdict", BROKEN, ids=lambda verdict: next(iter(verdict)))
def test_a_run_that_breaks_a_promise_fails_and_prints_seed_folder_and_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verdict: dict[str, Any]
) -> None:
    code, result, said = run(monkeypatch, tmp_path, **verdict)
    assert code == 1 and result["seed"] == 4711
    assert "seed 4711" in said and str(tmp_path / "left") in said and "query 7 has no answer" in said


def test_a_run_that_keeps_them_succeeds_in_silence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, result, said = run(monkeypatch, tmp_path)
    assert (code, said) == (0, "") and result["asked"] == result["answered"] == 9

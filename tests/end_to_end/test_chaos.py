"""Chaos as a command: a short and mild run keeps every promise and says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from adatkg.chaos.journal import FAULTS, acknowledged

PATIENCE = 580.0  # seconds for what takes one minute on an idle machine
FAULTS_OF = "worker_killed,broker_stopped,garbage_sent,snapshot_corrupted"


@pytest.mark.timeout(600)
def test_nothing_is_missing_or_different_after_less_than_half_a_minute_of_faults(tmp_path: Path) -> None:
    folder = tmp_path / "chaos"
    arguments = ["--minutes", "0.4", "--seed", "3", "--graphs", "1", "--workers", "1", "--gap", "5", "--rate", "6"]
    command = [sys.executable, "-m", "adatkg", "chaos", *arguments, "--faults", FAULTS_OF, "--folder", str(folder)]
    done = subprocess.run([*command, "--json"], capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    result = orjson.loads(done.stdout)
    assert result["asked"] == result["answered"] > 30
    assert (result["missing"], result["different"], result["state_equal"], result["lost_events"]) == (0, 0, True, 0)
    assert sum(result["faults"].values()) >= 3 and result["seed"] == 3
    assert result["dead_letters"] >= 15 and result["dead_letters_missing"] == 0
    # What is said of faults and events is what the journal says.
    struck = [orjson.loads(line)["what"] for line in (folder / "journal" / FAULTS).read_bytes().splitlines()]
    assert all(struck.count(kind) == count for kind, count in result["faults"].items())
    assert 200 < len(acknowledged(folder / "journal")) <= result["events"]

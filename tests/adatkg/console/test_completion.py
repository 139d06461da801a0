"""A shell completes commands, flags, and the names of data sets, configurations and graphs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from adatkg.console.completion import config_names, dataset_names, graph_names

# What bash does on TAB: the function that belongs to the command fills COMPREPLY.
TAB = """
eval "$(adatkg --show-completion; true)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _adatkg_completion adatkg
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not on the path")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["mod"], ["models"]),
        (["train", "ice"], ["icews14"]),
        (["train", "--config", "ti"], ["tiny"]),
        (["train", "--config", "rec"], ["recall"]),
        (["tail", "--from-b"], ["--from-beginning"]),
    ],
)
def test_bash_completes_by_the_script_that_is_shown(words: list[str], completed: list[str], tmp_path: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", TAB, "bash", "adatkg", *words], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.stdout.split(), done.stderr) == (completed, "")


def test_data_sets_and_configurations_are_names_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "icy" / "deep").mkdir(parents=True)
    (tmp_path / "icy.toml").touch()
    (tmp_path / "icy.txt").touch()
    assert dataset_names("ic") == ["icews14", "icy"]
    assert dataset_names("icy/") == ["icy/deep"] and dataset_names("nowhere/x") == []
    assert config_names("ic") == ["icy", "icy.toml"] and config_names("liv") == ["live"]


def test_graphs_are_those_of_the_model_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two%2F2", ".hidden"):
        (tmp_path / "store" / name).mkdir(parents=True)
    monkeypatch.setenv("ADATKG_STREAM_MODELS", str(tmp_path / "store"))
    assert graph_names("") == ["one", "two/2"] and graph_names("t") == ["two/2"]
    monkeypatch.setenv("ADATKG_STREAM_MODELS", "s3://bucket/models")
    assert graph_names("") == []
    monkeypatch.setenv("ADATKG_CONFIG", str(tmp_path / "nowhere.toml"))
    assert graph_names("") == []

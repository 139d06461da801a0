"""Every command explains itself by an example that works."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from typer.testing import CliRunner

from adatkg.main import app
from tests.support.command_tree import tree

TREE = tree()
OPTIONS = 13  # beside --json and --help, which all have
LINES = 50  # of 80 columns: what a screen shows at once


def examples(command: Any) -> list[list[str]]:
    """The command lines in an epilog, as words."""
    found = re.fullmatch(r"Examples?: (.+)", command.epilog or "", re.DOTALL)
    return [shlex.split(line) for line in found[1].split("; ")] if found else []


def parsed(words: list[str]) -> str:
    """Parse a command line without running it; returns which command it is. Raises what a user would be told."""
    command, context = TREE[""], None
    path: list[str] = []
    name, rest = words[0], words[1:]
    while True:
        context = command.make_context(name, list(rest), parent=context)
        if not hasattr(command, "commands"):
            return " ".join(path)
        rest = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, rest)
        path.append(name)


@pytest.mark.parametrize("name", TREE)
def test_every_command_has_an_example_of_itself_that_parses(name: str) -> None:
    lines = examples(TREE[name])
    assert lines, f"adatkg {name} has no epilog `Example: adatkg …`"
    for words in lines:
        assert words[0] == "adatkg"
        assert f"{parsed(words)} ".startswith(f"{name} ".lstrip()), f"{shlex.join(words)} is no example of {name}"


@pytest.mark.parametrize("name", TREE)
def test_every_option_and_argument_is_explained(name: str) -> None:
    for parameter in TREE[name].params:
        assert parameter.help, f"adatkg {name}: {parameter.name} has no help"


@pytest.mark.parametrize("name", TREE)
def test_what_a_command_says_about_itself_fits_on_a_screen(name: str) -> None:
    shown = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "80"})
    assert shown.exit_code == 0 and "Usage" in shown.stdout
    lines = shown.stdout.strip().splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= LINES
    given = {one.name for one in TREE[name].params if any(word.startswith("--") for word in one.opts)}
    assert len(given - {"json", "help"}) <= OPTIONS


@pytest.mark.parametrize(
    ("line", "parsed_as"),
    [
        ("adatkg train --from-log g --every 6h", {"graph": "g", "every": "6h"}),
        ("adatkg train --from-log=g --keep 3", {"graph": "g", "settings": ["retrain.keep=3"]}),
        ("adatkg train --metrics-port=1 --from-log g", {"graph": "g", "settings": ["retrain.metrics_port=1"]}),
        ("adatkg train --set train.lr=1 --from-log g", {"graph": "g", "settings": ["train.lr=1"]}),
    ],
)
def test_retraining_can_be_written_as_it_once_was(line: str, parsed_as: dict[str, Any]) -> None:
    words = shlex.split(line)
    context = TREE["train"].make_context("train", words[2:], parent=TREE[""].make_context("adatkg", words[1:]))
    assert context.info_name == "retrain" and context.params.items() >= parsed_as.items()


@pytest.mark.parametrize("line", ["adatkg train icews14 --epochs many", "adatkg tail", "adatkg models destroy"])
def test_a_command_line_that_does_not_parse_is_noticed(line: str) -> None:
    with pytest.raises(Exception, match=r"valid integer|Missing parameter|No such command"):
        parsed(shlex.split(line))

"""Every command explains itself by an example that works."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from tests.support.command_tree import tree

TREE = tree()


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


@pytest.mark.parametrize("line", ["adatkg train icews14 --epochs many", "adatkg tail", "adatkg models destroy"])
def test_a_command_line_that_does_not_parse_is_noticed(line: str) -> None:
    with pytest.raises(Exception, match=r"valid integer|Missing parameter|No such command"):
        parsed(shlex.split(line))

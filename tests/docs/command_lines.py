"""Command lines looked up instead of run: every option must be known, every value of the right kind."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import typer
import yaml
from typer.core import TyperGroup
from typer.exceptions import TyperException

from adatkg.main import app

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = typer.main.get_command(app)
_TARGET = re.compile(r"^([\w-]+):", re.MULTILINE)
_COMPOSE_JOBS = ("trainer", "replay")


def simple_commands(script: str) -> list[list[str]]:
    """The words of each command of a shell script: lines, pipes and the like apart, comments and variables left out."""
    commands: list[list[str]] = []
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
        lexer.whitespace_split = True
        commands.append([])
        for word in lexer:
            if set(word) <= set("|&;()"):
                commands.append([])
            else:
                commands[-1].append(word)
    stripped = [_without_variables(_without_redirection(words)) for words in commands]
    return [words for words in stripped if words]


def problem_with(words: list[str]) -> str | None:
    """What is wrong with a command, as far as it is one of ours."""
    program, rest = Path(words[0]).name, words[1:]
    if program == "adatkg":
        return _parse(rest)
    if program == "make":
        targets = _TARGET.findall((REPOSITORY / "Makefile").read_text("utf-8"))
        unknown = [word for word in rest if "=" not in word and word not in targets]
        return f"make has no target {unknown[0]}" if unknown else None
    if words[:2] == ["docker", "compose"]:
        return _parse_compose(words[2:])
    if program in ("python", "python3") and rest[:1] == ["-m"]:
        module = REPOSITORY.joinpath(*rest[1].split("."))
        known = module.with_suffix(".py").is_file() or (module / "__main__.py").is_file()
        return None if known else f"there is no module {rest[1]}"
    return None


def _parse(arguments: list[str]) -> str | None:
    command, parent, rest = COMMAND, None, arguments
    try:
        # A group knows its subcommands but not their arguments, so each level is given what the one above left.
        while isinstance(command, TyperGroup):
            parent = command.make_context(command.name, rest[:1], parent=parent)
            _, found, _ = command.resolve_command(parent, rest[:1])
            assert found is not None
            command, rest = found, rest[1:]
        command.make_context(command.name, rest, parent=parent)
    except typer.Exit:  # it was a call for help
        return None
    except TyperException as error:
        return error.format_message()
    return None


def _parse_compose(words: list[str]) -> str | None:
    """`docker compose … SERVICE COMMAND`: the service is one of ours, and the command one of adatkg."""
    services = set(yaml.safe_load((REPOSITORY / "docker" / "compose.yaml").read_text("utf-8"))["services"])
    if "run" not in words:
        return None
    after = [word for word in words[words.index("run") + 1 :] if word not in ("--rm", "-T")]
    if not after or after[0] not in services:
        return f"docker/compose.yaml has no service {after[0] if after else ''}"
    return _parse(after[1:]) if len(after) > 1 and after[0] in _COMPOSE_JOBS else None


def _without_variables(words: list[str]) -> list[str]:
    while words and re.fullmatch(r"[A-Za-z_]\w*=.*", words[0]):
        words = words[1:]
    return words


def _without_redirection(words: list[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for word in words:
        if set(word) <= set("<>&"):
            skip = True
        elif not skip:
            kept.append(word)
        else:
            skip = False
    return kept

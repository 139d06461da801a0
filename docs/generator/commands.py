"""The page of all commands, from what the parser itself knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption

from adatkg.main import app
from docs.generator.markdown import code, document, table

INTRODUCTION = """
Every command answers `--help`. Where it has `--json`, it prints one JSON object on standard output and all else,
logs too, on standard error. The exit code is 0 when it is done, 1 when it failed and 2 when the input was wrong; an
error is one line that names the thing, the place and the remedy. Settings come from a TOML file, then from
[`ADATKG_*` variables](configuration.md#variables), then from the options below.
"""
PARSED = "<!-- run: parse only, because an example of a command stands for itself -->"
_EXTRAS = re.compile(r"\s*\[((?:default|env|env var): [^\[\]]*|required|[^\[\]]*x[<>]=[^\[\]]*)\]")
_FORMAT = {"<str>": "TEXT", "<int>": "N", "<float>": "X", "<path>": "PATH", "<int range>": "N", "<float range>": "X"}


def page() -> str:
    """Every command, its arguments, options, defaults and an example."""
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    sections = [section for name in sorted(root.commands) for section in _sections(f"adatkg {name}", root, name)]
    return document("Commands", INTRODUCTION, *sections)


def _sections(path: str, group: TyperGroup, name: str) -> Iterator[str]:
    command: Any = group.commands[name]
    level = "#" * path.count(" ") + "#"
    yield f"{level} {path}"
    yield _paragraphs(command.help or "")
    if isinstance(command, TyperGroup):
        for inner in command.commands:
            yield from _sections(f"{path} {inner}", command, inner)
        return
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join(piece.upper().replace("{", "").replace("}", "") for piece in command.collect_usage_pieces(context))
    yield f"```text\n{path} {usage}\n```"
    records = [(one, *one.get_help_record(context)) for one in command.get_params(context)]
    arguments = [
        _row(name.split(" ")[0].upper(), text) for one, name, text in records if isinstance(one, TyperArgument)
    ]
    options = [
        _row(_option(name), text) for one, name, text in records if isinstance(one, TyperOption) and one.name != "help"
    ]
    if arguments:
        yield table(("argument", "default", "is"), arguments)
    if options:
        yield table(("option", "default", "does"), options)
    label, _, examples = (command.epilog or "").partition(": ")
    if label not in ("Example", "Examples"):
        raise ValueError(f"{path} has no example")
    typed = examples.replace("; ", "\n")
    yield f"{PARSED}\n```sh\n{typed}\n```"


def _row(name: str, text: str) -> tuple[str, str, str]:
    """What is typed, its default, and the help without the remarks that the parser puts behind it."""
    default, remarks = "", []
    for extra in "; ".join(_EXTRAS.findall(text)).split("; "):
        kind, _, value = extra.partition(": ")
        if kind == "default":
            default = value
        elif kind in ("env", "env var"):
            remarks.append(f"variable {code(value)}")
        elif extra:
            remarks.append(extra.replace("x>=", "at least ").replace("<=x<=", " to "))
    return code(name), code(default), _EXTRAS.sub("", text) + (f" ({', '.join(remarks)})" if remarks else "")


def _option(name: str) -> str:
    for found, shown in _FORMAT.items():
        name = name.replace(found, shown)
    # A stroke would end the cell of a table, and not everywhere can it be escaped within code.
    return name.replace("<list[str]>", "TEXT").replace("|", "/").replace("<", "").replace(">", "")


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))

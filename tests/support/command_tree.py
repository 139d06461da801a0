"""All commands of `adatkg`, as its parser has them."""

from __future__ import annotations

from typing import Any

import typer

from adatkg.main import app


def tree() -> dict[str, Any]:
    """Every command and group by its name, `models list` for one below another; the application itself is ``."""
    return _below(typer.main.get_command(app), "")


def _below(command: Any, path: str) -> dict[str, Any]:
    found = {path: command}
    for name, one in getattr(command, "commands", {}).items():
        found |= _below(one, f"{path} {name}".strip())
    return found

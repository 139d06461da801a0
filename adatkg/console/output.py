"""How commands print: one JSON object or a table on stdout, everything else on stderr."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

stdout = Console(highlight=False, soft_wrap=True)
stderr = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """Write one object and a newline to stdout."""
    options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
    sys.stdout.write(orjson.dumps(value, option=options).decode())
    sys.stdout.flush()


def printable(text: str) -> str:
    """Text from a message without what could steer the terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)

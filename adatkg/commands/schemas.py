"""`adatkg schemas`: the messages and topics, for programs in other languages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table

from adatkg.console.options import ConfigOption, PrefixOption
from adatkg.console.output import JsonFlag, print_json, stdout


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: adatkg schemas --out schemas")(schemas)


def schemas(
    out: Annotated[Path | None, typer.Option(help="Write each document into this folder.")] = None,
    topic_prefix: PrefixOption = None,
    config: ConfigOption = None,
    json: JsonFlag = False,
) -> None:
    """JSON Schema of every message and AsyncAPI of the topics, as the worker itself checks them."""
    from streams.asyncapi import documents
    from streams.kafka import topics_from

    made = documents(topics_from(topic_prefix, config))
    if out is not None:
        _write(out, made)
    if json:
        print_json(made)
        return
    table = Table("document", "describes", box=None)
    for name, document in made.items():
        about = ", ".join(document["properties"]) if "properties" in document else ", ".join(_addresses(document))
        table.add_row(str(out / name) if out else name, about)
    stdout.print(table)


def _addresses(document: dict[str, Any]) -> list[str]:
    return [channel["address"] for channel in document["channels"].values()]


def _write(folder: Path, made: dict[str, dict[str, Any]]) -> None:
    from adatkg_core.errors import InputError

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, document in made.items():
            (folder / name).write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    except OSError as error:
        raise InputError(f"--out {folder}: cannot be written ({error.strerror}); give another folder") from error

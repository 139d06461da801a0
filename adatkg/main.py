"""The application and its entry point.

A module of `adatkg.commands` that has `register(app)` adds its command to it. Such modules import torch and the
like inside their functions, so that `adatkg --help` answers at once.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import Annotated

import typer

from adatkg import __version__, commands
from adatkg.console.logs import configure_logging
from adatkg_core.errors import AdatkgError
from adatkg_core.runtime import keep_freed_memory

app = typer.Typer(
    name="adatkg",
    help="Forecasts events of a temporal knowledge graph while they stream in.",
    epilog="Example: adatkg datasets info icews14",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        print(f"adatkg {__version__}")
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    configure_logging()
    keep_freed_memory()


def _register_commands() -> None:
    for module in pkgutil.iter_modules(commands.__path__):
        loaded = importlib.import_module(f"adatkg.commands.{module.name}")
        if hasattr(loaded, "register"):
            loaded.register(app)


_register_commands()


def main() -> None:
    """Run the command; an error becomes one line on stderr and its exit code, never a traceback."""
    try:
        app(prog_name="adatkg")
    except AdatkgError as error:
        line = " ".join(str(error).split())
        print(f"error: {line}", file=sys.stderr)
        sys.exit(error.exit_code)

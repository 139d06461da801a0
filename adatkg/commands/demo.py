"""The command itself: options in, one result out."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from adatkg.console.output import JsonFlag, print_json, stderr, stdout

_EXAMPLES = "Examples: adatkg demo; adatkg demo --folder runs/demo --speed 2; adatkg demo --headless --json"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog=_EXAMPLES)(demo)


def demo(
    folder: Annotated[
        Path | None,
        typer.Option(help="Keep everything here and go on from there another time; by default nothing is kept."),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port of the dashboard; a free one if it is taken, or for 0.")
    ] = 6066,
    speed: Annotated[str, typer.Option(help="Days of the stream in a second, or max.")] = "0.5",
    first: Annotated[
        str,
        typer.Option("--from", help="The stream begins at this time; the first model learns from what came before."),
    ] = "2014-01-22",
    last: Annotated[
        str | None,
        typer.Option("--to", help="The stream ends with this time: else with the year, headless with 2014-03-15."),
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="New facts that make a round of training due.")] = 4_000,
    seconds: Annotated[
        float | None, typer.Option(min=1, help="End after so many seconds, whatever is done by then.")
    ] = None,
    config: Annotated[str, typer.Option(help="Configuration of all models, as in train.")] = "demo",
    headless: Annotated[
        bool,
        typer.Option(
            "--headless",
            help="No browser and no display; ends by itself when all is answered and a new model has taken over.",
        ),
    ] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser.")] = False,
    json: JsonFlag = False,
) -> None:
    """Run the whole system on this machine, from nothing; Ctrl-C stops everything.

    Kafka, a first model, the worker with its dashboard, the rest of ICEWS14 as a live stream with questions, and a
    trainer whose better models take over while it runs.
    """
    from adatkg.console.options import pace_of, quiet_kafka_logs
    from adatkg.demo import DATASET, Audience, Log, Plan, Terminal, conduct, place
    from adatkg_core.clock import tick_of
    from adatkg_core.datasets import load_dataset
    from adatkg_core.runtime import USUAL, stop_on_signals
    from adatkg_core.settings import load_config

    pace = pace_of(speed)
    load_config(config)  # a mistake in it is told before anything is started
    data = load_dataset(DATASET)
    last = last or ("2014-03-15" if headless else "2014-12-31")
    begin, end = tick_of(first, data.clock, "--from"), tick_of(last, data.clock, "--to")
    quiet_kafka_logs()
    audience: Audience = Log()
    if stderr.is_terminal and not headless:
        audience = Terminal(browser=not no_browser and _has_display())
    # A terminal that is closed says so by SIGHUP; nothing may run on behind it.
    with stop_on_signals((*USUAL, signal.SIGHUP), patient=True) as stop, place(folder) as chosen:
        plan = Plan(chosen, begin, end, pace, every, config, port, seconds, headless)
        outcome = conduct(plan, data, stop, audience)
    if json:
        print_json(asdict(outcome))
        return
    if outcome.mrr is not None:
        stdout.print(
            f"{outcome.predictions:,} predictions, MRR {outcome.mrr:.4f}, the first after "
            f"{outcome.seconds_to_first_prediction} s; models that took over: {outcome.swaps}"
        )
    if folder is None:
        stdout.print("Everything has ended and nothing was kept; --folder DIR would keep it.")
    else:
        stdout.print(f"Everything has ended; the same command goes on with what is in {chosen}.")


def _has_display() -> bool:
    return sys.platform == "darwin" or any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))

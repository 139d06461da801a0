"""`adatkg ask`: one question to the stream, and its answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from adatkg.console.completion import graph_names
from adatkg.console.options import BootstrapOption, ConfigOption, PrefixOption, connection_of, quiet_kafka_logs
from adatkg.console.output import JsonFlag, print_json, printable, stderr, stdout
from adatkg.console.times import TicksFlag, asked_about, rests_on

if TYPE_CHECKING:
    from streams.client import Prediction

ASKED = "?"  # stands where the answer belongs


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: adatkg ask icews14 'Barack Obama' 'Consult' --time next --k 5")(ask)


def ask(
    graph: Annotated[str, typer.Argument(help="Which graph to ask.", autocompletion=graph_names)],
    subject: Annotated[str, typer.Argument(help="Who acts; ? asks for them, and then OBJECT is needed.")],
    relation: Annotated[str, typer.Argument(help="What they do.")],
    object: Annotated[str, typer.Argument(help="To whom; ? or nothing asks for them.")] = ASKED,
    time: Annotated[str, typer.Option(help="A tick, an ISO time, or next: the one after the latest fact.")] = "next",
    k: Annotated[int, typer.Option("--k", min=1, help="How many answers.")] = 10,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for the answer.")] = 30.0,
    ticks: TicksFlag = False,
    bootstrap: BootstrapOption = None,
    topic_prefix: PrefixOption = None,
    config: ConfigOption = None,
    json: JsonFlag = False,
) -> None:
    """Send one query, wait for its answer and print it; `?` stands for what is asked."""
    from adatkg_core.errors import InputError
    from streams.client import Client

    if (subject == ASKED) == (object == ASKED):
        raise InputError("ask for one: SUBJECT RELATION asks for the object, ? RELATION OBJECT for the subject")

    async def answer() -> Prediction:
        async with Client(*connection_of(bootstrap, topic_prefix, config)) as client:
            return await client.ask(
                graph,
                subject=None if subject == ASKED else subject,
                relation=relation,
                object=None if object == ASKED else object,
                time=_tick_or_text(time),
                k=k,
                timeout=timeout,
            )

    quiet_kafka_logs()
    with stderr.status(f"asking {printable(graph)}"):
        forecast = asyncio.run(answer())
    if json:
        print_json(forecast.raw)
    else:
        _show(forecast, ticks)


def _tick_or_text(time: str) -> int | str:
    try:
        return int(time)
    except ValueError:
        return time


def _show(forecast: Prediction, ticks: bool) -> None:
    asked = forecast.query
    table = Table("rank", "entity", "probability", "score", box=None)
    sides = f"{asked.get('s') or ASKED} | {asked['r']} | {asked.get('o') or ASKED}"
    table.title = Text(printable(f"{asked_about(forecast, ticks)}: {sides}"))
    for rank, one in enumerate(forecast.top, 1):
        table.add_row(str(rank), Text(printable(one.entity)), f"{one.probability:.2%}", f"{one.score:.4f}")
    stdout.print(table)
    rests = f"as of {rests_on(forecast, ticks)}, model {forecast.model}, gate {forecast.gate:.3f}"
    flags = [flag for flag, raised in (("late", forecast.late), ("cold start", forecast.cold_start)) if raised]
    stdout.print(Text(printable(", ".join((rests, f"{forecast.interactions:,} interactions", *flags)))))

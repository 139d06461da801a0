"""`adatkg tail`: follow the predictions of a graph."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from adatkg.console.completion import graph_names
from adatkg.console.options import BootstrapOption, ConfigOption, PrefixOption, connection_of, quiet_kafka_logs
from adatkg.console.output import print_json, printable
from adatkg.console.times import TicksFlag, asked_about

if TYPE_CHECKING:
    from streams.client import Client, Prediction

_SHOWN = 3  # candidates on a line


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: adatkg tail icews14 --from-beginning --count 5 --json")(tail)


def tail(
    graph: Annotated[str, typer.Argument(help="Whose predictions.", autocompletion=graph_names)],
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line, the message as it came.")
    ] = False,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Begin with the oldest prediction that is kept.")
    ] = False,
    count: Annotated[int | None, typer.Option(min=1, help="Stop after so many.")] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0.1, help="Fail when nothing more came for so many seconds.")
    ] = None,
    ticks: TicksFlag = False,
    bootstrap: BootstrapOption = None,
    topic_prefix: PrefixOption = None,
    config: ConfigOption = None,
) -> None:
    """Follow the predictions of a graph as they are made; each is shown once, Ctrl-C ends it."""
    from streams.client import Client

    def tell(forecast: Prediction) -> None:
        if json:
            print_json(forecast.raw)
        else:
            print(line(forecast, ticks), flush=True)

    quiet_kafka_logs()
    try:
        client = Client(*connection_of(bootstrap, topic_prefix, config))
        asyncio.run(_tail(client, graph, tell, from_beginning, count, timeout))
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        # Whoever read has enough. Python would complain once more when it closes stdout, so there must be one.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _tail(
    client: Client,
    graph: str,
    tell: Callable[[Prediction], None],
    from_beginning: bool,
    count: int | None,
    timeout: float | None,
) -> None:
    async with client:
        predictions = await client.predictions(graph, from_beginning=from_beginning).begin()
        seen = 0
        async for forecast in _timely(predictions, graph, timeout):
            tell(forecast)
            seen += 1
            if seen == count:
                return


async def _timely(forecasts: AsyncIterator[Prediction], graph: str, timeout: float | None) -> AsyncIterator[Prediction]:
    from adatkg_core.errors import AdatkgError

    while True:
        try:
            async with asyncio.timeout(timeout):
                forecast = await anext(forecasts)
        except TimeoutError as error:
            raise AdatkgError(
                f"{graph}: no prediction came for {timeout:g} s; is a worker running, and does anyone ask?"
            ) from error
        except StopAsyncIteration:
            return
        yield forecast


def line(forecast: Prediction, ticks: bool = False) -> str:
    """A forecast on one line: when, what was asked, the best answers, ranks and flags."""
    asked, time = forecast.query, asked_about(forecast, ticks)
    best = ", ".join(f"{one.entity} {one.probability:.1%}" for one in forecast.top[:_SHOWN])
    parts = [f"{time}  {asked.get('s') or '?'} | {asked['r']} | {asked.get('o') or '?'}  →  {best or 'nobody'}"]
    parts += [f"rank of {entity}: {rank:g}" for entity, rank in forecast.ranks.items()]
    parts += [flag for flag, raised in (("late", forecast.late), ("cold start", forecast.cold_start)) if raised]
    return printable("  ·  ".join(parts))

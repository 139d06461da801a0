"""`adatkg worker`: keeps the graphs' states and answers queries from the stream."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from adatkg.console.options import BootstrapOption, ConfigOption, PrefixOption, connect


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: adatkg worker --models models --snapshots snapshots")(worker)


def worker(
    bootstrap: BootstrapOption = None,
    topic_prefix: PrefixOption = None,
    models: Annotated[str | None, typer.Option(help="Model store, a folder or URL. [default: models]")] = None,
    snapshots: Annotated[str | None, typer.Option(help="Where states are kept. [default: snapshots]")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda. [default: auto]")] = None,
    group: Annotated[str | None, typer.Option(help="Consumer group; workers of one group share the graphs.")] = None,
    replica: Annotated[
        str | None, typer.Option(help="I/N: take in everything, answer every N-th query. [default: 1/1]")
    ] = None,
    web_host: Annotated[str | None, typer.Option(help="Address of the web pages. [default: 127.0.0.1]")] = None,
    web_port: Annotated[int | None, typer.Option(help="Port of the web pages, 0 for none. [default: 6066]")] = None,
    config: ConfigOption = None,
) -> None:
    """Answer queries from the stream until stopped; Ctrl-C or SIGTERM finishes, saves and leaves the group.

    Settings come from [stream] and [kafka] of the TOML files, then ADATKG_STREAM_* and ADATKG_KAFKA_* variables, then
    flags. Pages: / is the dashboard; /health, /ready, /scores and /metrics are for machines.
    """
    import structlog

    from adatkg_core.errors import AdatkgError, InputError
    from streams.service import AGAIN, serve
    from streams.settings import load_settings

    flags = {"models": models, "snapshots": snapshots, "device": device, "group": group}
    settings = load_settings(config, flags | {"web_host": web_host, "web_port": web_port} | _replica(replica))
    while True:
        try:
            connection, topics = connect(bootstrap, topic_prefix, config)
            break
        except AdatkgError as error:
            if AGAIN not in os.environ or isinstance(error, InputError):
                raise
            structlog.get_logger().warning("broker_away", problem=str(error))
    raise typer.Exit(serve(settings, connection, topics))


def _replica(text: str | None) -> dict[str, int]:
    from adatkg_core.errors import InputError

    if text is None:
        return {}
    number, slash, count = text.partition("/")
    if not slash or not number.isdigit() or not count.isdigit():
        raise InputError(f"--replica {text}: write I/N, for example 1/2")
    return {"replica": int(number), "replicas": int(count)}

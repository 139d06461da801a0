"""`adatkg deadletters`: what could not be processed, why, and how to put it back."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from adatkg.console.completion import graph_names
from adatkg.console.options import BootstrapOption, ConfigOption, PrefixOption, connect
from adatkg.console.output import JsonFlag, print_json, printable, stderr, stdout
from adatkg.console.progress import progress_bar

if TYPE_CHECKING:
    from streams.dead_letters import DeadLetter
    from streams.kafka import Connection, Topics

deadletters = typer.Typer(
    help="What could not be processed: list, show, put back.",
    no_args_is_help=True,
    epilog="Example: adatkg deadletters list --reason unknown-relation",
)
GraphFilter = Annotated[
    str | None, typer.Option("--graph", help="Only those of this graph.", autocompletion=graph_names)
]
ReasonFilter = Annotated[str | None, typer.Option("--reason", help="Only those with this reason.")]
_AT_ONCE = 500  # put back before they are marked: so many may come twice after a kill in between


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.add_typer(deadletters, name="deadletters")


@deadletters.command("list", epilog="Example: adatkg deadletters list --graph icews14 --json")
def list_(
    graph: GraphFilter = None,
    reason: ReasonFilter = None,
    all_: Annotated[bool, typer.Option("--all", help="Also those that were retried.")] = False,
    bootstrap: BootstrapOption = None,
    topic_prefix: PrefixOption = None,
    config: ConfigOption = None,
    json: JsonFlag = False,
) -> None:
    """List dead letters and count them by reason."""
    letters = [
        letter
        for letter in _filtered(_read(*connect(bootstrap, topic_prefix, config)), graph, reason)
        if all_ or not letter.retried
    ]
    by_reason = dict(Counter(letter.reason for letter in letters).most_common())
    if json:
        print_json({"deadletters": [_described(letter) for letter in letters], "by_reason": by_reason})
        return
    table = Table("id", "time (UTC)", "graph", "reason", "detail", box=None)
    for letter in letters:
        cells = (letter.id, _when(letter)[:19], letter.graph, letter.reason, letter.detail)
        table.add_row(*(Text(printable(cell)) for cell in cells))
    if letters:
        stdout.print(table)
    counts = ", ".join(f"{count:,} {printable(name)}" for name, count in by_reason.items())
    total = "1 dead letter" if len(letters) == 1 else f"{len(letters):,} dead letters"
    stdout.print(Text(f"{total}: {counts}" if counts else total))


@deadletters.command(epilog="Example: adatkg deadletters show 0-17")
def show(
    id: Annotated[str, typer.Argument(help="As `list` shows it, for example 0-17.")],
    bootstrap: BootstrapOption = None,
    topic_prefix: PrefixOption = None,
    config: ConfigOption = None,
    json: JsonFlag = False,
) -> None:
    """Show a dead letter with all that is known of it."""
    from adatkg_core.messages import Reason
    from streams.dead_letters import DeadLetters, choose

    connection, topics = connect(bootstrap, topic_prefix, config)
    chosen = choose(_read(connection, topics), [id])
    letter = next(DeadLetters(connection, topics).with_values(chosen))
    encoding, value = _as_text(letter.value)
    headers = {name: _as_text(header)[1] for name, header in letter.headers}
    key = _as_text(letter.key)[1] if letter.key is not None else None
    if json:
        print_json({**_described(letter), "key": key, "headers": headers, "encoding": encoding, "value": value})
        return
    table = Table(show_header=False, box=None)
    facts = {"id": letter.id, "time": _when(letter), "retried": str(letter.retried), "key": key or "", **headers}
    remedies = {reason.value: reason.remedy for reason in Reason}
    if letter.reason in remedies:  # a newer worker may know others
        facts["remedy"] = remedies[letter.reason]
    for name, text in facts.items():
        table.add_row(Text(printable(name)), Text(printable(text)))
    stdout.print(table)
    stdout.print(Text(f"value ({letter.size:,} bytes{', base64' if encoding == 'base64' else ''}):"))
    stdout.print(Text("\n".join(printable(line) for line in value.splitlines())))


@deadletters.command(epilog="Example: adatkg deadletters retry 0-17 --set r=Consult")
def retry(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="As `list` shows them.")] = None,
    reason: ReasonFilter = None,
    graph: GraphFilter = None,
    value: Annotated[str | None, typer.Option(help="Put back this JSON instead; with one ID.")] = None,
    value_file: Annotated[Path | None, typer.Option(help="Put back what is in this file; with one ID.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help="Change a field; JSON, else a string.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also what was retried before.")] = False,
    bootstrap: BootstrapOption = None,
    topic_prefix: PrefixOption = None,
    config: ConfigOption = None,
    json: JsonFlag = False,
) -> None:
    """Put events back at the end of the log, as they came or mended.

    With IDs all of them go back or none. With --reason or --graph those that cannot go back are left and told.
    """
    from adatkg_core.errors import InputError
    from streams.dead_letters import DeadLetters, changes_from, choose, mended, open_outbox, ready

    ids, changes = ids or [], changes_from(set_ or [])
    whole = _whole(value, value_file, bool(changes), len(ids))
    if bool(ids) == bool(reason or graph):
        raise InputError("say which: give IDs as `adatkg deadletters list` shows them, or --reason or --graph")
    connection, topics = connect(bootstrap, topic_prefix, config)
    letters = _read(connection, topics)
    chosen = choose(letters, ids) if ids else _filtered(letters, graph, reason)
    if not ids and not again:
        chosen = [letter for letter in chosen if not letter.retried]
    left: dict[str, str] = {}

    def events() -> Iterator[tuple[DeadLetter, bytes]]:
        for letter in DeadLetters(connection, topics).with_values(chosen):
            try:
                body = whole if whole is not None else mended(letter, changes) if changes else letter.value
                yield letter, ready(letter, body, untouched=whole is None and not changes, again=again)
            except InputError as error:
                if ids:
                    raise
                left[letter.id] = str(error)

    done: list[str] = []
    found = iter(list(events()) if ids else events())  # all are looked at before any goes back
    with open_outbox(connection, topics) as outbox, progress_bar() as report:
        while batch := list(islice(found, _AT_ONCE)):
            outbox.retry(batch)
            done += [letter.id for letter, _ in batch]
            report("retry", len(done) + len(left), len(chosen))
    if json:
        print_json({"retried": done, "left": left})
        return
    for problem in left.values():
        stderr.print(Text(printable(f"left: {problem}")))
    stdout.print(Text(f"{len(done):,} put back" + (f", {len(left):,} left" if left else "")))


def _read(connection: Connection, topics: Topics) -> list[DeadLetter]:
    from streams.dead_letters import DeadLetters

    with progress_bar() as report:
        return DeadLetters(connection, topics).read(lambda done, total: report("reading", done, total))


def _filtered(letters: Sequence[DeadLetter], graph: str | None, reason: str | None) -> list[DeadLetter]:
    return [
        letter
        for letter in letters
        if (graph is None or letter.graph == graph) and (reason is None or letter.reason == reason)
    ]


def _described(letter: DeadLetter) -> dict[str, Any]:
    source = letter.source
    return {
        "id": letter.id,
        "time": _when(letter),
        "graph": letter.graph,
        "reason": letter.reason,
        "detail": letter.detail,
        "source": {"topic": letter.topic, "partition": source.partition, "offset": source.offset} if source else None,
        "bytes": letter.size,
        "retried": letter.retried,
    }


def _when(letter: DeadLetter) -> str:
    return datetime.fromtimestamp(letter.timestamp / 1000, UTC).isoformat(timespec="seconds")


def _as_text(data: bytes | None) -> tuple[str, str]:
    """How bytes are shown, and the bytes shown so."""
    try:
        return "utf-8", (data or b"").decode()
    except UnicodeDecodeError:
        return "base64", base64.b64encode(data or b"").decode()


def _whole(value: str | None, file: Path | None, changes: bool, ids: int) -> bytes | None:
    """The new value, when the whole of it was given."""
    from adatkg_core.errors import InputError

    if (value is not None) + (file is not None) + changes > 1:
        raise InputError("give one of --value, --value-file and --set")
    if value is None and file is None:
        return None
    if ids != 1:
        raise InputError(f"--value and --value-file replace one event, but {ids} IDs are given: give exactly one ID")
    try:
        return value.encode() if value is not None else file.read_bytes() if file else None
    except OSError as error:
        raise InputError(f"--value-file {file}: cannot be read ({error.strerror}); give another file") from error

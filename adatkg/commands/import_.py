"""`adatkg import`: a table of events becomes a data set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from adatkg.console.name_groups import describe_groups, groups_in_words
from adatkg.console.output import JsonFlag, print_json, printable, stderr, stdout
from adatkg.console.progress import progress_bar

# In lines of a paragraph each: the help keeps line breaks.
_HELP = (
    "Make a data set from a CSV of events, and report what is odd about it.\n\n"
    "Times may be ISO 8601 dates or times, YYYY/MM/DD, YYYYMMDD, Unix seconds or milliseconds, or whole ticks; most "
    "rows decide. Rows that cannot be used are skipped; when they are more than half, nothing is written. A file "
    "without a header is read where all four columns are given by number; else usual names of columns are found."
)
_CROWD = 2  # facts at a tick, on average, below which a tick is finer than is of use
_COLUMN = "name or number (from 1) of its column."


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    examples = "Example: adatkg import events.csv --out graphs/mine --subject sender --time sent_at --granularity day"
    app.command("import", help=_HELP, epilog=examples)(import_)


def import_(
    file: Annotated[str, typer.Argument(help="A CSV or TSV file, also as .gz; - reads standard input.")],
    out: Annotated[Path, typer.Option(help="The new folder.")],
    subject: Annotated[str, typer.Option(help=f"Who acts: {_COLUMN}")] = "",
    relation: Annotated[str, typer.Option(help=f"What is done: {_COLUMN}")] = "",
    object_: Annotated[str, typer.Option("--object", help=f"To whom: {_COLUMN}")] = "",
    time: Annotated[str, typer.Option(help=f"When: {_COLUMN}")] = "",
    granularity: Annotated[
        str,
        typer.Option(
            help="What a tick is: minute, 15min, hour, day, week (from Monday) or a number of seconds. "
            "auto: a day if all times are dates, else the longest of second, minute, 15 minutes, hour and day "
            "that divides every gap between two times."
        ),
    ] = "auto",
    zone: Annotated[
        str | None,
        typer.Option(
            help="The zone in which times are shown and days begin, such as America/New_York or +02:00; times without "
            "an offset are read as its local times. If not given: the offset that all times have, else UTC."
        ),
    ] = None,
    delimiter: Annotated[str, typer.Option(help="auto, comma, tab, semicolon, pipe or a character.")] = "auto",
    encoding: Annotated[str, typer.Option(help="How the text is encoded.")] = "utf-8",
    replace: Annotated[bool, typer.Option("--replace", help="Replace a data set that is there already.")] = False,
    json: JsonFlag = False,
) -> None:
    """Read the table, write the folder, print the report."""
    from adatkg_core.datasets.csv_import import import_csv

    columns = {"subject": subject, "relation": relation, "object": object_, "time": time}
    with progress_bar() as report:
        imported = import_csv(
            sys.stdin.buffer if file == "-" else Path(file).expanduser(),
            out,
            columns={role: column for role, column in columns.items() if column},
            granularity=granularity,
            zone=zone,
            delimiter=delimiter,
            encoding=encoding,
            replace=replace,
            on_progress=lambda done, total: report("bytes read", done, total),
        )
    result = imported.as_dict(str(out)) | {"groups": describe_groups(imported.dataset.entities)}
    if json:
        print_json(result)
    else:
        _show(result)


def _show(result: dict[str, Any]) -> None:
    summary = Table(show_header=False, box=None)
    for key, value in (result | {"groups": groups_in_words(result["groups"])}).items():
        if key != "odd":
            shown = f"{value:,}" if isinstance(value, int) else escape(printable(str(value)))
            summary.add_row(key.replace("_", " "), shown)
    stdout.print(summary)
    if result["granularity"] in ("second", "minute") and result["facts"] < _CROWD * result["times"]:
        stderr.print("hint: few facts share a tick, and facts of one tick are learnt together; try --granularity hour")
    if "several" in str(result["zone_from"]):
        stderr.print(
            "hint: the times have several offsets and are shown in UTC; --zone keeps the zone that they are of"
        )
    if not result["odd"]:
        return
    odd = Table("what is odd", "rows", "count", "line", "value", box=None)
    for kind in result["odd"]:
        cells = (kind["kind"], "skipped" if kind["skipped"] else "kept", f"{kind['count']:,}")
        for n, example in enumerate(kind["examples"]):
            odd.add_row(
                *(cells if n == 0 else ("", "", "")), f"{example['line']:,}", escape(printable(example["value"]))
            )
    stdout.print()
    stdout.print(odd)

"""`adatkg datasets`: what data there is, what is in it, and how to get more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from adatkg.console.completion import dataset_names
from adatkg.console.name_groups import describe_groups, groups_in_words
from adatkg.console.output import JsonFlag, print_json, printable, stderr, stdout
from adatkg.console.progress import progress_bar

if TYPE_CHECKING:
    from adatkg_core.clock import Clock
    from adatkg_core.datasets import Dataset, Facts

datasets = typer.Typer(
    help="Data sets: list, describe, generate, fetch.",
    no_args_is_help=True,
    epilog="Example: adatkg datasets info icews14",
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.add_typer(datasets, name="datasets")


@datasets.command("list", epilog="Example: adatkg datasets list --json")
def list_(json: JsonFlag = False) -> None:
    """List the data sets that the package ships."""
    from adatkg_core.datasets import load_dataset, shipped_names

    rows = [_describe(load_dataset(name)) for name in shipped_names()]
    if json:
        print_json({"datasets": rows})
        return
    table = Table("name", "entities", "relations", "facts", "times", "granularity")
    for row in rows:
        counts = (f"{row[key]:,}" for key in ("entities", "relations", "facts", "times"))
        table.add_row(row["name"], *counts, row["granularity"])
    stdout.print(table)


@datasets.command(epilog="Example: adatkg datasets info icews14 --json")
def info(
    dataset: Annotated[
        str, typer.Argument(help="A shipped name or a folder in a benchmark's layout.", autocompletion=dataset_names)
    ],
    json: JsonFlag = False,
) -> None:
    """Check a data set and describe it: its layout, counts, times, and the 5:2:3 split."""
    from adatkg_core.datasets import load_dataset

    _print(_describe(load_dataset(dataset)), json)


@datasets.command(
    epilog="Example: adatkg datasets synth graph --entities 500 --times 200 --facts-per-time 100 --seed 7"
)
def synth(
    out: Annotated[Path, typer.Argument(help="The new folder.")],
    entities: Annotated[int, typer.Option(help="Number of entities.")] = 1000,
    relations: Annotated[int, typer.Option(help="Number of relations.")] = 20,
    times: Annotated[int, typer.Option(help="Number of ticks.")] = 100,
    facts_per_time: Annotated[int, typer.Option(help="Facts at each tick, at most.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same graph.")] = 0,
    emerging: Annotated[float, typer.Option(help="Share of entities that appear later.")] = 0.3,
    json: JsonFlag = False,
) -> None:
    """Generate a graph with recurring habits and emerging entities, of any size."""
    from adatkg_core.datasets import synthesize, write_dataset

    with stderr.status(f"writing {out}"):
        made = synthesize(entities, relations, times, facts_per_time, seed, emerging)
        write_dataset(made, out)
    _print({"path": str(out), **_describe(made)}, json)


@datasets.command(epilog="Example: adatkg datasets fetch https://example.org/ICEWS18.tar.gz icews18 --sha256 9f86…")
def fetch(
    url: Annotated[str, typer.Argument(help="A .tar.gz, .tar or .zip of a folder in the usual layout.")],
    out: Annotated[Path, typer.Argument(help="The new folder.")],
    sha256: Annotated[str, typer.Option("--sha256", help="The archive's checksum, 64 hex digits.")],
    json: JsonFlag = False,
) -> None:
    """Download a data set, verify its checksum and unpack it; a failure leaves nothing behind."""
    from adatkg_core.datasets import fetch_dataset

    with progress_bar() as report:
        fetched = fetch_dataset(url, out, sha256, lambda done, total: report("bytes fetched", done, total))
    _print({"path": str(out), **_describe(fetched)}, json)


def _describe(dataset: Dataset) -> dict[str, Any]:
    import numpy as np

    splits = {name: dataset.split(name) for name in ("train", "valid", "test")}
    known = np.unique(splits["train"][:, [0, 2]])
    seen = np.unique(dataset.facts[:, [0, 2]])
    return {
        "name": dataset.name,
        "entities": dataset.n_entities,
        "relations": dataset.n_relations,
        "facts": len(dataset.facts),
        "times": len(dataset.times),
        "first_tick": int(dataset.times[0]),
        "last_tick": int(dataset.times[-1]),
        "step": dataset.step,
        "granularity": dataset.granularity,
        "layout": dataset.layout or "shipped with the package",
        "notes": list(dataset.notes),
        "splits": {name: _describe_split(rows, dataset.clock) for name, rows in splits.items()},
        "entities_unknown_to_train": len(seen) - len(known),
        "groups": describe_groups(dataset.entities),
    }


def _describe_split(rows: Facts, clock: Clock | None) -> dict[str, Any]:
    """How much there is, and from when until when; by the calendar where there is one."""
    import numpy as np

    ticks = np.unique(rows[:, 3]).tolist()
    first, last = (clock.iso(tick) if clock else tick for tick in (ticks[0], ticks[-1])) if ticks else (None, None)
    return {"times": len(ticks), "facts": len(rows), "first": first, "last": last}


def _print(description: dict[str, Any], json: bool) -> None:
    if json:
        print_json(description)
        return
    table = Table(show_header=False, box=None)
    for key, value in description.items():
        if key == "splits":
            for name, part in value.items():
                span = f", {part['first']} to {part['last']}" if part["times"] else ""
                table.add_row(name, f"{part['facts']:,} facts at {part['times']:,} times{span}")
        elif key == "notes":
            for note in value:
                table.add_row("note", note)
        elif key == "groups":
            table.add_row(key, escape(printable(groups_in_words(value))))
        else:
            table.add_row(key.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
    stdout.print(table)

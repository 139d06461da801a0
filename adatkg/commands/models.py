"""`adatkg models`: the bundles of a model store, and which of them answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len
from rich.table import Column, Table
from rich.text import Text

from adatkg.console.completion import graph_names
from adatkg.console.options import BootstrapOption, ConfigOption, PrefixOption, connection_of
from adatkg.console.output import JsonFlag, print_json, printable, stderr, stdout

if TYPE_CHECKING:
    from adatkg_core.storage import ModelStore
    from streams.promotion import Reach

models = typer.Typer(
    help="Trained bundles: list, show, choose the one that answers.",
    no_args_is_help=True,
    epilog="Example: adatkg models list icews14",
)
StoreOption = Annotated[
    str | None,
    typer.Option("--models", help="Model store, a folder or URL. [default: models] [env: ADATKG_STREAM_MODELS]"),
]
GraphArgument = Annotated[
    str, typer.Argument(help="The graph that the bundle answers for.", autocompletion=graph_names)
]
VersionArgument = Annotated[str, typer.Argument(help="As `list` shows it.")]
OfflineFlag = Annotated[
    bool, typer.Option("--offline", help="Change only the store: a worker learns of it at its next start.")
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.add_typer(models, name="models")


@models.command("list", epilog="Example: adatkg models list icews14 --models models --json")
def list_(
    graph: Annotated[str | None, typer.Argument(help="Only those of this graph.", autocompletion=graph_names)] = None,
    store: StoreOption = None,
    config: ConfigOption = None,
    json: JsonFlag = False,
) -> None:
    """List bundles, the newest last: which one answers, how each was measured, and why it is where it is."""
    from adatkg_core.storage import bundle_rows

    opened = _open(store, graph, config)
    rows = [row for name in ([graph] if graph else opened.graphs()) for row in bundle_rows(opened, name)]
    if json:
        print_json({"bundles": rows})
        return
    for name in dict.fromkeys(row["graph"] for row in rows):
        _show_graph(name, [row for row in rows if row["graph"] == name])
    if not rows:
        stdout.print(Text(f"{opened.url}: no bundles; make one with `adatkg train --models`"))


@models.command(epilog="Example: adatkg models show icews14")
def show(
    graph: GraphArgument,
    version: Annotated[str | None, typer.Argument(help="As `list` shows it. [default: the present one]")] = None,
    store: StoreOption = None,
    config: ConfigOption = None,
    json: JsonFlag = False,
) -> None:
    """Show all that is known of a bundle, and whether it is sound."""
    from adatkg_core.storage import describe_bundle
    from streams.promotion import known_version

    opened = _open(store, graph, config)
    described = describe_bundle(opened, graph, known_version(opened, graph, version or _present(opened, graph)))
    if json:
        print_json(described)
        return
    table = Table(show_header=False, box=None)
    for name, value in _flat(described):
        table.add_row(Text(printable(name)), Text(printable("–" if value is None else str(value))))
    stdout.print(table)


@models.command(epilog="Example: adatkg models promote icews14 VERSION")
def promote(
    graph: GraphArgument,
    version: VersionArgument,
    force: Annotated[bool, typer.Option("--force", help="Even if it did worse than the present one.")] = False,
    offline: OfflineFlag = False,
    store: StoreOption = None,
    bootstrap: BootstrapOption = None,
    topic_prefix: PrefixOption = None,
    config: ConfigOption = None,
    json: JsonFlag = False,
) -> None:
    """Make a bundle the one that answers; one that is damaged or did worse than the present one is refused."""
    from streams.promotion import promote as promote_in

    opened = _open(store, graph, config)
    connect = _reach(offline, opened.url, bootstrap, topic_prefix, config)
    before = promote_in(opened, graph, version, connect, _warn, forced=force)
    _report(graph, version, before, offline, json)


@models.command(epilog="Example: adatkg models rollback icews14")
def rollback(
    graph: GraphArgument,
    offline: OfflineFlag = False,
    store: StoreOption = None,
    bootstrap: BootstrapOption = None,
    topic_prefix: PrefixOption = None,
    config: ConfigOption = None,
    json: JsonFlag = False,
) -> None:
    """Bring back the bundle that answered before the present one."""
    from streams.promotion import roll_back

    opened = _open(store, graph, config)
    version, before = roll_back(opened, graph, _reach(offline, opened.url, bootstrap, topic_prefix, config), _warn)
    _report(graph, version, before, offline, json)


# -- what is there --------------------------------------------------------------------------------------------


def _open(store: str | None, graph: str | None, config: Path | None) -> ModelStore:
    from streams.promotion import open_store
    from streams.settings import load_settings

    return open_store(load_settings(config, {"models": store}).models, graph)


def _present(store: ModelStore, graph: str) -> str:
    from adatkg_core.errors import InputError

    version = store.present(graph)
    if version is None:
        raise InputError(f"{store.url}: no bundle of graph {graph} is present; name one, or promote one")
    return version


def _show_graph(graph: str, rows: list[dict[str, Any]]) -> None:
    """A table in which versions stay whole, to be copied, and below it the reasons, which are sentences."""
    whole = max(cell_len(printable(row["version"])) for row in rows)
    # Where it is narrow, the others break between words.
    least = {"version": whole, "is": len("candidate"), "created (UTC)": len("2024-01-01"), "MRR": len("0.0000")}
    columns = (Column(title, min_width=width) for title, width in least.items())
    table = Table(*columns, "measured on", box=None)
    for row in rows:
        created = str(row["created"] or "")[:16].replace("T", " ")
        score = None if row["mrr"] is None else f"{row['mrr']:.4f}"
        cells = (row["version"], row["is"], created, score, row["measured_on"])
        table.add_row(*(Text(printable(cell or "–"), overflow="fold") for cell in cells))
    stdout.print(Text(printable(graph), style="bold"))
    stdout.print(table)
    for row in rows:
        if reason := row["problem"] or row["reason"]:
            stdout.print(Text(printable(f" {row['version']}: {reason}")))


def _flat(values: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Nested values as lines with dotted names."""
    lines: list[tuple[str, Any]] = []
    for name, value in values.items():
        lines += _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(f"{prefix}{name}", value)]
    return lines


# -- what is changed ------------------------------------------------------------------------------------------


def _reach(offline: bool, store: str, bootstrap: str | None, topic_prefix: str | None, config: Path | None) -> Reach:
    from streams.promotion import tell_nobody, teller

    if offline:
        return lambda: tell_nobody
    return lambda: teller(*connection_of(bootstrap, topic_prefix, config), store)


def _warn(text: str) -> None:
    stderr.print(Text(printable(text)))


def _report(graph: str, version: str, before: str | None, offline: bool, json: bool) -> None:
    if json:
        print_json({"graph": graph, "version": version, "before": before, "announced": not offline})
        return
    told = "workers learn of it at their next start" if offline else "announced to the workers"
    stdout.print(Text(printable(f"{graph}: {version} is present, before it was {before or 'none'}; {told}")))

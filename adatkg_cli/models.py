"""`adatkg models`: the bundles of a model store, and which of them answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from adatkg_cli.output import JsonFlag, print_json, printable, stderr, stdout
from adatkg_cli.stream_options import BootstrapOption, PrefixOption, reach

if TYPE_CHECKING:
    from adatkg_core.announcements import Announcement, Verdict
    from adatkg_core.bundle import Bundle
    from adatkg_core.model_store import ModelStore

models = typer.Typer(
    help="Trained bundles: list, show, choose the one that answers.",
    no_args_is_help=True,
    epilog="Example: adatkg models list icews14",
)
StoreOption = Annotated[
    str, typer.Option("--models", envvar="ADATKG_STREAM_MODELS", help="Model store, a folder or URL.")
]
GraphArgument = Annotated[str, typer.Argument(help="The graph that the bundle answers for.")]
VersionArgument = Annotated[str, typer.Argument(help="As `list` shows it.")]
OfflineFlag = Annotated[
    bool, typer.Option("--offline", help="Change only the store: a worker learns of it at its next start.")
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.add_typer(models, name="models")


@models.command("list", epilog="Example: adatkg models list icews14 --models models --json")
def list_(
    graph: Annotated[str | None, typer.Argument(help="Only those of this graph.")] = None,
    store: StoreOption = "models",
    json: JsonFlag = False,
) -> None:
    """List bundles, the newest last: which one answers, how each was measured, and why it is where it is."""
    from adatkg_core.model_report import bundle_rows

    opened = _open(store, graph)
    rows = [row for name in ([graph] if graph else opened.graphs()) for row in bundle_rows(opened, name)]
    if json:
        print_json({"bundles": rows})
        return
    for name in dict.fromkeys(row["graph"] for row in rows):
        _show_graph(name, [row for row in rows if row["graph"] == name])
    if not rows:
        stdout.print(Text(f"{store}: no bundles; make one with `adatkg train --models`"))


@models.command(epilog="Example: adatkg models show icews14")
def show(
    graph: GraphArgument,
    version: Annotated[str | None, typer.Argument(help="As `list` shows it. [default: the present one]")] = None,
    store: StoreOption = "models",
    json: JsonFlag = False,
) -> None:
    """Show all that is known of a bundle, and whether it is sound."""
    from adatkg_core.model_report import describe_bundle

    opened = _open(store, graph)
    described = describe_bundle(opened, graph, _known(opened, graph, version or _present(opened, graph)))
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
    store: StoreOption = "models",
    bootstrap: BootstrapOption = None,
    topic_prefix: PrefixOption = None,
    json: JsonFlag = False,
) -> None:
    """Make a bundle the one that answers; one that is damaged or did worse than the present one is refused."""
    from adatkg_core.announcements import Announcement
    from adatkg_core.model_report import verdict_on

    opened = _open(store, graph)
    before = opened.present(graph)
    verdict = verdict_on(opened, graph, _known(opened, graph, version))
    _check(opened, graph, version, verdict, force)
    tell = _teller(offline, store, bootstrap, topic_prefix)
    opened.make_present(graph, version)
    opened.add_note(graph, version, status="present", reason="promoted by hand" + (", by force" if force else ""))
    tell(Announcement(graph, version, "present", "promoted by hand", verdict, force))
    _report(graph, version, before, offline, json)


@models.command(epilog="Example: adatkg models rollback icews14")
def rollback(
    graph: GraphArgument,
    offline: OfflineFlag = False,
    store: StoreOption = "models",
    bootstrap: BootstrapOption = None,
    topic_prefix: PrefixOption = None,
    json: JsonFlag = False,
) -> None:
    """Bring back the bundle that answered before the present one."""
    from adatkg_core.announcements import Announcement

    opened = _open(store, graph)
    line = opened.line(graph)
    if len(line) > 1 and line[1] in opened.versions(graph):  # else the store says what is missing
        _check(opened, graph, line[1], None, True)
    tell = _teller(offline, store, bootstrap, topic_prefix)
    version = opened.roll_back(graph)
    opened.add_note(graph, line[0], status="candidate", reason=f"rolled back by hand to {version}")
    tell(Announcement(graph, version, "present", "rolled back by hand", forced=True))
    _report(graph, version, line[0], offline, json)


# -- what is there --------------------------------------------------------------------------------------------


def _open(store: str, graph: str | None) -> ModelStore:
    from adatkg_core.errors import InputError
    from adatkg_core.model_store import ModelStore

    opened = ModelStore(store)
    if graph is not None and graph not in opened.graphs():
        known = ", ".join(opened.graphs()) or "none"
        raise InputError(f"{store}: no bundles of graph {graph}, only of: {known}; check the name and --models")
    return opened


def _known(store: ModelStore, graph: str, version: str) -> str:
    from adatkg_core.errors import InputError

    if version not in store.versions(graph):
        known = ", ".join(store.versions(graph)) or "none"
        raise InputError(f"{store.url}: graph {graph} has no bundle {version}; it has {known}")
    return version


def _present(store: ModelStore, graph: str) -> str:
    from adatkg_core.errors import InputError

    version = store.present(graph)
    if version is None:
        raise InputError(f"{store.url}: no bundle of graph {graph} is present; name one, or promote one")
    return version


def _show_graph(graph: str, rows: list[dict[str, Any]]) -> None:
    """A table that fits into 80 columns, and below it the reasons, which are sentences."""
    table = Table("version", "is", "created (UTC)", "MRR", "measured on", box=None)
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


def _check(store: ModelStore, graph: str, version: str, verdict: Verdict | None, forced: bool) -> None:
    """Raise for a bundle that must not answer; a present one that cannot be read is no reason to keep it."""
    from adatkg_core.errors import AdatkgError, InputError
    from adatkg_core.fitness import unfit

    candidate = store.bundle(graph, version)
    present: Bundle | None = None
    now = store.present(graph)
    if now is not None and now != version:
        try:
            present = store.bundle(graph, now)
        except AdatkgError as error:
            stderr.print(Text(printable(f"the present bundle cannot be compared with: {error}")))
    if (reason := unfit(candidate, present, graph, verdict, forced)) is not None:
        raise InputError(f"{store.url}: {reason}")


def _teller(
    offline: bool, store: str, bootstrap: str | None, topic_prefix: str | None
) -> Callable[[Announcement], None]:
    """What tells the workers. Brokers that do not answer are found out now, before the store is changed."""
    from adatkg_core.errors import AdatkgError
    from streams.announce import announce

    if offline:
        return lambda announcement: None
    connection, topics = reach(bootstrap, topic_prefix)

    def tell(announcement: Announcement) -> None:
        try:
            announce(connection, topics, announcement)
        except AdatkgError as error:
            remedy = f"`adatkg models promote {announcement.graph} {announcement.version} --force`"
            raise AdatkgError(
                f"{store}: bundle {announcement.version} of graph {announcement.graph} is present, but running workers "
                f"were not told; tell them with {remedy}: {error}"
            ) from error

    return tell


def _report(graph: str, version: str, before: str | None, offline: bool, json: bool) -> None:
    if json:
        print_json({"graph": graph, "version": version, "before": before, "announced": not offline})
        return
    told = "workers learn of it at their next start" if offline else "announced to the workers"
    stdout.print(Text(printable(f"{graph}: {version} is present, before it was {before or 'none'}; {told}")))

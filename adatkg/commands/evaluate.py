"""`adatkg evaluate`: measure a bundle on a data set, or the answers to a log against the log itself."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import orjson
import typer

from adatkg.console.completion import dataset_names
from adatkg.console.figures import conditions, grouped_table, shown
from adatkg.console.options import connection_of
from adatkg.console.output import JsonFlag, print_json, stdout
from adatkg.console.progress import progress_bar

LOG = "log:"  # before the name of a graph

if TYPE_CHECKING:
    from torch import Tensor

    from adatkg_core.datasets import Dataset
    from adatkg_core.evaluation import Asked, Watch


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: adatkg evaluate bundles/first icews14 --split test --json")(evaluate)


def evaluate(
    bundle: Annotated[str, typer.Argument(help="Folder or URL of a bundle; of the models for a log.")],
    dataset: Annotated[
        str,
        typer.Argument(
            help="A shipped name (icews14), a folder as of the benchmarks, or log:GRAPH.",
            autocompletion=dataset_names,
        ),
    ],
    protocol: Annotated[
        Literal["streaming", "snapshot"],
        typer.Option(help="streaming: each query alone, strictly causal, filtered. snapshot: as published papers do."),
    ] = "streaming",
    split: Annotated[Literal["train", "valid", "test"], typer.Option(help="Whose queries to ask.")] = "test",
    last: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Ask no further than this tick or ISO time.")
    ] = None,
    catalog: Annotated[
        Literal["all", "causal"],
        typer.Option(help="Candidates: all names from the start, or those of facts before the query."),
    ] = "all",
    without_memory: Annotated[
        bool, typer.Option("--without-memory", help="Every gate is zero: what the memories are worth.")
    ] = False,
    check_causality: Annotated[
        int, typer.Option(metavar="N", help="Ask N queries again of an engine that has nothing of their time or later.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Which queries --check-causality takes.")] = 0,
    per_query: Annotated[Path | None, typer.Option(help="Write one JSON line per query to this file.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    json: JsonFlag = False,
) -> None:
    """Replay a data set through the engine and rank every query, beside the recurrency heuristic.

    With --check-causality it fails if an answer differs. log:GRAPH answers a graph's log in Kafka anew, by the versions
    that it names, and fails if what was published differs or lacks.
    """
    if dataset.startswith(LOG):
        _evaluate_log(bundle, dataset.removeprefix(LOG), json)
        return
    from adatkg_core.clock import tick_of
    from adatkg_core.datasets import load_dataset
    from adatkg_core.errors import InputError
    from adatkg_core.evaluation import How, evaluate_bundle
    from adatkg_core.storage import load_bundle, resolve_device

    if check_causality < 0:
        raise InputError(f"--check-causality {check_causality}: give a number of queries")
    loaded = load_bundle(bundle, resolve_device(device))
    data = load_dataset(dataset)
    to = None if last is None else tick_of(last, data.clock, "--to")
    how = How(split, protocol, catalog, without_memory, check_causality, seed, to)
    with progress_bar() as report, _writer(per_query) as lines:
        result = evaluate_bundle(loaded, data, how, report=report, watch=_recorder(lines) if lines else None)
    if json:
        print_json(result)
    else:
        _show(result)
    if result.get("causality", {}).get("different"):
        raise typer.Exit(1)


def _evaluate_log(models: str, graph: str, json: bool) -> None:
    from adatkg_core.storage import ModelStore
    from streams.log_evaluation import evaluate_log
    from streams.settings import load_settings

    stream = load_settings(None, {})
    connection, topics = connection_of(None, None, None)
    with progress_bar() as report:
        report(f"log of {graph}", 0, None)
        result = evaluate_log(ModelStore(models), graph, connection, topics, late=stream.late, max_jump=stream.max_jump)
    if json:
        print_json(result)
    else:
        names = ("asked", "answered", "repeated", "missing", "different")
        mrr = "" if result["mrr"] is None else f"; MRR {shown(result['mrr'])}"
        stdout.print(f"{graph}: {', '.join(f'{result[name]:,} {name}' for name in names)}{mrr}", markup=False)
        for version, count in result["versions"].items():
            stdout.print(f"  {version}: {count:,} answers", markup=False)
        for problem in result["problems"]:
            stdout.print(f"  {problem}", markup=False)
    if result["missing"] or result["different"]:
        raise typer.Exit(1)


def _show(result: dict[str, Any]) -> None:
    columns = ("queries", "MRR", "hits@1", "hits@3", "hits@10", "MRR by\nrecurrency")

    def cells(figures: dict[str, Any], simple: dict[str, Any]) -> list[str]:
        mine = [shown(figures[metric]) for metric in ("mrr", "hits@1", "hits@3", "hits@10")]
        return [f"{figures['count']:,}", *mine, shown(simple["mrr"])]

    table = grouped_table(result, columns, cells)
    table.title = f"{result['bundle']}, {conditions(result)}"
    stdout.print(table)
    if "causality" in result:
        checked, different = result["causality"]["checked"], result["causality"]["different"]
        stdout.print(f"causality: of {checked:,} queries asked again without a future, {different:,} differ")


@contextlib.contextmanager
def _writer(path: Path | None) -> Iterator[Any]:
    """A file that gets its name only when it is whole."""
    from adatkg_core.errors import InputError

    if path is None:
        yield None
        return
    partial = path.with_name(path.name + ".partial")
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        lines = partial.open("wb")
    except OSError as error:
        raise InputError(f"--per-query {path}: cannot be written ({error.strerror}); give another file") from error
    try:
        with lines:
            yield lines
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _recorder(lines: Any) -> Watch:
    """Writes each query as a line."""

    def write(data: Dataset, asked: Asked, strata: dict[str, Tensor]) -> None:
        member = {name: mask.tolist() for name, mask in asked.slices.items()}
        stratum = {name: mask.tolist() for name, mask in strata.items()}
        columns = (asked.subject, asked.relation, asked.answer, asked.ranks.realistic, asked.interactions, asked.gate)
        for i, (s, r, o, rank, seen, gate) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            line = {
                "subject": data.entities[s],
                "relation": data.relations[r % data.n_relations],
                "object": data.entities[o],
                "time": asked.time,
                "direction": "inverse" if r >= data.n_relations else "forward",
                "rank": rank,
                "slices": [name for name in member if member[name][i]],
                "stratum": next(name for name in stratum if stratum[name][i]),
                "interactions": {"subject": seen[0], "object": seen[1]},
                "gate": gate,
            }
            lines.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    return write

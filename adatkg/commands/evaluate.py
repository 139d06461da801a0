"""`adatkg evaluate`: measure a bundle on a data set."""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import orjson
import typer
from rich.table import Table

from adatkg.console.completion import dataset_names
from adatkg.console.output import JsonFlag, print_json, stdout
from adatkg.console.progress import progress_bar

if TYPE_CHECKING:
    from adatkg_core.datasets import Dataset
    from adatkg_core.evaluation import Asked


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: adatkg evaluate bundles/first icews14 --split test --json")(evaluate)


def evaluate(
    bundle: Annotated[str, typer.Argument(help="Folder or URL of a bundle.")],
    dataset: Annotated[
        str,
        typer.Argument(
            help="A shipped name (icews14) or a folder in the benchmark layout.", autocompletion=dataset_names
        ),
    ],
    protocol: Annotated[
        Literal["streaming", "snapshot"],
        typer.Option(help="streaming: each query alone, strictly causal, filtered. snapshot: as published papers do."),
    ] = "streaming",
    split: Annotated[Literal["train", "valid", "test"], typer.Option(help="Whose queries to ask.")] = "test",
    per_query: Annotated[Path | None, typer.Option(help="Write one JSON line per query to this file.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    json: JsonFlag = False,
) -> None:
    """Replay a data set through the engine and rank every query, beside the recurrency heuristic."""
    from adatkg_core.datasets import aligned, load_dataset
    from adatkg_core.evaluation import measure, summarize
    from adatkg_core.storage import load_bundle, resolve_device

    loaded = load_bundle(bundle, resolve_device(device))
    raw = load_dataset(dataset)
    data = aligned(raw, loaded.entities, loaded.relations)
    engine = loaded.engine(entities=raw.entities)
    done, total = 0, 2 * len(data.split(split))
    began = time.perf_counter()
    with progress_bar() as report, _writer(per_query) as lines:

        def tell(count: int) -> None:
            nonlocal done
            done += count
            report(f"evaluate {split}", done, total)

        asked = measure(engine, data, split, protocol, tell)
        slices, baseline = summarize(_recorded(asked, data, lines) if lines else asked)
    result = {
        "protocol": protocol,
        "split": split,
        "encoder": loaded.model.config.model.encoder,
        "bundle": loaded.version,
        "slices": slices,
        "baseline": baseline,
        "queries_per_second": round(total / (time.perf_counter() - began), 1),
    }
    if json:
        print_json(result)
    else:
        _show(result)


def _show(result: dict[str, Any]) -> None:
    # No frame: the names of the slices and all figures then fit into 80 columns.
    table = Table("slice", "queries", "MRR", "hits@1", "hits@3", "hits@10", "MRR by\nrecurrency", box=None)
    for name, row in result["slices"].items():
        figures = [row[key] for key in ("mrr", "hits@1", "hits@3", "hits@10")] + [result["baseline"][name]["mrr"]]
        table.add_row(name, f"{row['count']:,}", *("–" if f is None else f"{f:.4f}" for f in figures))
    table.title = f"{result['bundle']}, {result['protocol']} protocol, {result['split']}"
    stdout.print(table)


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


def _recorded(asked: Iterable[Asked], data: Dataset, lines: Any) -> Iterator[Asked]:
    """Passes the queries on, each written as a line on the way."""
    for one in asked:
        member = {name: mask.tolist() for name, mask in one.slices.items()}
        columns = (one.subject, one.relation, one.answer, one.ranks.realistic, one.interactions, one.gate)
        for i, (s, r, o, rank, seen, gate) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            inverse = r >= data.n_relations
            line = {
                "subject": data.entities[s],
                "relation": data.relations[r % data.n_relations],
                "object": data.entities[o],
                "time": one.time,
                "direction": "inverse" if inverse else "forward",
                "rank": rank,
                "slices": [name for name in member if member[name][i]],
                "interactions": {"subject": seen[0], "object": seen[1]},
                "gate": gate,
            }
            lines.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        yield one

"""`adatkg train --from-log`: retrain a graph from its log and promote what is better."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adatkg.console.completion import graph_names
from adatkg.console.options import connect
from adatkg.console.output import print_json, stdout
from adatkg.console.progress import progress_bar

if TYPE_CHECKING:
    from adatkg_core.settings import Config
    from trainer import Round

_PANEL = "From the log"
FromLogOption = Annotated[
    str | None,
    typer.Option(
        help="Train on this graph's facts in Kafka and promote the bundle if it is better. ISO times are read by the "
        "present bundle's clock; without a bundle, a tick is a day since 1970.",
        metavar="GRAPH",
        autocompletion=graph_names,
        rich_help_panel=_PANEL,
    ),
]
EveryOption = Annotated[
    str | None,
    typer.Option(
        help="Again after 90s, 30m, 6h, 1d, 50000-facts, or a drop of the worker's MRR, drop-0.03. [default: once]",
        rich_help_panel=_PANEL,
    ),
]
ScoresOption = Annotated[
    str, typer.Option(help="The worker's page with the MRR that may drop.", rich_help_panel=_PANEL)
]
WarmStartOption = Annotated[
    bool, typer.Option("--warm-start", help="Begin with what the present bundle learned.", rich_help_panel=_PANEL)
]
WindowOption = Annotated[
    float, typer.Option(help="Newest share of the times, on which bundles are compared.", rich_help_panel=_PANEL)
]
MarginOption = Annotated[
    float, typer.Option(help="By how much the MRR must be better to be promoted.", rich_help_panel=_PANEL)
]
SliceOption = Annotated[
    str, typer.Option("--slice", help="Which queries decide, as in evaluate.", rich_help_panel=_PANEL)
]
KeepOption = Annotated[int, typer.Option(help="Bundles that stay in the store.", rich_help_panel=_PANEL)]
ArchiveOption = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the facts read so far and of the unfinished run. [default: the cache]", rich_help_panel=_PANEL
    ),
]
MetricsPortOption = Annotated[
    int, typer.Option(min=0, max=65_535, help="Port for Prometheus; 0 is none.", rich_help_panel=_PANEL)
]
MetricsHostOption = Annotated[str, typer.Option(help="Address of that port.", rich_help_panel=_PANEL)]


@dataclass(frozen=True)
class LogOptions:
    """The flags that only training from the log has."""

    graph: str
    models: str | None
    archive: Path | None
    every: str | None
    scores: str
    warm_start: bool
    window: float
    margin: float
    slice: str
    keep: int
    metrics_port: int
    metrics_host: str


def train_from_log(
    options: LogOptions,
    config: Config,
    device: str,
    bootstrap: str | None,
    prefix: str | None,
    file: Path | None,
    json: bool,
) -> None:
    """Rounds of training, each one line; a signal ends them cleanly."""
    from adatkg_core.errors import AdatkgError
    from adatkg_core.runtime import default_cache, stop_on_signals
    from streams.settings import load_settings
    from trainer import Plan, TrainingMetrics, log_trainer
    from trainer.retrain import DropWatch, Stopped, parse_every, run_rounds

    # How late and far-off facts are treated must be as in the worker, so it comes from the worker's settings.
    stream = load_settings(file, {"models": options.models})
    plan = Plan(
        options.graph,
        config,
        stream.models,
        options.archive or default_cache() / "archive",
        device,
        options.warm_start,
        options.window,
        options.margin,
        options.slice,
        options.keep,
        stream.max_jump,
        stream.late,
    )
    every = None if options.every is None else parse_every(options.every)
    watch = None if every is None or every.drop is None else DropWatch(options.scores, plan.graph, every.drop)
    connection, topics = connect(bootstrap, prefix, file)
    metrics = TrainingMetrics()
    with log_trainer(plan, connection, topics, metrics) as trainer, stop_on_signals() as stop:
        if options.metrics_port:
            metrics.serve(options.metrics_host, options.metrics_port)
        try:
            with progress_bar() as report:
                run_rounds(trainer, every, stop, lambda done: _tell(done, json), report, watch)
        except Stopped:
            if every is None:
                raise AdatkgError(f"{plan.graph}: stopped before the end; the same command goes on from here") from None


def _tell(done: Round, json: bool) -> None:
    if json:
        print_json(asdict(done))
        return
    scores = ""
    if done.scores is not None:
        present = done.scores["present"]
        scores = f", MRR {done.scores['candidate']:.4f}" + ("" if present is None else f" against {present:.4f}")
    name = done.graph if done.version is None else done.version
    stdout.print(f"{name}: {done.status}{scores}, {done.facts} facts in {done.seconds} s", markup=False)
    stdout.print(f"  {done.reason}", markup=False)

"""`adatkg retrain`: learn a graph's next bundle from its log and promote it if it is better."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adatkg.console.completion import graph_names
from adatkg.console.options import BootstrapOption, PrefixOption, connect
from adatkg.console.output import JsonFlag, print_json, stdout
from adatkg.console.progress import progress_bar
from adatkg.console.training_options import (
    DeviceOption,
    EpochsOption,
    ModelConfigOption,
    SeedOption,
    SetOption,
    load_retraining,
    load_training,
)

if TYPE_CHECKING:
    from trainer import Round


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: adatkg retrain icews14 --models models --warm-start --every 6h")(retrain)


def retrain(
    graph: Annotated[
        str, typer.Argument(help="The graph whose facts in Kafka it learns from.", autocompletion=graph_names)
    ],
    models: Annotated[str | None, typer.Option(help="Model store, a folder or URL. [default: models]")] = None,
    every: Annotated[
        str | None,
        typer.Option(
            help="Again after 90s, 30m, 6h, 1d, 50000-facts, or a drop of the MRR, drop-0.03. [default: once]"
        ),
    ] = None,
    warm_start: Annotated[
        bool, typer.Option("--warm-start", help="Begin with what the present bundle learned.")
    ] = False,
    config: ModelConfigOption = None,
    epochs: EpochsOption = None,
    margin: Annotated[
        float | None, typer.Option(help="By how much the MRR must be better to be promoted. [default: 0]")
    ] = None,
    archive: Annotated[
        Path | None, typer.Option(help="Folder of facts read and of the unfinished run. [default: the cache]")
    ] = None,
    seed: SeedOption = None,
    settings: SetOption = None,
    device: DeviceOption = "auto",
    bootstrap: BootstrapOption = None,
    topic_prefix: PrefixOption = None,
    json: JsonFlag = False,
) -> None:
    """Train on a graph's facts in Kafka, in rounds, and promote each bundle that is better.

    Run again after a kill, it goes on to the same result. The rest is set in [retrain] of the file, by
    ADATKG_RETRAIN_* or by --set: window, slice, keep, scores, metrics_port, metrics_host. Without a present bundle, a
    tick is a day since 1970.
    """
    from adatkg_core.errors import AdatkgError
    from adatkg_core.runtime import default_cache, stop_on_signals
    from adatkg_core.storage import resolve_device
    from streams.settings import load_settings
    from trainer import Plan, TrainingMetrics, log_trainer
    from trainer.retrain import DropWatch, Stopped, parse_every, run_rounds

    loaded, given, file = load_training(config, epochs, seed, settings)
    rules = load_retraining(file, given, margin=margin)
    # How late and far-off facts are treated must be as in the worker, so it comes from the worker's settings.
    stream = load_settings(file, {"models": models})
    plan = Plan(
        graph,
        loaded,
        stream.models,
        archive or default_cache() / "archive",
        resolve_device(device),
        warm_start,
        rules.window,
        rules.margin,
        rules.slice,
        rules.keep,
        stream.max_jump,
        stream.late,
    )
    when = None if every is None else parse_every(every)
    watch = None if when is None or when.drop is None else DropWatch(rules.scores, graph, when.drop)
    connection, topics = connect(bootstrap, topic_prefix, file)
    metrics = TrainingMetrics()
    with log_trainer(plan, connection, topics, metrics) as trainer, stop_on_signals() as stop:
        if rules.metrics_port:
            metrics.serve(rules.metrics_host, rules.metrics_port)
        try:
            with progress_bar() as report:
                run_rounds(trainer, when, stop, lambda done: _tell(done, json), report, watch)
        except Stopped:
            if when is None:
                raise AdatkgError(f"{graph}: stopped before the end; the same command goes on from here") from None


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

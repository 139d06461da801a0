"""`adatkg train`: learn a bundle from a data set, or from the log."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text

from adatkg.commands.retrain import (
    ArchiveOption,
    EveryOption,
    FromLogOption,
    KeepOption,
    LogOptions,
    MarginOption,
    MetricsHostOption,
    MetricsPortOption,
    ScoresOption,
    SliceOption,
    WarmStartOption,
    WindowOption,
    train_from_log,
)
from adatkg.console.completion import config_names, dataset_names
from adatkg.console.options import BootstrapOption, PrefixOption, connection_of
from adatkg.console.output import JsonFlag, print_json, printable, stderr, stdout
from adatkg.console.progress import progress_bar

if TYPE_CHECKING:
    from adatkg_core.datasets import Dataset
    from adatkg_core.storage import Bundle
    from adatkg_core.text import TextEncoder
    from streams.promotion import Tell


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    examples = "Example: adatkg train icews14 --config tiny --out bundles/first"
    app.command(epilog=examples)(train)


def train(
    dataset: Annotated[
        str | None,
        typer.Argument(
            help="A shipped name (icews14) or a folder in the benchmark layout.", autocompletion=dataset_names
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of a bare bundle; DIR.training beside it holds the run.")
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="Model store that the bundle goes into, as the present one of --graph.")
    ] = None,
    graph: Annotated[str | None, typer.Option(help="The graph it answers for, with --models.")] = None,
    state: Annotated[
        Literal["valid", "all", "none"],
        typer.Option(help="With --models: what the worker knows at its start, facts up to the end of valid, or all."),
    ] = "valid",
    last: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="Learn from what was known at this time, a tick or an ISO time: the newest tenth of the times "
            "(--window) is valid, there is no test.",
        ),
    ] = None,
    work: Annotated[
        Path | None, typer.Option(help="Folder of the unfinished run. [default: beside the bundle]")
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            help="A shipped configuration or a TOML file with [model], [recall] and [train]; its [kafka] and [stream] "
            "come on top of those of ADATKG_CONFIG. [default: live]",
            metavar="NAME|FILE",
            autocompletion=config_names,
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="At most so many epochs.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting, as section.key=value; may be repeated.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    replace: Annotated[bool, typer.Option(help="Overwrite a bundle that is already there.")] = False,
    from_log: FromLogOption = None,
    every: EveryOption = None,
    scores: ScoresOption = "http://127.0.0.1:6066/scores",
    warm_start: WarmStartOption = False,
    window: WindowOption = 0.1,
    margin: MarginOption = 0.0,
    slice: SliceOption = "all",
    keep: KeepOption = 5,
    archive: ArchiveOption = None,
    bootstrap: BootstrapOption = None,
    topic_prefix: PrefixOption = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="With --models: change only the store, and tell no running worker.")
    ] = False,
    metrics_port: MetricsPortOption = 0,
    metrics_host: MetricsHostOption = "127.0.0.1",
    json: JsonFlag = False,
) -> None:
    """Train on a data set, or on a graph's log, and write the bundle; run again after a kill, it goes on to the same
    result.

    Settings come from the configuration (without --config, from the file of ADATKG_CONFIG if it has some of a model),
    then ADATKG_SECTION_KEY variables, then flags.
    """
    from adatkg_core.clock import tick_of
    from adatkg_core.datasets import load_dataset, up_to
    from adatkg_core.errors import InputError
    from adatkg_core.settings import choose_config, config_file, environment_overrides, load_config
    from adatkg_core.storage import ModelStore, resolve_device, save_bundle
    from adatkg_core.text import load_encoder
    from trainer import train as run_training

    overrides = environment_overrides(os.environ) | _overrides(settings or [])
    if epochs is not None:
        overrides["train.epochs"] = epochs
    if seed is not None:
        overrides["train.seed"] = seed
    loaded = load_config(choose_config(config), overrides)
    chosen = resolve_device(device)
    if from_log is not None:
        if any(value is not None for value in (dataset, last, out, graph)):
            raise InputError(
                "--from-log GRAPH takes facts and graph from the log: leave out DATASET, --to, --out and --graph"
            )
        options = LogOptions(
            from_log,
            models,
            archive,
            every,
            scores,
            warm_start,
            window,
            margin,
            slice,
            keep,
            metrics_port,
            metrics_host,
        )
        train_from_log(options, loaded, chosen, bootstrap, topic_prefix, config_file(config), json)
        return
    if dataset is None:
        raise InputError("say what to train on: a data set, for example icews14, or --from-log GRAPH")
    if every is not None or warm_start:
        raise InputError("--every and --warm-start belong to --from-log GRAPH")
    _check_place(out, models, graph, replace)
    data = load_dataset(dataset)
    if last is not None:
        data = up_to(data, tick_of(last, data.clock, "--to"), window)
    if models is not None and graph is not None:
        _check_relations(models, graph, data)
    encoder = load_encoder(loaded.model.encoder, device=chosen)
    work = work or _work(out, models, graph)
    began = time.perf_counter()
    with progress_bar() as report:
        run = run_training(data, loaded, encoder, work, device=chosen, report=report)
    announced = False
    if out is not None:
        save_bundle(run.bundle, str(out), replace=replace)
        written = str(out)
    else:
        assert models is not None and graph is not None
        _put(run.bundle, data, encoder, models, graph, state)
        where = None if offline else (bootstrap, topic_prefix, config_file(config))
        announced = _promote(models, graph, run.bundle.version, f"trained from {data.name}", where)
        written = ModelStore(models).bundle_url(graph, run.bundle.version)
    shutil.rmtree(work / "checkpoint", ignore_errors=True)
    result = {
        "bundle": written,
        "version": run.bundle.version,
        "epochs": run.epochs,
        "best_epoch": run.best_epoch,
        "seconds": round(time.perf_counter() - began, 1),
        "valid": run.valid,
    }
    if models is not None:
        result["announced"] = announced
    if json:
        print_json(result)
        return
    score = run.valid["slices"]["all"]["mrr"]
    stdout.print(f"{written}: {run.bundle.version}, best of {run.epochs} epochs is {run.best_epoch}")
    stdout.print(f"valid, {run.valid['protocol']} protocol: MRR {score:.4f} in {result['seconds']} s")
    if announced:
        stdout.print("announced to the workers")
    elif models is not None:
        remedy = f"adatkg models promote {graph} {run.bundle.version} --models {models}"
        told = f"a worker that runs already takes it at its next start, or now by: {printable(remedy)}"
        stderr.print(Text(told), soft_wrap=True)


def _check_place(out: Path | None, models: str | None, graph: str | None, replace: bool) -> None:
    """Refuse before training what could not be written after it."""
    from adatkg_core.errors import InputError
    from adatkg_core.storage import artifact_exists, check_free

    if (out is None) == (models is None):
        raise InputError("say where the bundle goes: --out DIR for a bare one, or --models STORE --graph NAME")
    if (models is None) != (graph is None):
        raise InputError("--models and --graph belong together: the store, and the graph that the bundle answers for")
    if out is None:
        return
    if not out.name:
        raise InputError(f"--out {out}: name a folder that the bundle shall become, for example bundles/first")
    nearest = next(folder for folder in out.absolute().parents if folder.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise InputError(f"{out}: {nearest} is not a folder that can be written to; give another --out")
    if artifact_exists(out) and not replace:
        raise InputError(f"{out} is already a bundle; give another --out or --replace")
    check_free(out, "bundle", replace=replace)


def _work(out: Path | None, models: str | None, graph: str | None) -> Path:
    """Where the same command finds its run again after a kill."""
    from adatkg_core.runtime import default_cache
    from adatkg_core.storage import safe_name

    if out is not None:
        return out.with_name(out.name + ".training")
    return default_cache() / "training" / safe_name(f"{models}/{graph}")


def _check_relations(models: str, graph: str, data: Dataset) -> None:
    """Refuse before training what must not answer after it."""
    from adatkg_core.errors import AdatkgError, InputError
    from adatkg_core.storage import ModelStore, why_lacking

    store = ModelStore(models)
    version = store.present(graph)
    if version is None:
        return
    try:
        present = store.bundle(graph, version)
    except AdatkgError:
        return  # of no use as it is: whatever follows is better, and promotion says what is wrong with it
    if (reason := why_lacking(data.relations, present, f"data set {data.name}")) is not None:
        raise InputError(f"{models}, graph {graph}: {reason}")


def _put(
    bundle: Bundle,
    data: Dataset,
    encoder: TextEncoder,
    models: str,
    graph: str,
    extent: Literal["valid", "all", "none"],
) -> None:
    """Add the bundle and the state it starts from; nobody uses them yet."""
    from adatkg_core.storage import ModelStore
    from trainer import starting_state

    store = ModelStore(models)
    # The same data, configuration and seed give the same bundle again: then it is there already.
    if bundle.version not in store.versions(graph):
        state = None if extent == "none" else starting_state(bundle, data, encoder, graph, extent)
        store.put(graph, bundle, state)


def _promote(
    models: str, graph: str, version: str, reason: str, where: tuple[str | None, str | None, Path | None] | None
) -> bool:
    """Make the bundle present; returns whether running workers were told, which only those of another one need."""
    from adatkg_core.errors import AdatkgError, InputError
    from adatkg_core.storage import ModelStore
    from streams.promotion import promote, tell_nobody, teller

    store = ModelStore(models)
    tell: Tell = tell_nobody
    if where is not None and store.present(graph) is not None:
        try:
            tell = teller(*connection_of(*where), models)
        except AdatkgError as error:
            _warn(f"no running worker is told: {error}")
    try:
        promote(store, graph, version, lambda: tell, _warn, reason=reason)
    except InputError as error:
        store.add_note(graph, version, status="candidate", reason=str(error))
        raise
    return tell is not tell_nobody


def _warn(text: str) -> None:
    stderr.print(Text(printable(text)), soft_wrap=True)


def _overrides(settings: list[str]) -> dict[str, Any]:
    from adatkg_core.errors import InputError
    from adatkg_core.settings import parse_value

    found: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or "." not in key:
            raise InputError(f"--set {setting}: write section.key=value, for example train.lr=0.001")
        found[key.strip()] = parse_value(value.strip())
    return found

"""`adatkg train`: learn a bundle from a data set."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text
from typer.core import TyperCommand

from adatkg.console.completion import dataset_names
from adatkg.console.logs import silence_logs
from adatkg.console.options import connection_of
from adatkg.console.output import JsonFlag, print_json, printable, stderr, stdout
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
    from adatkg_core.datasets import Dataset
    from adatkg_core.storage import Bundle
    from adatkg_core.text import TextEncoder
    from streams.kafka import Connection, Topics
    from streams.promotion import Tell
    from trainer import Run

# How retraining was written before it was a command of its own, and those of its options that became settings.
_FROM_LOG = "--from-log"
_SETTINGS = ("--window", "--slice", "--keep", "--scores", "--metrics-port", "--metrics-host")


class TrainCommand(TyperCommand):
    """`adatkg train DATASET`; with `--from-log GRAPH` it is `adatkg retrain GRAPH`."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Parse the command line."""
        if parent is None or not any(word.partition("=")[0] == _FROM_LOG for word in args):
            return super().make_context(info_name, args, parent, **extra)
        retrain = parent.command.get_command(parent, "retrain")
        return retrain.make_context("retrain", _as_retrain(args), parent, **extra)


def _as_retrain(words: list[str]) -> list[str]:
    """The words of `adatkg train --from-log GRAPH …` as `adatkg retrain` wants them."""
    found, rest = [], iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in _SETTINGS:
            key = name.removeprefix("--").replace("-", "_")
            found += ["--set", f"retrain.{key}={value if equals else next(rest, '')}"]
        elif name == _FROM_LOG:
            found += [value] if equals else []
        else:
            found.append(word)
    return found


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(cls=TrainCommand, epilog="Example: adatkg train icews14 --config tiny --out bundles/first")(train)


def train(
    dataset: Annotated[
        str,
        typer.Argument(
            help="A shipped name (icews14) or a folder in the benchmark layout.", autocompletion=dataset_names
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder of a bare bundle; DIR.training beside it holds the run.")
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="Model store that the bundle goes into, as the present one of --graph.")
    ] = None,
    graph: Annotated[str | None, typer.Option(help="With --models: whom it answers for.")] = None,
    config: ModelConfigOption = None,
    epochs: EpochsOption = None,
    last: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="Learn from what was known at this tick or ISO time: its newest tenth (retrain.window) is valid.",
        ),
    ] = None,
    state: Annotated[
        Literal["valid", "all", "none"],
        typer.Option(help="With --models: the worker starts with facts up to the end of valid, or all."),
    ] = "valid",
    seed: SeedOption = None,
    settings: SetOption = None,
    device: DeviceOption = "auto",
    work: Annotated[
        Path | None, typer.Option(help="Folder of the unfinished run. [default: beside the bundle]")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite a bundle.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Tell no running worker of it.")] = False,
    json: JsonFlag = False,
) -> None:
    """Train on a data set and write the bundle; run again after a kill, it goes on to the same result.

    Settings come from the configuration (without --config, from the file of ADATKG_CONFIG if it has some of a model),
    then ADATKG_SECTION_KEY variables, then flags. Several processes train together where torchrun starts them:
    torchrun --nproc-per-node 2 -m adatkg train …
    """
    from adatkg_core.clock import tick_of
    from adatkg_core.datasets import load_dataset, up_to
    from adatkg_core.storage import ModelStore, resolve_device, save_bundle
    from adatkg_core.text import load_encoder
    from trainer import launched
    from trainer import train as run_training

    loaded, given, file = load_training(config, epochs, seed, settings)
    rules = load_retraining(file, given)
    began = time.perf_counter()
    with launched(resolve_device(device)) as (world, chosen):
        if not world.first:
            silence_logs()
        world.from_first(lambda: _check_place(out, models, graph, replace))
        work = work or _work(out, models, graph)
        data = load_dataset(dataset)
        if last is not None:
            data = up_to(data, tick_of(last, data.clock, "--to"), rules.window)
        if models is not None and graph is not None:
            world.from_first(lambda: _check_relations(models, graph, data))
        encoder = load_encoder(loaded.model.encoder, device=chosen)
        with progress_bar() if world.first else nullcontext(lambda stage, done, total: None) as report:
            run = run_training(data, loaded, encoder, work, device=chosen, world=world, report=report)
    if not world.first:
        return
    written, announced = str(out), False
    if out is not None:
        save_bundle(run.bundle, written, replace=replace)
    else:
        assert models is not None and graph is not None
        _put(run.bundle, data, encoder, models, graph, state)
        where = None if offline else (lambda: connection_of(None, None, file))
        announced = _promote(models, graph, run.bundle.version, f"trained from {data.name}", where)
        written = ModelStore(models).bundle_url(graph, run.bundle.version)
    shutil.rmtree(work / "checkpoint", ignore_errors=True)
    _tell(run, written, round(time.perf_counter() - began, 1), announced if models else None, json)
    if models is not None and not announced and not json:
        remedy = f"adatkg models promote {graph} {run.bundle.version} --models {models}"
        _warn(f"a worker that runs already takes it at its next start, or now by: {remedy}")


def _tell(run: Run, written: str, seconds: float, announced: bool | None, json: bool) -> None:
    if json:
        result = {"bundle": written, "version": run.bundle.version, "epochs": run.epochs, "best_epoch": run.best_epoch}
        result |= {"seconds": seconds, "valid": run.valid, "names": run.bundle.names.kind}
        print_json(result if announced is None else result | {"announced": announced})
        return
    score = run.valid["slices"]["all"]["mrr"]
    stdout.print(f"{written}: {run.bundle.version}, best of {run.epochs} epochs is {run.best_epoch}")
    stdout.print(f"valid, {run.valid['protocol']} protocol: MRR {score:.4f} in {seconds} s")
    kind = run.bundle.names.kind
    stdout.print(f"groups in names: {'none' if kind == 'none' else f'by {kind}'}")
    if announced:
        stdout.print("announced to the workers")


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
    models: str,
    graph: str,
    version: str,
    reason: str,
    where: Callable[[], tuple[Connection, Topics]] | None,
) -> bool:
    """Make the bundle present; returns whether running workers were told, which only those of another one need."""
    from adatkg_core.errors import AdatkgError, InputError
    from adatkg_core.storage import ModelStore
    from streams.promotion import promote, tell_nobody, teller

    store = ModelStore(models)
    tell: Tell = tell_nobody
    if where is not None and store.present(graph) is not None:
        try:
            tell = teller(*where(), models)
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

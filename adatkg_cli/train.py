"""`adatkg train`: learn a bundle from a data set."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from adatkg_cli.output import JsonFlag, print_json, stdout
from adatkg_cli.progress import progress_bar


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: adatkg train icews14 --config tiny --out bundles/first")(train)


def train(
    dataset: Annotated[str, typer.Argument(help="A shipped name (icews14) or a folder in the benchmark layout.")],
    out: Annotated[Path, typer.Option(help="Folder of the bundle; DIR.training beside it holds the run.")],
    config: Annotated[str, typer.Option(help="A shipped configuration or the path of a TOML file.")] = "live",
    epochs: Annotated[int | None, typer.Option(help="At most so many epochs.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting, as section.key=value; may be repeated.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    replace: Annotated[bool, typer.Option(help="Overwrite a bundle that is already there.")] = False,
    json: JsonFlag = False,
) -> None:
    """Train on a data set and write the bundle; run again after a kill, it goes on to the same result.

    Settings come from the configuration, then ADATKG_SECTION_KEY variables, then flags.
    """
    from adatkg_core.bundle import resolve_device, save_bundle
    from adatkg_core.config import environment_overrides, load_config
    from adatkg_core.datasets import load_dataset
    from adatkg_core.encoder import load_encoder
    from trainer import train as run_training

    _check_place(out, replace)
    overrides = environment_overrides(os.environ) | _overrides(settings or [])
    if epochs is not None:
        overrides["train.epochs"] = epochs
    if seed is not None:
        overrides["train.seed"] = seed
    loaded = load_config(config, overrides)
    data = load_dataset(dataset)
    chosen = resolve_device(device)
    encoder = load_encoder(loaded.model.encoder, device=chosen)
    work = out.with_name(out.name + ".training")
    began = time.perf_counter()
    with progress_bar() as report:
        run = run_training(data, loaded, encoder, work, device=chosen, report=report)
    save_bundle(run.bundle, str(out), replace=replace)
    shutil.rmtree(work / "checkpoint", ignore_errors=True)
    result = {
        "bundle": str(out),
        "version": run.bundle.version,
        "epochs": run.epochs,
        "best_epoch": run.best_epoch,
        "seconds": round(time.perf_counter() - began, 1),
        "valid": run.valid,
    }
    if json:
        print_json(result)
        return
    score = run.valid["slices"]["all"]["mrr"]
    stdout.print(f"{out}: {run.bundle.version}, best of {run.epochs} epochs is {run.best_epoch}")
    stdout.print(f"valid, {run.valid['protocol']} protocol: MRR {score:.4f} in {result['seconds']} s")


def _check_place(out: Path, replace: bool) -> None:
    """Refuse before training what could not be written after it."""
    from adatkg_core.errors import InputError
    from adatkg_core.store import artifact_exists, check_free

    if not out.name:
        raise InputError(f"--out {out}: name a folder that the bundle shall become, for example bundles/first")
    nearest = next(folder for folder in out.absolute().parents if folder.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise InputError(f"{out}: {nearest} is not a folder that can be written to; give another --out")
    if artifact_exists(out) and not replace:
        raise InputError(f"{out} is already a bundle; give another --out or --replace")
    check_free(out, "bundle", replace=replace)


def _overrides(settings: list[str]) -> dict[str, Any]:
    from adatkg_core.config import parse_value
    from adatkg_core.errors import InputError

    found: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or "." not in key:
            raise InputError(f"--set {setting}: write section.key=value, for example train.lr=0.001")
        found[key.strip()] = parse_value(value.strip())
    return found

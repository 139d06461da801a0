"""`adatkg bench accuracy`: one configuration, several seeds, means and deviations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from adatkg.console.completion import dataset_names
from adatkg.console.figures import conditions, grouped_table, shown
from adatkg.console.output import JsonFlag, print_json, stdout
from adatkg.console.progress import progress_bar
from adatkg.console.training_options import (
    DeviceOption,
    EpochsOption,
    ModelConfigOption,
    SetOption,
    load_training,
)
from adatkg_core.errors import InputError


def accuracy(
    dataset: Annotated[
        str,
        typer.Argument(
            help="A shipped name (icews14) or a folder in the benchmark layout.", autocompletion=dataset_names
        ),
    ],
    work: Annotated[Path, typer.Option(help="Folder that keeps each seed's bundle and result.")],
    config: ModelConfigOption = None,
    seeds: Annotated[str, typer.Option(help="Whole numbers, each a training of its own.")] = "1,2,3",
    split: Annotated[Literal["valid", "test"], typer.Option(help="Whose queries to ask.")] = "valid",
    protocol: Annotated[
        Literal["streaming", "snapshot"] | None,
        typer.Option(help="As in adatkg evaluate. [default: that of the configuration]"),
    ] = None,
    catalog: Annotated[Literal["all", "causal"], typer.Option(help="As in adatkg evaluate.")] = "all",
    epochs: EpochsOption = None,
    settings: SetOption = None,
    device: DeviceOption = "auto",
    json: JsonFlag = False,
) -> None:
    """Train a configuration once for each seed, measure each alike, and say means and deviations.

    What is finished in --work is not made again, and a training that was killed goes on. Choose by the valid split; the
    test split is for asking once, at the end.
    """
    from adatkg_core.datasets import load_dataset
    from adatkg_core.evaluation import How
    from adatkg_core.storage import resolve_device
    from adatkg_core.text import load_encoder
    from trainer import SeededRuns

    chosen = _parse_seeds(seeds)
    loaded, strange, _ = load_training(config, epochs, None, settings)
    if strange:
        raise InputError(f"--set retrain.{next(iter(strange))}: nothing is retrained here; leave it out")
    place = resolve_device(device)
    runs = SeededRuns(load_dataset(dataset), loaded, load_encoder(loaded.model.encoder, device=place), work, place)
    how = How(split, protocol or loaded.train.protocol, catalog)
    with progress_bar() as report:
        result = runs.measure(chosen, how, report)
    if json:
        print_json(result)
    else:
        _show(result)


def _parse_seeds(text: str) -> list[int]:
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"--seeds {text}: write whole numbers with commas, for example 1,2,3") from error
    if len(set(found)) < len(found):
        raise InputError(f"--seeds {text}: a seed stands there twice; give each once")
    return found


def _show(result: dict[str, Any]) -> None:
    def cells(figures: dict[str, Any], simple: dict[str, Any]) -> list[str]:
        both = [_spread(figures[metric]) for metric in ("mrr", "hits@10")]
        return [f"{figures['count']:,}", *both, shown(simple["mrr"])]

    table = grouped_table(result, ("queries", "MRR", "hits@10", "MRR by\nrecurrency"), cells)
    table.title = f"{result['dataset']}, seeds {', '.join(map(str, result['seeds']))}, {conditions(result)}"
    stdout.print(table)


def _spread(figure: dict[str, float | None]) -> str:
    return shown(figure["mean"]) + ("" if figure["deviation"] is None else f" ± {figure['deviation']:.4f}")

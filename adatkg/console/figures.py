"""Figures over many queries in a table of 80 columns: slices, strata, and subjects by their interactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rich.table import Table

TITLES = {"slices": "slice", "strata": "stratum", "by_interactions": "interactions of subject"}


def grouped_table(
    result: dict[str, Any], columns: Iterable[str], cells: Callable[[dict[str, Any], dict[str, Any]], Iterable[str]]
) -> Table:
    """A table with a part for each way in which the queries are parted; `cells` makes a row of the model's and the
    heuristic's figures."""
    from adatkg_core.evaluation import GROUPS

    # No frame: the names and all figures then fit.
    table = Table("", *columns, box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for key, baseline in GROUPS:
        table.add_row(f"[bold]{TITLES[key]}[/]")
        for name, figures in result[key].items():
            table.add_row(name, *cells(figures, result[baseline][name]))
    return table


def shown(figure: float | None) -> str:
    """Four decimals, or a dash where there was nothing to measure."""
    return "–" if figure is None else f"{figure:.4f}"


def conditions(result: dict[str, Any]) -> str:
    """Under which rules figures were measured, in words."""
    said = [f"{result['protocol']} protocol", result["split"]]
    if "to" in result:
        said.append(f"up to {result['to']}, {result['share_of_split']:.0%} of it")
    if result["catalog"] == "causal":
        said.append("candidates seen before")
    if result["without_memory"]:
        said.append("without memory")
    return ", ".join(said)

"""The page of speed: each benchmark with its limit and the figure of the latest whole run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from adatkg.commands.bench import Benchmark, benchmarks, shown, shown_beside
from docs.generator.markdown import code, document, table

FIGURES = Path(__file__).parents[1] / "results" / "speed.json"
INTRODUCTION = """
What `adatkg bench speed` measures, on two idle cores and beside its limits. Machines differ, so each figure stands
beside the rate of matrix products in the same run. `adatkg bench speed --json > docs/results/speed.json` and
`make reference` renew it. How costs grow, and what paid, is in [Performance](../performance.md).
"""


def page() -> str:
    """Every benchmark, explained where its module comes first; the file need not know all of them yet."""
    told: dict[str, dict[str, Any]] = {line["name"]: line for line in orjson.loads(FIGURES.read_bytes())["benchmarks"]}
    explained: set[Path] = set()
    rows = []
    for one in benchmarks().values():
        rows.append((*_figures(one, told.get(one.name)), "" if one.source in explained else one.about))
        explained.add(one.source)
    return document("Speed", INTRODUCTION, table(("benchmark", "limit", "value", "in the same run", "is"), rows))


def _figures(one: Benchmark, told: dict[str, Any] | None) -> tuple[str, ...]:
    value = shown(told["value"], one.unit) if told else "not measured yet"
    beside = shown_beside(told) if told else ""
    return code(one.name), one.shown_limit, value, beside

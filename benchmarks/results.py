"""How a benchmark tells its figure: one JSON object beside its limit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import orjson


def tell(name: str, value: float) -> None:
    """Print the figure, its limit and whether it holds; fail if it does not."""
    tell_all({name: value})


def tell_all(figures: Mapping[str, float]) -> None:
    """Print several figures of one run, each beside its limit; fail if one does not hold."""
    known = orjson.loads(Path(__file__).with_name("limits.json").read_bytes())
    held = True
    for name, value in figures.items():
        limit = {key: known[name][key] for key in ("unit", "limit", "bound")}
        ok = value >= limit["limit"] if limit["bound"] == "min" else value <= limit["limit"]
        print(orjson.dumps({"name": name, "value": round(value, 3), **limit, "ok": ok}).decode())
        held = held and ok
    if not held:
        raise SystemExit(1)

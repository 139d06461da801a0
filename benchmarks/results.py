"""How a benchmark tells a figure: one JSON object, beside its limit and what the machine did in the same run."""

from __future__ import annotations

from pathlib import Path

import orjson


def tell(name: str, value: float, **beside: float | str) -> None:
    """Print the figure, its limit, whether it holds, and `beside`, what it is to be read with.

    The rate of matrix products is measured now, unless the benchmark has done so between its own rounds.
    """
    known = orjson.loads(Path(__file__).with_name("limits.json").read_bytes())[name]
    limit = {key: known[key] for key in ("unit", "limit", "bound")}
    ok = value >= limit["limit"] if limit["bound"] == "min" else value <= limit["limit"]
    if "matmul_gflops" not in beside:
        from .matmul import matmul_gflops

        beside["matmul_gflops"] = matmul_gflops()
    said = {key: one if isinstance(one, str) else round(one, 3) for key, one in beside.items()}
    print(orjson.dumps({"name": name, "value": round(value, 3), **limit, "ok": ok, "beside": said}).decode())

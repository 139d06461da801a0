"""What is compiled on a CPU, made ready before anybody waits for it."""

from __future__ import annotations

from adatkg_core.engine.score_order import compile_order
from adatkg_core.evidence import compile_evidence


def compile_engine() -> None:
    """Have everything compiled, which takes seconds once on a machine."""
    from adatkg_core.engine.live_commit import prepare  # not at the top: numba takes half a second

    compile_evidence()
    prepare()
    compile_order()

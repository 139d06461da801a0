"""What the machine reaches in fp32 matrix products, beside which every speed is told."""

from __future__ import annotations

import time

import torch

SIZE, TIMES = 1_024, 12


def matmul_rate() -> float:
    """GFLOP/s, the best of a few."""
    one = torch.randn(SIZE, SIZE)
    best = 0.0
    for _ in range(TIMES):
        began = time.perf_counter()
        one @ one
        best = max(best, 2 * SIZE**3 / (time.perf_counter() - began) / 1e9)
    return best

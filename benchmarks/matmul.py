"""What the machine does in products of large matrices in single precision, beside which every speed is told."""

from __future__ import annotations

import os
import time
from functools import cache

import torch

SIZE, ROUNDS = 2048, 9


@cache
def matmul_gflops() -> float:
    """GFLOP a second on all cores; the middle of some products."""
    threads, square, seconds = torch.get_num_threads(), torch.rand(SIZE, SIZE), []
    torch.set_num_threads(os.cpu_count() or 1)
    for _ in range(ROUNDS):
        began = time.perf_counter()
        square @ square
        seconds.append(time.perf_counter() - began)
    torch.set_num_threads(threads)
    return 2 * SIZE**3 / sorted(seconds)[ROUNDS // 2] / 1e9

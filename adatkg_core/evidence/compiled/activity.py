"""How busy entities are, in one pass."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from adatkg_core.evidence.compiled.layout import ONE, ZERO, single
from adatkg_core.evidence.compiled.memory import floats, wide
from adatkg_core.runtime import compiled
from adatkg_core.state import GraphState

COLUMNS = 4


def activity_features(state: GraphState, rows: Tensor, time: int) -> Tensor:
    """Of entities [n]: logarithms of interactions, of quick and of slow counts, and recency [n, COLUMNS]."""
    features = torch.empty(rows.shape[0], COLUMNS, device=rows.device)
    get, recall = state.tensors, state.config.recall
    count, last = get["interactions"].data_ptr(), get["last_time"].data_ptr()
    fast, slow = get["activity_fast"].data_ptr(), get["activity_slow"].data_ptr()
    spans, into = (recall.fast, recall.slow), features.data_ptr()
    _write(rows.data_ptr(), rows.shape[0], count, last, fast, slow, time, *spans, into)
    return features


@compiled
def _write(
    rows: int,
    size: int,
    interactions: int,
    latest: int,
    fast: int,
    slow: int,
    time: int,
    quick: float,
    long: float,
    to: int,
) -> None:
    entity, count, last, features = wide(rows), wide(interactions), wide(latest), floats(to)
    quickly, slowly, quick_span, slow_span = floats(fast), floats(slow), single(quick), single(long)
    for i in range(size):
        row, at = entity[i], i * COLUMNS
        age = single(max(time - last[row], 0))
        features[at] = np.log1p(single(count[row]))
        features[at + 1] = np.log1p(quickly[row] * np.exp(-age / quick_span))
        features[at + 2] = np.log1p(slowly[row] * np.exp(-age / slow_span))
        features[at + 3] = ONE / (ONE + age) if count[row] > 0 else ZERO - ONE

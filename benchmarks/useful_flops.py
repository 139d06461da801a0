"""The arithmetic that the paper's model needs, however it is done, and the rate of matrix products it is held against.

A product of [a, b] and [b, c] counts as 2abc. What counts: linear layers and attention of the chain encoder for the
real tokens of distinct chains, the projection of each distinct relation and partner among them, the decoder, and the
product with every candidate; in training also name, prior and clusters of every entity and the gate of those that have
a memory. Forward counts once, with gradient three times; a commit encodes chains without gradient, which counts once.
What does not: padding, what is computed twice, norms, softmax, the optimizer, the filter, and the state.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor

from adatkg_core.settings import ModelConfig
from adatkg_core.state import Chains

SIZE = 2048  # of the square product


def of_chains(model: ModelConfig, text: int, chains: Chains) -> int:
    """Encoding the chains and pooling them for their readers."""
    dim = model.dim
    tokens, readers = int(chains.mask.sum()), int(chains.nonempty.sum())
    pairs = int(chains.mask.sum(1).pow(2).sum())  # of tokens that attend to each other
    layer = 16 * dim * dim * tokens + 4 * dim * pairs
    parts = 2 * dim * (text * _distinct(chains.other) + dim * _distinct(chains.relation))
    pooled = int(chains.mask.sum(1)[chains.of_reader].sum())
    return model.layers * layer + parts + 4 * dim * dim * readers + 4 * dim * pooled


def of_queries(model: ModelConfig, queries: int, candidates: int) -> int:
    """Decoding the queries and holding them against every candidate."""
    dim = model.dim
    decoder = 4 * model.filters * model.kernel * dim + 2 * model.filters * dim * dim
    return queries * (decoder + 2 * dim * candidates)


def of_entities(model: ModelConfig, text: int, entities: int, remembering: int) -> int:
    """Names, prior and clusters of all entities, and the gate of those with a memory."""
    dim = model.dim
    each = 2 * dim * text + 4 * dim * dim + 2 * dim * model.codes
    return entities * each + 4 * dim * dim * remembering


def _distinct(ids: Tensor) -> int:
    return int(torch.bincount(ids).count_nonzero())


def product_seconds() -> float:
    """What a square product takes now."""
    square = torch.rand(SIZE, SIZE)
    began = time.perf_counter()
    square @ square
    return time.perf_counter() - began


def product_rate(seconds: list[float]) -> float:
    """FLOP/s at the median of such products."""
    return 2 * SIZE**3 / sorted(seconds)[len(seconds) // 2]

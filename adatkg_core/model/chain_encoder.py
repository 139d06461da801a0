"""The chain encoder: a Transformer whose linear work is done on real tokens only, never on padding.

What tokens have in common is computed once: a part of a token for each distinct relation, partner and age, and what
the first layer makes of a fact before it looks at others for each distinct fact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from adatkg_core.settings import ModelConfig
from adatkg_core.state import Chains

Vectors = Callable[[Tensor], Tensor]  # rows [n] -> [n, …]


@dataclass(frozen=True)
class Places:
    """Where the M tokens of C chains stand when each chain is padded to L places."""

    mask: Tensor  # [C, L] True where a token stands
    filled: Tensor  # [M] the tokens' places in the mask when flat
    token: Tensor  # [C, L] which token stands there, any where none does
    bias: Tensor  # [C, 1, 1, L] what attention adds: nothing for a token, -inf for padding


def places_of(mask: Tensor, dtype: torch.dtype) -> Places:
    """The places of tokens packed in the order of the mask [C, L]."""
    filled = mask.reshape(-1).nonzero().squeeze(1)
    token = torch.zeros(mask.numel(), dtype=torch.int64, device=mask.device)
    token[filled] = torch.arange(filled.shape[0], device=mask.device)
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -torch.inf)
    return Places(mask, filled, token.view(mask.shape), bias[:, None, None, :])


class ChainLayer(nn.Module):
    """A pre-norm Transformer layer over packed tokens."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_forward = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.widen, self.narrow = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor, places: Places, number: Tensor | None = None) -> Tensor:
        """vectors [M, d] of the tokens -> [M, d]; or [F, d] of distinct ones, `number` [M] saying which each is."""
        qkv = self.qkv(self.norm_attention(vectors))
        if number is None:
            tokens, at = vectors, places.token
        else:
            tokens, at = F.embedding(number, vectors), number[places.token]
        tokens = tokens + self.dropout(self.out(self._attend(F.embedding(at, qkv), places)))
        mixed: Tensor = tokens + self.dropout(self.narrow(F.relu(self.widen(self.norm_forward(tokens)))))
        return mixed

    def _attend(self, qkv: Tensor, places: Places) -> Tensor:
        chains, length, width = qkv.shape
        heads = qkv.view(chains, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = heads.unbind(0)  # [C, heads, L, d / heads]
        # Plain products: the fused kernel is made for long sequences and is slower on these short ones.
        scale = math.sqrt(width // (3 * self.heads))
        weight = (query / scale @ key.transpose(2, 3) + places.bias).softmax(-1)
        return (weight @ value).transpose(1, 2).reshape(chains * length, -1).index_select(0, places.filled)


class ChainEncoder(nn.Module):
    """Chains to one vector per reader: each fact is a token, pooled by the reader's relation.

    A token is the sum of relation, partner and age, each normed and as wide as the whole; or the four quarters of
    entity, relation, partner and age.
    """

    def __init__(self, entity_dim: int, config: ModelConfig) -> None:
        super().__init__()
        dim = config.dim
        self.window = config.chain_window
        summed = config.token == "sum"
        part = dim if summed else dim // 4
        self.entity, self.relation = nn.Linear(entity_dim, part), nn.Linear(dim, part)
        self.age = nn.Linear(2, part)
        self.part_norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(3)) if summed else None
        self.layers = nn.ModuleList(ChainLayer(dim, config.heads, config.dropout) for _ in range(config.layers))
        self.ask, self.answer = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, chains: Chains, entities: Vectors, relations: Tensor, asked: Tensor) -> Tensor:
        """What entities begin with, vectors of relations [2R, d], readers' relations [B, d] -> [B, d].

        An empty chain gives exactly zero.
        """
        if chains.entity.shape[0] == 0:
            return torch.zeros_like(asked)
        # A chain without tokens would attend to nothing; it takes part in no layer and pools to zero.
        places = places_of(chains.mask[chains.mask[:, 0]], asked.dtype)
        tokens, number = self._facts(chains, entities, relations), chains.fact
        for i, layer in enumerate(self.layers):
            tokens = layer(tokens, places, number if i == 0 else None)
        tokens = self.norm(tokens)
        row = chains.mask[:, 0].cumsum(0) - 1  # of a chain among the non-empty ones
        some = chains.nonempty
        mine = row[chains.of_reader[some]]
        pooled = self._pool(F.embedding(places.token[mine], tokens), asked[some], places.mask[mine])
        return asked.new_zeros(asked.shape[0], pooled.shape[1]).index_copy(0, some.nonzero().squeeze(1), pooled)

    def _pool(self, values: Tensor, asked: Tensor, mask: Tensor) -> Tensor:
        """Tokens [B, L, d] of readers whose relations are asked [B, d] -> [B, d]."""
        question = self.ask(asked)
        # (W v + b) · q = v · (Wᵀ q) + b · q: the answer is folded into the questions, which are fewer than the tokens.
        by_value, by_bias = question @ self.answer.weight, question @ self.answer.bias
        weight = ((values @ by_value.unsqueeze(-1)).squeeze(-1) + by_bias.unsqueeze(1)) / math.sqrt(asked.shape[1])
        weight = weight.masked_fill(~mask, -torch.inf).softmax(1)
        pooled: Tensor = (weight.unsqueeze(1) @ values).squeeze(1)
        return pooled

    def _facts(self, chains: Chains, entities: Vectors, relations: Tensor) -> Tensor:
        """The distinct facts of the chains as tokens, [F, d]."""

        def stamp(age: Tensor) -> Tensor:
            ticks = age.to(relations.dtype)
            return self.age(torch.stack((ticks / self.window, torch.log1p(ticks)), 1))  # type: ignore[no-any-return]

        by_relation, by_other, by_age = self.part_norms or (nn.Identity(), nn.Identity(), nn.Identity())
        relation = _once(lambda kind: by_relation(self.relation(F.embedding(kind, relations))), chains.relation)
        other = _once(lambda row: by_other(self.entity(entities(row))), chains.other)
        age = _once(lambda ticks: by_age(stamp(ticks)), chains.age)
        if self.part_norms is None:
            return torch.cat((_once(lambda row: self.entity(entities(row)), chains.entity), relation, other, age), 1)
        # Without the entity itself: it is the same in every token of its chain and says nothing about any of them.
        tokens: Tensor = relation + other + age
        return tokens


def _once(part: Vectors, key: Tensor) -> Tensor:
    """The part of each key [n], computed once for each distinct one, [n, d]."""
    distinct, number = torch.unique(key, return_inverse=True)
    return F.embedding(number, part(distinct))

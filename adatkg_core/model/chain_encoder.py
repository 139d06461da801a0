"""The chain encoder: a Transformer whose linear work is done on real tokens only, never on padding."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from adatkg_core.settings import ModelConfig
from adatkg_core.state import Chains


class ChainLayer(nn.Module):
    """A pre-norm Transformer layer over packed tokens."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_forward = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.widen, self.narrow = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, mask: Tensor, place: Tensor) -> Tensor:
        """tokens [M, d], mask [C, L], their places in it when flat [M] -> [M, d]."""
        tokens = tokens + self.dropout(self.out(self._attend(self.qkv(self.norm_attention(tokens)), mask, place)))
        mixed: Tensor = tokens + self.dropout(self.narrow(F.relu(self.widen(self.norm_forward(tokens)))))
        return mixed

    def _attend(self, qkv: Tensor, mask: Tensor, place: Tensor) -> Tensor:
        chains, length = mask.shape
        padded = unpack(qkv, mask, place).view(chains, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = padded.unbind(0)  # [C, heads, L, d / heads]
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None, :])
        return mixed.transpose(1, 2).reshape(chains * length, -1).index_select(0, place)


def unpack(tokens: Tensor, mask: Tensor, place: Tensor) -> Tensor:
    """Packed tokens [M, n] at their places in [C, L, n], zeros elsewhere."""
    return tokens.new_zeros(mask.numel(), tokens.shape[1]).index_copy(0, place, tokens).view(*mask.shape, -1)


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

    def forward(self, chains: Chains, entity: Tensor, other: Tensor, relation: Tensor, asked: Tensor) -> Tensor:
        """Vectors of the tokens' entities, others and relations [M, …], readers' relations [B, d] -> [B, d].

        An empty chain gives exactly zero.
        """
        if chains.entity.shape[0] == 0:
            return torch.zeros_like(asked)
        tokens = self._tokens(chains, entity, other, relation)
        # A chain without tokens would attend to nothing; it takes part in no layer and pools to zero.
        full = chains.mask[chains.mask[:, 0]]
        place = full.reshape(-1).nonzero().squeeze(1)
        for layer in self.layers:
            tokens = layer(tokens, full, place)
        tokens = self.norm(tokens)
        values = unpack(tokens, full, place)  # [C', L, d]
        keys = unpack(self.answer(tokens), full, place)
        row = chains.mask[:, 0].cumsum(0) - 1  # of a chain among the non-empty ones
        some = chains.nonempty
        mine = row[chains.of_reader[some]]
        weight = (keys[mine] @ self.ask(asked[some]).unsqueeze(-1)).squeeze(-1) / math.sqrt(asked.shape[1])
        weight = weight.masked_fill(~full[mine], -torch.inf).softmax(1)
        pooled = (weight.unsqueeze(1) @ values[mine]).squeeze(1)
        return asked.new_zeros(asked.shape[0], pooled.shape[1]).index_put((some.nonzero().squeeze(1),), pooled)

    def _tokens(self, chains: Chains, entity: Tensor, other: Tensor, relation: Tensor) -> Tensor:
        age = chains.age.to(relation.dtype)
        stamp = self.age(torch.stack((age / self.window, torch.log1p(age)), 1))
        if self.part_norms is None:
            return torch.cat((self.entity(entity), self.relation(relation), self.entity(other), stamp), 1)
        # Without the entity itself: it is the same in every token of its chain and says nothing about any of them.
        by_relation, by_other, by_age = self.part_norms
        tokens: Tensor = by_relation(self.relation(relation)) + by_other(self.entity(other)) + by_age(stamp)
        return tokens

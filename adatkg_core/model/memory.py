"""Memory operators: how an entity's memory takes in a new signal, and how it is read.

Each keeps one tensor of `shape` per entity, zero at the start. All learnable weight is in the shared rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from adatkg_core.settings import ModelConfig


@dataclass(frozen=True)
class Members:
    """Who is updated or read: ids, clusters, and how many updates each has had."""

    entity: Tensor  # [U]
    cluster: Tensor  # [U]
    updates: Tensor  # [U]


class MemoryOperator(nn.Module):
    """The rule m' = U(m, x); the memory itself is state and carries no weight."""

    shape: tuple[int, ...]

    def update(self, memory: Tensor, signal: Tensor, members: Members) -> Tensor:
        """memory [U, *shape], signal [U, d] -> the new memory."""
        raise TypeError(f"{type(self).__name__} must define update")

    def read(self, memory: Tensor, asked: Tensor, members: Members) -> Tensor:
        """memory [U, *shape], asked [U, d] -> m [U, d]."""
        return memory

    def settle(self, updates: Tensor, cluster: Tensor) -> None:
        """Called when training ends with each entity's updates [E] and cluster [E]."""


class Ema(MemoryOperator):
    """m' = a m + (1 - a) x with one decay shared by all, one per dimension, or one per entity.

    With a decay per entity, those that training never updated use the mean decay of their cluster.
    """

    trained: Tensor
    cluster_rho: Tensor

    def __init__(self, dim: int, decay: str, entities: int, codes: int) -> None:
        super().__init__()
        self.shape = (dim,)
        size = {"shared": 1, "dimension": dim, "entity": entities}[decay]
        self.per_entity = decay == "entity"
        self.rho = nn.Parameter(torch.full((size,), 2.0))
        self.register_buffer("trained", torch.ones(entities if self.per_entity else 0, dtype=torch.bool))
        self.register_buffer("cluster_rho", torch.full((codes if self.per_entity else 0,), 2.0))

    def update(self, memory: Tensor, signal: Tensor, members: Members) -> Tensor:
        """The moving average."""
        alpha = torch.sigmoid(self._rho(members))
        return alpha * memory + (1 - alpha) * signal

    def _rho(self, members: Members) -> Tensor:
        if not self.per_entity:
            return self.rho
        own = members.entity.clamp(max=self.rho.shape[0] - 1)
        seen = (members.entity < self.rho.shape[0]) & (self.trained[own] | self.training)
        return torch.where(seen, self.rho[own], self.cluster_rho[members.cluster]).unsqueeze(1)

    @torch.no_grad()
    def settle(self, updates: Tensor, cluster: Tensor) -> None:
        """Record whom training updated, and the mean decay of each cluster's members among them."""
        if not self.per_entity:
            return
        known = self.rho.shape[0]
        self.trained.copy_(updates[:known] > 0)
        rho, group = self.rho[self.trained], cluster[:known][self.trained]
        size = torch.bincount(group, minlength=self.cluster_rho.shape[0])
        total = torch.zeros_like(self.cluster_rho).index_add_(0, group, rho)
        overall = rho.mean() if rho.numel() else self.rho.mean()
        self.cluster_rho.copy_(torch.where(size > 0, total / size.clamp(min=1), overall))


class Gru(MemoryOperator):
    """m' = GRUCell(x, m)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.shape = (dim,)
        self.cell = nn.GRUCell(dim, dim)

    def update(self, memory: Tensor, signal: Tensor, members: Members) -> Tensor:
        """One step of the cell."""
        step: Tensor = self.cell(signal, memory)
        return step


class Attention(MemoryOperator):
    """A ring of the latest signals, read by cross-attention with the entity's own vector as the question."""

    def __init__(self, dim: int, ring: int, heads: int) -> None:
        super().__init__()
        self.shape = (ring, dim)
        self.heads = heads
        self.ask, self.key, self.value, self.out = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def update(self, memory: Tensor, signal: Tensor, members: Members) -> Tensor:
        """Write the signal over the oldest place of the ring."""
        place = torch.arange(self.shape[0], device=memory.device) == (members.updates % self.shape[0]).unsqueeze(1)
        return torch.where(place.unsqueeze(-1), signal.unsqueeze(1), memory)

    def read(self, memory: Tensor, asked: Tensor, members: Members) -> Tensor:
        """Keys and values are folded into the question and the answer: the ring itself is never projected."""
        n, dim = asked.shape
        filled = members.updates.clamp(max=self.shape[0]).unsqueeze(1)
        mask = torch.arange(self.shape[0], device=memory.device) < filled  # [U, K]
        mask = mask | (filled == 0)  # an empty ring is all zeros and reads as zero
        question = self.ask(asked).view(n, self.heads, dim // self.heads)
        key = self.key.weight.view(self.heads, -1, dim)
        score = torch.einsum("nhc,hcd->nhd", question, key) @ memory.transpose(1, 2)  # [U, heads, K]
        weight = (score / math.sqrt(dim // self.heads)).masked_fill(~mask.unsqueeze(1), -torch.inf).softmax(-1)
        value = self.value.weight.view(self.heads, -1, dim)
        mixed = torch.einsum("nhd,hcd->nhc", weight @ memory, value).reshape(n, dim)
        answer: Tensor = self.out(mixed)
        return answer


def memory_operator(config: ModelConfig, entities: int) -> MemoryOperator | None:
    """The operator that a configuration names, or None for the memoryless model."""
    if config.memory == "ema":
        return Ema(config.dim, config.decay, entities, config.codes)
    if config.memory == "gru":
        return Gru(config.dim)
    if config.memory == "attention":
        return Attention(config.dim, config.ring, heads=4)
    return None


class Gate(nn.Module):
    """How far the memory replaces the prior: exactly nothing for an entity without an update."""

    def __init__(self, dim: int, kind: str) -> None:
        super().__init__()
        self.weight = nn.Linear(2 * dim, dim) if kind == "adaptive" else None

    def forward(self, base: Tensor, memory: Tensor, updates: Tensor) -> Tensor:
        """base h [n, d], memory m [n, d] -> g [n, d]."""
        if self.weight is None:
            gate = torch.full_like(base, 0.5)
        else:
            by_base, by_memory = self.weight.weight.chunk(2, 1)  # W [h || m] in two halves: nothing is joined
            gate = torch.sigmoid(F.linear(base, by_base, self.weight.bias) + F.linear(memory, by_memory))
        return gate * (updates > 0).unsqueeze(1)

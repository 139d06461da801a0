"""Small tensor helpers: growth by doubling, ragged expansion, grouping."""

from __future__ import annotations

import torch
from torch import Tensor

from adatkg_core.runtime import give_back_freed_memory, lasting_zeros

LARGE = 32 << 20  # bytes of a tensor that grows, from which on those that have grown before it must not lie about


def grown(tensor: Tensor, rows: int, fill: float = 0) -> Tensor:
    """The tensor with room for `rows` rows, its length doubled as often as needed."""
    length = max(tensor.shape[0], 1)
    while length < rows:
        length *= 2
    if length == tensor.shape[0]:
        return tensor
    if tensor.nbytes >= LARGE:
        give_back_freed_memory()
    shape = length, *tensor.shape[1:]
    larger = lasting_zeros(shape, tensor.dtype) if tensor.device.type == "cpu" else tensor.new_zeros(shape)
    larger[: tensor.shape[0]] = tensor
    larger[tensor.shape[0] :] = fill  # zeros too: their pages are made now, and not while facts are taken in
    return larger


def arange_like(n: int, like: Tensor) -> Tensor:
    """0..n-1 as int64 on the device of `like`."""
    return torch.arange(n, device=like.device)


def ragged(counts: Tensor) -> tuple[Tensor, Tensor]:
    """For counts [n]: the owner of each of the sum(counts) elements and its offset inside the owner."""
    owner = torch.repeat_interleave(counts)
    starts = counts.cumsum(0) - counts
    return owner, arange_like(owner.shape[0], counts) - starts[owner]


def rank_in_group(keys: Tensor) -> Tensor:
    """How many equal keys stand before each element, in the order given."""
    order = torch.argsort(keys, stable=True)
    _, counts = torch.unique_consecutive(keys[order], return_counts=True)
    _, offset = ragged(counts)
    rank = torch.empty_like(offset)
    rank[order] = offset
    return rank


def group_mean(values: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """The mean of `values` [n, ...] over each of the groups, zero for an empty one."""
    total, size = group_sums(values, group, n_groups)
    return total / size.clamp(min=1).view(-1, *[1] * (values.dim() - 1))


def group_sums(values: Tensor, group: Tensor, n_groups: int) -> tuple[Tensor, Tensor]:
    """The sum of `values` [n, ...] over each of the groups, and how many there are in it."""
    total = values.new_zeros((n_groups, *values.shape[1:])).index_add(0, group, values)
    return total, values.new_zeros(n_groups).index_add(0, group, torch.ones_like(group, dtype=values.dtype))


def distinct_places(place: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The distinct of places [M] below `size`, ascending [U], and a table [size] that has the number of each of them.

    What the table says elsewhere is undefined. No sort: for places that are dense among `size` this is quicker.
    """
    there = torch.zeros(size, dtype=torch.bool, device=place.device)
    there[place] = True
    distinct = there.nonzero().squeeze(1)
    number = torch.empty(size, dtype=torch.int64, device=place.device)
    number[distinct] = arange_like(distinct.shape[0], place)
    return distinct, number


def unique_triples(a: Tensor, b: Tensor, c: Tensor) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
    """The distinct (a, b, c) of non-negative columns in ascending order, and how often each occurs."""
    n_b, n_c = b.max() + 1, c.max() + 1
    key, counts = torch.unique((a * n_b + b) * n_c + c, return_counts=True)
    return (key // (n_b * n_c), key // n_c % n_b, key % n_c), counts

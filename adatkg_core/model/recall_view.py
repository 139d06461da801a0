"""What the recall head has read of a state, kept from query to query; whoever changes the state says which rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor

from adatkg_core.state import grown

T = TypeVar("T")
Index = Any  # a slice or a tensor of rows


@dataclass(frozen=True)
class FarEnd:
    """Who was seen at the far end of some relations, one relation after the other."""

    owner: Tensor  # [M] which of the relations asked for, ascending
    other: Tensor  # [M]
    features: Tensor  # [M, …]
    value: Tensor  # [M] what that is worth


class KeptRows:
    """Rows of entities, computed when they are first wanted, and again when they are stale."""

    def __init__(self) -> None:
        self._tensors: tuple[Tensor, ...] = ()
        self._known = 0
        self._stale: list[Tensor] = []

    def renew(self, rows: Tensor) -> None:
        """These are stale."""
        if self._tensors:
            self._stale.append(rows)

    def get(self, entities: int, n: int, compute: Callable[[Index], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """The first n rows; those from `entities` on belong to strangers and are computed each time."""
        if not self._tensors:
            self._tensors = tuple(grown(part, n) for part in compute(slice(0, n)))
        else:
            if self._known < n:
                self._write(slice(self._known, n), compute)
            if self._stale:
                self._write(torch.cat(self._stale), compute)
        self._stale.clear()
        self._known = entities
        return tuple(part[:n] for part in self._tensors)

    def _write(self, rows: Index, compute: Callable[[Index], tuple[Tensor, ...]]) -> None:
        if isinstance(rows, slice):
            self._tensors = tuple(grown(part, rows.stop) for part in self._tensors)
        for part, values in zip(self._tensors, compute(rows), strict=True):
            part[rows] = values


@dataclass
class _Part:
    """The far end of one relation, its values as of a version of the view."""

    other: Tensor
    features: Tensor
    value: Tensor
    version: int


@dataclass
class _Moment:
    """What is known as of one time."""

    time: int
    activity: KeptRows = field(default_factory=KeptRows)
    parts: dict[str, dict[int, _Part]] = field(default_factory=dict)


class RecallView:
    """It belongs to a state, whose changes it is told of, and to certain parameters. In training nothing is kept."""

    def __init__(self, entities: int = 0) -> None:
        self._entities = entities
        self._version = 0  # how often the state has changed
        self._changed: Tensor | None = None  # [N] the version at which each entity did last
        self._moment = _Moment(0)
        self._names = KeptRows()
        self._once: dict[str, tuple[int, Any]] = {}

    def grow(self, entities: int) -> None:
        """The first so many rows are entities now; those before are as they were."""
        self._entities = entities

    def renew(self, entities: Tensor, relations: Tensor) -> None:
        """The state has changed in the rows of these entities and relations."""
        self._version += 1
        before = entities.new_zeros(0) if self._changed is None else self._changed
        self._changed = grown(before, self._entities)
        self._changed[entities] = self._version
        self._moment.activity.renew(entities)
        for parts in self._moment.parts.values():
            for relation in relations.tolist():
                parts.pop(relation, None)

    def names(self, text: Tensor, project: Callable[[Tensor], Tensor]) -> Tensor:
        """The projected names of `text` [n, T]."""
        if torch.is_grad_enabled():
            return project(text)
        return self._names.get(self._entities, text.shape[0], lambda rows: (project(text[rows]),))[0]

    def activity(self, n: int, time: int, read: Callable[[Index], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """What `read` gives for the first n rows as of a time."""
        if torch.is_grad_enabled():
            return read(slice(0, n))
        return self._at(time).activity.get(self._entities, n, read)

    def once(self, name: str, read: Callable[[], T]) -> T:
        """What `read` gives of the state, read again when the state has changed."""
        found = self._once.get(name)
        if found is None or found[0] != self._version:
            found = self._once[name] = (self._version, read())
        value: T = found[1]
        return value

    def far_end(
        self,
        table: str,
        kinds: Tensor,
        time: int,
        read: Callable[[Tensor], tuple[Tensor, Tensor, Tensor]],
        weigh: Callable[[Tensor, Tensor, Tensor], Tensor],
    ) -> FarEnd:
        """That of distinct relations [Q]: `read` gives owner, other and features, `weigh` their values.

        A value depends on the activity of the entity as well, so it is weighed again where that has changed.
        """
        if torch.is_grad_enabled():
            owner, other, features = read(kinds)
            return FarEnd(owner, other, features, weigh(kinds[owner], other, features))
        parts = self._at(time).parts.setdefault(table, {})
        wanted = kinds.tolist()
        self._read_missing(parts, [kind for kind in wanted if kind not in parts], kinds, read, weigh)
        chosen = [parts[kind] for kind in wanted]
        sizes = [part.other.shape[0] for part in chosen]
        owner = torch.repeat_interleave(torch.tensor(sizes, device=kinds.device))
        other, features = torch.cat([part.other for part in chosen]), torch.cat([part.features for part in chosen])
        value = torch.cat([part.value for part in chosen])
        if self._changed is not None and any(part.version < self._version for part in chosen):
            seen = torch.tensor([part.version for part in chosen], device=kinds.device)[owner]
            stale = (grown(self._changed, self._entities)[other] > seen).nonzero().squeeze(1)
            value[stale] = weigh(kinds[owner[stale]], other[stale], features[stale])
            for part, values in zip(chosen, torch.split(value, sizes), strict=True):
                part.value, part.version = values, self._version
        return FarEnd(owner, other, features, value)

    def _at(self, time: int) -> _Moment:
        if self._moment.time != time:
            self._moment = _Moment(time)
        return self._moment

    def _read_missing(
        self,
        parts: dict[int, _Part],
        missing: list[int],
        like: Tensor,
        read: Callable[[Tensor], tuple[Tensor, Tensor, Tensor]],
        weigh: Callable[[Tensor, Tensor, Tensor], Tensor],
    ) -> None:
        if not missing:
            return
        kinds = torch.tensor(missing, device=like.device)
        owner, other, features = read(kinds)
        value = weigh(kinds[owner], other, features)
        sizes = torch.bincount(owner, minlength=len(missing)).tolist()
        columns = (torch.split(column, sizes) for column in (other, features, value))
        for kind, theirs, known, worth in zip(missing, *columns, strict=True):
            parts[kind] = _Part(theirs, known, worth, self._version)

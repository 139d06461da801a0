"""What the recall head has read of a state, kept from query to query; whoever changes the state says which rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor

from adatkg_core.state import grown

T = TypeVar("T")
NEVER = -1
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
    """The far end of one relation as of a version of the view."""

    slot: Tensor  # [M]
    mark: Tensor  # [M, …] what tells whether a slot is as it was; first of all, whose it is
    features: Tensor  # [M, …]
    value: Tensor  # [M]
    seen: Tensor  # [M] the version at which a slot was described, NEVER where it is to be
    version: int  # as of which that is all right
    is_stale: bool = False  # the table has changed since


Find = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]  # relations [Q] -> owner, slot, mark
Describe = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # relations and slots [M] -> features, value


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
                if relation in parts:
                    parts[relation].is_stale = True

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

    def far_end(self, table: str, kinds: Tensor, time: int, find: Find, describe: Describe) -> FarEnd:
        """That of distinct relations [Q]. A value depends on the activity of the entity as well, so a slot is described
        again where that or its mark has changed."""
        if torch.is_grad_enabled():
            owner, slot, mark = find(kinds)
            return FarEnd(owner, mark[:, 0].long(), *describe(kinds[owner], slot))
        parts = self._at(time).parts.setdefault(table, {})
        wanted = kinds.tolist()
        if missing := [kind for kind in wanted if kind not in parts]:
            self._find(missing, parts, kinds, find, describe)
        if stale_kinds := [kind for kind in wanted if parts[kind].is_stale]:
            self._find_again(stale_kinds, parts, kinds, find)
        chosen = [parts[kind] for kind in wanted]
        sizes = [part.slot.shape[0] for part in chosen]
        owner = torch.repeat_interleave(torch.tensor(sizes, device=kinds.device))
        other = _joined([part.mark for part in chosen])[:, 0].long()
        features, value = _joined([part.features for part in chosen]), _joined([part.value for part in chosen])
        if any(part.version < self._version for part in chosen):
            seen = _joined([part.seen for part in chosen])
            stale = (self._when_changed()[other] > seen).nonzero().squeeze(1)
            slot = _joined([part.slot for part in chosen])[stale]
            features[stale], value[stale] = describe(kinds[owner[stale]], slot)
            seen[stale] = self._version
            split = (torch.split(column, sizes) for column in (features, value, seen))
            for part, part.features, part.value, part.seen in zip(chosen, *split, strict=True):
                part.version = self._version
        return FarEnd(owner, other, features, value)

    def _when_changed(self) -> Tensor:
        assert self._changed is not None
        self._changed = grown(self._changed, self._entities)
        return self._changed

    def _at(self, time: int) -> _Moment:
        if self._moment.time != time:
            self._moment = _Moment(time)
        return self._moment

    def _find(self, missing: list[int], parts: dict[int, _Part], like: Tensor, find: Find, describe: Describe) -> None:
        """Find and describe the slots of relations that were not asked about before."""
        kinds = torch.tensor(missing, device=like.device)
        owner, slot, mark = find(kinds)
        columns = (slot, mark, *describe(kinds[owner], slot), torch.full_like(slot, self._version))
        sizes = torch.bincount(owner, minlength=len(missing)).tolist()
        split = (torch.split(column, sizes) for column in columns)
        for kind, *theirs in zip(missing, *split, strict=True):
            parts[kind] = _Part(*theirs, self._version)  # type: ignore[call-arg]

    def _find_again(self, stale: list[int], parts: dict[int, _Part], like: Tensor, find: Find) -> None:
        """The slots of relations as they are now; those with the same mark as before keep what is known of them."""
        owner, slot, mark = find(torch.tensor(stale, device=like.device))
        sizes = torch.bincount(owner, minlength=len(stale)).tolist()
        for kind, slots, marks in zip(stale, torch.split(slot, sizes), torch.split(mark, sizes), strict=True):
            before, n = parts[kind], min(slots.shape[0], parts[kind].slot.shape[0])
            same = (marks[:n] == before.mark[:n]).all(1)  # a slot has its place for good, but for those of a tick
            more = slots.shape[0] - n
            features, value = (_fitted(column, n, more) for column in (before.features, before.value))
            seen = torch.cat((torch.where(same, before.seen[:n], NEVER), slots.new_full((more,), NEVER)))
            parts[kind] = _Part(slots, marks, features, value, seen, NEVER)


def _fitted(column: Tensor, n: int, more: int) -> Tensor:
    """The first n rows, and room for more."""
    return torch.cat((column[:n], column.new_zeros(more, *column.shape[1:])))


def _joined(columns: list[Tensor]) -> Tensor:
    return columns[0] if len(columns) == 1 else torch.cat(columns)

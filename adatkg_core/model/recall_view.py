"""What the recall head has read of a state, kept from query to query; whoever changes the state says which rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from adatkg_core.evidence import keep_far_end
from adatkg_core.model.kept_rows import Index, KeptRows
from adatkg_core.state import grown

if TYPE_CHECKING:
    from adatkg_core.evidence.compiled import KeptFarEnd

T = TypeVar("T")


@dataclass(frozen=True)
class FarEnd:
    """Who was seen at the far end of some relations, one relation after the other."""

    owner: Tensor  # [M] which of the relations asked for, ascending
    other: Tensor  # [M]
    features: Tensor  # [M, …]
    value: Tensor  # [M] what that is worth


@dataclass
class _Moment:
    """What is known as of one time."""

    time: int
    activity: KeptRows = field(default_factory=KeptRows)
    far_ends: dict[str, KeptFarEnd] = field(default_factory=dict)


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

    def renew(self, entities: Tensor) -> None:
        """The state has changed in the rows of these entities."""
        self._version += 1
        before = entities.new_zeros(0) if self._changed is None else self._changed
        self._changed = grown(before, self._entities)
        self._changed[entities] = self._version
        self._moment.activity.renew(entities)

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

    def far_end(self, table: str, time: int) -> KeptFarEnd:
        """What is known of a table's slots as of a time; it finds out by itself what has changed since."""
        kept = self._at(time).far_ends
        if table not in kept:
            kept[table] = keep_far_end()
        return kept[table]

    def changes(self) -> tuple[Tensor, int]:
        """The version at which each entity changed last, and that of the state as it is."""
        before = torch.zeros(0, dtype=torch.int64, device="cpu") if self._changed is None else self._changed
        self._changed = grown(before, self._entities)
        return self._changed, self._version

    def _at(self, time: int) -> _Moment:
        if self._moment.time != time:
            self._moment = _Moment(time)
        return self._moment

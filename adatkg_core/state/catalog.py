"""The names of a graph's entities and their row numbers, in order of arrival."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray


class Catalog:
    """Names to rows and back; a name keeps its row for ever."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = []
        self._row: dict[str, int] = {}
        self.add(names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: str) -> bool:
        return name in self._row

    def add(self, names: Iterable[str]) -> list[str]:
        """Append the names that are new, in order, and return them."""
        fresh = [name for name in dict.fromkeys(names) if name not in self._row]
        for name in fresh:
            self._row[name] = len(self.names)
            self.names.append(name)
        return fresh

    def rows(self, names: Sequence[str]) -> list[int]:
        """The row of each name, -1 where it is unknown."""
        return [self._row.get(name, -1) for name in names]


class NamesAt(Sequence[str]):
    """The names of some rows of a catalog, which are looked up when somebody wants them."""

    __slots__ = ("_names", "_rows")

    def __init__(self, names: Sequence[str], rows: NDArray[np.int64]) -> None:
        """`names` are those of all rows, to which more may be added; `rows` [n] is kept."""
        self._names, self._rows = names, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return map(self._names.__getitem__, self._rows.tolist())

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> NamesAt: ...
    def __getitem__(self, i: int | slice) -> str | NamesAt:
        if isinstance(i, slice):
            return NamesAt(self._names, self._rows[i])
        return self._names[int(self._rows[i])]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __repr__(self) -> str:
        return repr(tuple(self))

    __hash__ = None  # type: ignore[assignment]

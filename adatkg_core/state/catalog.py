"""The names of a graph's entities and their row numbers, in order of arrival."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


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

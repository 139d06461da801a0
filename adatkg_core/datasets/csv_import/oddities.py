"""What is odd about imported rows: a count for each kind, with the first few lines and values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

EXAMPLES = 5
_LONGEST = 80  # characters of a value; a stray quote can make a name of a whole page


@dataclass
class Odd:
    """One kind of oddity; rows of a `skipped` kind are not in the data set."""

    kind: str
    skipped: bool
    count: int = 0
    examples: list[tuple[int, str]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as the report prints them."""
        examples = [{"line": line, "value": value} for line, value in self.examples]
        return {"kind": self.kind, "skipped": self.skipped, "count": self.count, "examples": examples}


class Oddities:
    """Oddities by kind, in the order in which they were met."""

    def __init__(self) -> None:
        self._kinds: dict[str, Odd] = {}

    def add(self, kind: str, line: int, value: str, *, skipped: bool) -> None:
        """Count one more."""
        self.add_many(kind, 1, [(line, value)], skipped=skipped)

    def add_many(self, kind: str, count: int, examples: Iterable[tuple[int, str]], *, skipped: bool) -> None:
        """Count so many more, of which these are the first; none of a kind is no oddity."""
        if not count:
            return
        odd = self._kinds.setdefault(kind, Odd(kind, skipped))
        odd.count += count
        if len(odd.examples) < EXAMPLES:
            odd.examples += [(line, _shown(value)) for line, value in islice(examples, EXAMPLES - len(odd.examples))]

    @property
    def skipped(self) -> int:
        """How many rows were skipped."""
        return sum(odd.count for odd in self._kinds.values() if odd.skipped)

    def all(self) -> list[Odd]:
        """What was met: skipped rows first, then by number."""
        return sorted(self._kinds.values(), key=lambda odd: (not odd.skipped, -odd.count))


def _shown(value: str) -> str:
    # Bytes that could not be decoded stand as lone surrogates, which no terminal and no JSON takes.
    text = value.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

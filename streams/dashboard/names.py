"""Finding names by a few letters, whatever their case and accents."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

BLOCK = 4_096  # names folded together


class NameIndex:
    """A list of names that only grows, folded once: what a search reads is one text per block."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self._blocks: list[str] = []  # of whole blocks; the rest is folded at each search

    def search(self, wanted: str, limit: int) -> list[str]:
        """Names with a word that begins as wanted, those that begin so themselves first; then those that hold it."""
        count = len(self.names)
        while (len(self._blocks) + 1) * BLOCK <= count:
            start = len(self._blocks) * BLOCK
            self._blocks.append(_folded_lines(self.names[start : start + BLOCK]))
        rest = len(self._blocks) * BLOCK
        blocks = [*self._blocks, _folded_lines(self.names[rest:count])]
        text = re.escape(fold(wanted).strip())
        found: dict[int, None] = {}
        for pattern in (rf"^{text}", rf"\b{text}", text):
            for number, block in enumerate(blocks):
                line, at = 0, 0
                for match in re.finditer(pattern, block, re.MULTILINE):
                    line += block.count("\n", at, match.start())
                    at = match.start()
                    found[number * BLOCK + line] = None
                    if len(found) >= limit:
                        return [self.names[row] for row in found if row < count]
        return [self.names[row] for row in found if row < count]


def fold(text: str) -> str:
    """A text without case and accents."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(one for one in parts if not unicodedata.combining(one)).replace("\n", " ")


def _folded_lines(names: Sequence[str]) -> str:
    return "\n".join(map(fold, names))

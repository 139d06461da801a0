"""Finding names by a few letters or by one that is nearly right, whatever their case and accents."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

BLOCK = 4_096  # names folded together
PIECES = 3  # of a name that is compared: two errors leave one of them whole
COMPARED = 500  # names that one piece brings at most
ALIKE = 0.7  # share of the letters in common that makes two names near


class NameIndex:
    """A list of names that only grows, folded once: what a search reads is one text per block."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self._blocks: list[str] = []  # of whole blocks; the rest is folded at each search

    def search(self, wanted: str, limit: int) -> list[str]:
        """Names with a word that begins as wanted, those that begin so themselves first; then those that hold it."""
        text = re.escape(fold(wanted).strip())
        found: dict[int, None] = {}
        blocks = self._folded()
        for pattern in (rf"^{text}", rf"\b{text}", text):
            for row in _rows(pattern, blocks):
                found[row] = None
                if len(found) >= limit:
                    return [self.names[row] for row in found]
        return [self.names[row] for row in found]

    def nearest(self, wanted: str, limit: int) -> list[str]:
        """Names that one may have meant: those it is the beginning or a part of, then those spelled much alike."""
        text = fold(wanted).strip()
        if not text:
            return []
        found = dict.fromkeys(self.search(wanted, limit))
        blocks, size = self._folded(), max(1, -(-len(text) // PIECES))
        rows: dict[int, None] = {}
        for start in range(0, len(text), size):
            for count, row in enumerate(_rows(re.escape(text[start : start + size]), blocks)):
                rows[row] = None
                if count >= COMPARED:
                    break
        matcher = SequenceMatcher(b=text, autojunk=False)
        alike: list[tuple[float, str]] = []
        for row in rows:
            matcher.set_seq1(fold(self.names[row]))
            if matcher.quick_ratio() >= ALIKE and (share := matcher.ratio()) >= ALIKE:
                alike.append((-share, self.names[row]))
        return list(found | dict.fromkeys(name for _, name in sorted(alike)))[:limit]

    def _folded(self) -> list[str]:
        """The blocks, those that are whole folded once and for all."""
        count = len(self.names)
        while (len(self._blocks) + 1) * BLOCK <= count:
            start = len(self._blocks) * BLOCK
            self._blocks.append(_folded_lines(self.names[start : start + BLOCK]))
        rest = self.names[len(self._blocks) * BLOCK : count]
        return [*self._blocks, _folded_lines(rest)] if rest else list(self._blocks)


def fold(text: str) -> str:
    """A text without case and accents."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(one for one in parts if not unicodedata.combining(one)).replace("\n", " ")


def _folded_lines(names: Sequence[str]) -> str:
    return "\n".join(map(fold, names))


def _rows(pattern: str, blocks: Sequence[str]) -> Iterator[int]:
    """The rows whose names match, in order; one that matches twice may come twice."""
    for number, block in enumerate(blocks):
        line, at = 0, 0
        for match in re.finditer(pattern, block, re.MULTILINE):
            line += block.count("\n", at, match.start())
            at = match.start()
            yield number * BLOCK + line

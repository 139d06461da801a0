"""The names in a table that is imported: cleaned, numbered, and compared with one another."""

from __future__ import annotations

import re
import unicodedata
from array import array

import numpy as np

from adatkg_core.datasets import Facts
from adatkg_core.datasets.csv_import.oddities import Oddities

# A byte order mark too: at the start of a file of names it would not survive.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ufeff]")
_UNDECODED = re.compile("[\udc80-\udcff]")
EMPTY, NOT_TEXT = -1, -2  # in place of an id


class ImportedNames(dict[str, int]):
    """Texts as they stand in the table, each with the id of its name; or why it has none."""

    def __init__(self, kind: str, odd: Oddities) -> None:
        super().__init__()
        self.kind = kind
        self.names: dict[str, int] = {}
        self.lines = array("q")  # where each name was met first
        self.line = 0  # of the row that is being read
        self._odd = odd

    def __missing__(self, text: str) -> int:
        name = text.strip()
        if _UNDECODED.search(name):
            return NOT_TEXT
        dirty = _CONTROL.search(name)
        if dirty:
            name = _CONTROL.sub(" ", name).strip()
        if not name:
            return EMPTY
        key = self.names.setdefault(name, len(self.names))
        if key == len(self.lines):
            self.lines.append(self.line)
        if dirty:
            # Not remembered, so that each row is counted.
            self._odd.add("control characters, now spaces", self.line, repr(text)[1:-1], skipped=False)
        else:
            self[text] = key
        return key

    def used(self, ids: Facts) -> tuple[list[str], Facts]:
        """The names of these ids, which are numbered again without gaps; their order stays."""
        keep = np.zeros(len(self.names), bool)
        keep[ids] = True
        kept = [name for name, used in zip(self.names, keep.tolist(), strict=True) if used]
        self._tell_twins(kept)
        return kept, np.cumsum(keep)[ids] - 1

    def _tell_twins(self, kept: list[str]) -> None:
        first: dict[str, str] = {}
        for name in kept:
            plain = "".join(unicodedata.normalize("NFC", name).casefold().split())
            if (twin := first.setdefault(plain, name)) != name:
                kind = f"{self.kind} that differ only in case or spaces"
                self._odd.add(kind, self.lines[self.names[name]], f"{name} | {twin}", skipped=False)

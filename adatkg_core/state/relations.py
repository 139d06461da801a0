"""The relations that a model knows, and which of them a name that is not among them was probably meant to be."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import chain, islice

_SUGGESTED = 3  # names at most
_ALIKE = 0.4  # share of trigrams in common from which on a name counts as near
# A stream may bring unknown names in masses: the rest bounds what one of them costs, however many relations there are.
_LONGEST = 100  # letters that are compared
_MENTIONS = 200  # of known names under the rarest trigrams, which tell most
_COMPARED = 8  # known names that are compared as a whole
_REMEMBERED = 1_024  # unknown names whose answer is kept: a producer that is wrong is wrong again and again

_BETWEEN = re.compile(r"[\W_]+")


class Relations(dict[str, int]):
    """Each relation's row by its name; `nearest` gives the known names most like another, best first."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__((name, row) for row, name in enumerate(names))
        self.nearest = lru_cache(_REMEMBERED)(self._nearest)

    def _nearest(self, name: str) -> tuple[str, ...]:
        wanted = _trigrams(name)
        # Trigrams in a fixed order, so that of names that tie the same are found in every process.
        held = sorted((self._holders[one] for one in sorted(wanted) if one in self._holders), key=len)
        mentions = Counter(islice(chain.from_iterable(held), _MENTIONS))
        alike = {known: _likeness(wanted, self._trigrams[known]) for known, _ in mentions.most_common(_COMPARED)}
        near = [known for known, likeness in alike.items() if likeness >= _ALIKE]
        return tuple(sorted(near, key=lambda known: (-alike[known], known))[:_SUGGESTED])

    @cached_property
    def _trigrams(self) -> dict[str, set[str]]:
        return {name: _trigrams(name) for name in self}

    @cached_property
    def _holders(self) -> dict[str, list[str]]:
        """The names in which each trigram stands."""
        holders: dict[str, list[str]] = {}
        for name, trigrams in self._trigrams.items():
            for trigram in trigrams:
                holders.setdefault(trigram, []).append(name)
        return holders


def _trigrams(name: str) -> set[str]:
    """The runs of three letters, however words are written and parted."""
    text = f"  {_BETWEEN.sub(' ', name[:_LONGEST].casefold()).strip()}  "
    return {text[i : i + 3] for i in range(len(text) - 2)}


def _likeness(one: set[str], other: set[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other))

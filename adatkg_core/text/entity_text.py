"""What a language model reads for the name of an entity."""

from __future__ import annotations

import re

# GDELT writes who an actor is in codes around an "@", for example "EGYPT (EGY@ OPP REF)" or "IMAM (@ MIL)".
_ACTOR_CODES = re.compile(r"\s*\([^()@]*@[^()]*\)\s*$")


def text_of(name: str) -> str:
    """The text that a language model reads for a name: no underscores, no GDELT actor codes."""
    text = " ".join(name.replace("_", " ").split())
    return _ACTOR_CODES.sub("", text) or text

"""What the fields of messages are made of: the version, names and times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal
from urllib.parse import quote

from msgspec import Meta

from adatkg_core.constants import LAST_TIME
from adatkg_core.messages.reasons import Reason, Unusable

VERSION: Literal[1] = 1
MAX_NAME = 1_000  # characters
MAX_GRAPH = 240  # bytes of a graph's name once it is quoted: stores keep each graph in a folder of that name

# Two patterns without anchors, because `$` means different things in different languages. The characters that count as
# blank are spelled out for the same reason. A decoder would be slow to look at them: `require_names` does it.
_CHARACTERS = {
    "pattern": r"[^ \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]",
    "not": {"pattern": r"[\u0000-\u001f\u007f-\u009f]"},
}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

Version = Annotated[Literal[1], Meta(description="version of the messages")]
Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME, extra_json_schema=_CHARACTERS)]
TickNumber = Annotated[int, Meta(ge=-LAST_TIME, le=LAST_TIME)]
IsoTime = Annotated[str, Meta(description="an ISO 8601 time, floored to the graph's tick")]


def require_name(key: str, value: Any) -> str:
    """The value, if it is a name. Raises Unusable."""
    if type(value) is not str:
        raise Unusable(Reason.WRONG_TYPE, f"{key} is {shown(value)}: it must be a string")
    if not value.strip():
        raise Unusable(Reason.BAD_NAME, f"{key} is empty: give a name")
    if len(value) > MAX_NAME:
        raise Unusable(Reason.BAD_NAME, f"{key} has {len(value)} characters: at most {MAX_NAME}")
    if _CONTROL.search(value):
        raise Unusable(Reason.BAD_NAME, f"{key} is {shown(value)}: it holds control characters")
    return value


def require_graph(key: str, value: Any) -> str:
    """The value, if it can be a graph's name. Raises Unusable."""
    name = require_name(key, value)
    if (size := len(quote(name, safe=""))) > MAX_GRAPH:
        raise Unusable(
            Reason.BAD_NAME,
            f"{key} is {shown(name)}: as the name of a folder it has {size} bytes, at most {MAX_GRAPH} will do; "
            "letters and digits of ASCII count one, all other bytes of UTF-8 three",
        )
    return name


def are_plainly_names(texts: Sequence[str]) -> bool:
    """Whether these texts of the right length are names beyond doubt; a doubtful one may be a name all the same."""
    return "".join(texts).isprintable() and not any(map(str.isspace, texts))


def shown(value: Any) -> str:
    """A value as an error shows it."""
    if isinstance(value, (dict, list)):  # may be nested deeper than Python can follow
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

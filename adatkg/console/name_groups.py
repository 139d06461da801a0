"""What names tell of groups, for reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def describe_groups(names: Sequence[str]) -> dict[str, Any]:
    """Plain values: how names tell of groups, how many names and groups there are, and an example."""
    from adatkg_core.text import count_groups, find_structure

    structure = find_structure(names)
    found = count_groups(structure, names)
    return {
        "written_as": structure.kind,
        "groups": found.groups,
        "names": found.names,
        "heads": found.heads,
        "example": found.example,
    }


def groups_in_words(described: dict[str, Any]) -> str:
    """The same in one line."""
    if described["written_as"] == "none":
        return "none in the names"
    count = f"{described['groups']:,} by {described['written_as']}, {described['names']:,} names"
    return f"{count} such as {described['example']!r}"

"""A setting: its default and what it means, declared together."""

from __future__ import annotations

from dataclasses import Field, field
from typing import Any, TypeVar

T = TypeVar("T")


def setting(default: T, about: str, *, repr: bool = True) -> T:
    """A field of a section's dataclass; `about` is what the reference says. One without `repr` is a secret."""
    return field(default=default, repr=repr, metadata={"about": about})


def about(one: Field[Any]) -> str:
    """What a field that was declared as a setting means."""
    if "about" not in one.metadata:
        raise ValueError(f"{one.name}: declare it with `setting(default, about)`, which says what it means")
    return str(one.metadata["about"])

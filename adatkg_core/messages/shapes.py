"""Checks values against the few words of JSON Schema that the tables of messages use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
KEYWORDS = frozenset(
    ("type", "enum", "minimum", "maximum", "items", "properties", "required", "additionalProperties", "description")
)


def mismatch(value: Any, schema: dict[str, Any], name: str) -> str | None:
    """What is wrong with a value, in a sentence that begins with its name; None when nothing is."""
    if not schema:  # whatever it is, and however deep
        return None
    wanted = schema["type"]
    names = [wanted] if isinstance(wanted, str) else wanted
    # type() and not isinstance(): JSON's true is not a number.
    if not any(type(value) in _TYPES[one] for one in names):
        return f"{name} is not of type {' or '.join(names)}"
    if value not in schema.get("enum", (value,)):
        return f"{name} is {value!r}: not one of {', '.join(map(repr, schema['enum']))}"
    if isinstance(value, int | float):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            return f"{name} is {value}: out of range"
    elif isinstance(value, list):
        return _first(mismatch(item, schema.get("items", {}), f"{name}[{i}]") for i, item in enumerate(value))
    elif isinstance(value, dict):
        if missing := [key for key in schema.get("required", ()) if key not in value]:
            return f"{name} lacks {missing[0]}"
        known, other = schema.get("properties", {}), schema.get("additionalProperties", {})
        return _first(mismatch(item, known.get(key, other), f"{name}.{key}") for key, item in value.items())
    return None


def _first(found: Iterator[str | None]) -> str | None:
    return next((problem for problem in found if problem), None)

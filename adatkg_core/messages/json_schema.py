"""The JSON Schema of each message, made from the declaration by which it is decoded: the two cannot drift apart."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from adatkg_core.messages.announcement import Announcement
from adatkg_core.messages.events import EVENTS, MAX_BYTES
from adatkg_core.messages.fields import VERSION, Version
from adatkg_core.messages.prediction import Prediction

Document = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# What the codec refuses though the schema cannot: the two are otherwise the same.
UNSAID = (
    f"Further, an event has at most {MAX_BYTES} bytes, a text in place of a tick must be an ISO 8601 time of the "
    "years 1 to 9999 (or, in a query, `next`), and whole numbers are written without a fraction."
)
_ANSWER = "The answer to a query; its id is that of the query's place in the log, so a repeat is recognisable."
_BUNDLE = "A bundle of the store answers for a graph from now on, or was tried and kept as a candidate."


def message_schemas() -> dict[str, Document]:
    """The JSON Schema of each kind of message."""
    schemas = {kind: _message(kind, declared, f"{declared.__doc__} {UNSAID}") for kind, declared in EVENTS.items()}
    # A side that is null counts as left out.
    schemas["query"]["oneOf"] = [{"required": [side], "properties": {side: {"type": "string"}}} for side in ("s", "o")]
    schemas["prediction"] = _message("prediction", Prediction, _ANSWER)
    schemas["announcement"] = _message("announcement", Announcement, _BUNDLE)
    return schemas


def _message(name: str, declared: type[Struct], about: str) -> Document:
    (made,), parts = msgspec.json.schema_components((declared,), ref_template="{name}")
    body = _inlined(made, parts)
    properties = {"v": msgspec.json.schema(Version), **body["properties"]}
    return {
        "$schema": DIALECT,
        "$id": f"urn:adatkg:message:{name}:{VERSION}",
        "title": name,
        "description": about,
        "type": "object",
        "properties": properties,
        # Without a word about other properties: a field that is not declared does no harm.
        "required": ["v", *(key for key in body["required"] if key != "v")],
    }


def _inlined(schema: Any, parts: dict[str, Document]) -> Any:
    """Every part at its place: a reader in another language need not look for it."""
    if isinstance(schema, list):
        return [_inlined(item, parts) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        part = {key: value for key, value in parts[schema["$ref"]].items() if key != "title"}
        schema = part | {key: value for key, value in schema.items() if key != "$ref"}
    # Left out and null are the same, which the types say already.
    return {key: _inlined(value, parts) for key, value in schema.items() if (key, value) != ("default", None)}

"""The messages and topics for programs in other languages: JSON Schema of each message, AsyncAPI of the whole.

All of it is made from the tables that the codec itself checks by, so the two cannot drift apart.
"""

from __future__ import annotations

from typing import Any

from adatkg_core.messages import ANNOUNCEMENT, EVENTS, MAX_BYTES, PREDICTION, PREDICTION_LATER, VERSION, Field
from streams.dead_letters import HEADERS, RETRIED, RETRY_OF
from streams.kafka import Topics

Document = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ASYNCAPI = "3.0.0"
# What the codec refuses though the schema cannot: the two are otherwise the same.
UNSAID = (
    f"Further, an event has at most {MAX_BYTES} bytes, a text in place of a tick must be an ISO 8601 time of the "
    "years 1 to 9999 (or, in a query, `next`), and whole numbers are written without a fraction."
)
_ABOUT = {
    "fact": f"Something that happened: subject, relation, object, time. {UNSAID}",
    "query": f"Whom will s r at t? Or, with o in place of s: who will r o? {UNSAID}",
    "tick": f"Time passes, even where nothing happens. {UNSAID}",
    "prediction": "The answer to a query; its id is that of the query's place in the log, so a repeat is recognisable.",
    "announcement": "A bundle of the store answers for a graph from now on, or was tried and kept as a candidate.",
}


def message_schemas() -> dict[str, Document]:
    """The JSON Schema of each kind of message."""
    schemas = {kind: _event(kind, fields) for kind, fields in EVENTS.items()}
    required = [key for key in PREDICTION if key not in PREDICTION_LATER]
    schemas["prediction"] = _message("prediction", {"v": _version(), **PREDICTION}, ["v", *required])
    schemas["announcement"] = _message("announcement", {"v": _version(), **ANNOUNCEMENT}, ["v", *ANNOUNCEMENT])
    return schemas


def asyncapi(topics: Topics) -> Document:
    """The topics, who writes and who reads them, with which keys and headers, as seen from the worker."""
    channels = {
        "events": _channel(topics.events, "The log of each graph, in one partition, kept for ever.", list(EVENTS)),
        "predictions": _channel(topics.predictions, "Answers, at least once each.", ["prediction"]),
        "deadletter": _channel(
            topics.deadletter, "What could not be processed, and marks of what was retried.", ["deadletter", "retried"]
        ),
        "models": _channel(topics.models, "Which bundle answers; the latest of each key is kept.", ["announcement"]),
    }
    return {
        "asyncapi": ASYNCAPI,
        "info": {
            "title": "AdaTKG Streams",
            "version": f"{VERSION}.0.0",
            "description": "Forecasts on temporal knowledge graphs while their events stream in. Keys are the graph.",
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": {
            "takeEvents": _operation("receive", "events", channels, "Take in facts and ticks, answer queries."),
            "givePredictions": _operation("send", "predictions", channels, "Answer a query."),
            "giveDeadLetters": _operation("send", "deadletter", channels, "Set aside what cannot be processed."),
            "takeModels": _operation("receive", "models", channels, "Learn of a new model."),
        },
        "components": {"messages": _messages(), "schemas": _components()},
    }


def documents(topics: Topics) -> dict[str, Document]:
    """Every document by the name of its file."""
    files = {f"{name}.schema.json": schema for name, schema in message_schemas().items()}
    return files | {"asyncapi.json": asyncapi(topics)}


# -- JSON Schema ----------------------------------------------------------------------------------------------


def _event(kind: str, fields: dict[str, Field]) -> Document:
    properties = {"v": _version(), "kind": {"const": kind}}
    properties |= {key: field.schema if field.required else _or_null(field.schema) for key, field in fields.items()}
    schema = _message(kind, properties, ["v", "kind", *(key for key, field in fields.items() if field.required)])
    if kind == "query":
        # A side that is null counts as left out.
        schema["oneOf"] = [{"required": [side], "properties": {side: {"type": "string"}}} for side in ("s", "o")]
    return schema


def _message(name: str, properties: Document, required: list[str]) -> Document:
    return {
        "$schema": DIALECT,
        "$id": f"urn:adatkg:message:{name}:{VERSION}",
        "title": name,
        "description": _ABOUT[name],
        "type": "object",
        "properties": properties,
        "required": required,
    }


def _version() -> Document:
    return {"type": "integer", "const": VERSION, "description": "version of the messages"}


def _or_null(schema: Document) -> Document:
    return {"anyOf": [schema, {"type": "null"}]}


# -- AsyncAPI -------------------------------------------------------------------------------------------------


def _channel(address: str, about: str, messages: list[str]) -> Document:
    references = {name: {"$ref": f"#/components/messages/{name}"} for name in messages}
    return {"address": address, "description": about, "messages": references}


def _operation(action: str, channel: str, channels: Document, about: str) -> Document:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "summary": about,
        "messages": [{"$ref": f"#/channels/{channel}/messages/{name}"} for name in channels[channel]["messages"]],
    }


def _messages() -> Document:
    graph = {"kafka": {"key": {"type": "string", "description": "the graph, in UTF-8"}}}
    put_back = {"type": "string", "description": "the dead letter that was put back, by partition-offset"}
    messages: Document = {
        name: {"name": name, "payload": {"$ref": f"#/components/schemas/{name}"}, "bindings": graph}
        for name in message_schemas()
    }
    either = "the graph of a present bundle, graph@version of a candidate, in UTF-8"
    messages["announcement"]["bindings"] = {"kafka": {"key": {"type": "string", "description": either}}}
    for kind in EVENTS:
        messages[kind]["headers"] = {"type": "object", "properties": {RETRY_OF: put_back}}
    messages["deadletter"] = {
        "name": "deadletter",
        "summary": "The key and the value as they came, whatever they are; the headers say why and from where.",
        "contentType": "application/octet-stream",
        "headers": {"$ref": "#/components/schemas/deadletterHeaders"},
        "bindings": {"kafka": {"key": {"description": "as it came"}}},
    }
    messages["retried"] = {
        "name": "retried",
        "summary": "Marks a dead letter as put back into the log. It has no value.",
        "headers": {"type": "object", "properties": {RETRIED: put_back}, "required": [RETRIED]},
        "bindings": {"kafka": {"key": {"description": "that of the dead letter"}}},
    }
    return messages


def _components() -> Document:
    # Without the words by which a schema introduces itself: a document has only one dialect and one base.
    schemas: Document = {
        name: {key: value for key, value in schema.items() if key not in ("$schema", "$id")}
        for name, schema in message_schemas().items()
    }
    schemas["deadletterHeaders"] = {
        "type": "object",
        "description": "All are text in UTF-8.",
        "properties": {name: {"type": "string", "description": about} for name, about in HEADERS.items()},
        "required": list(HEADERS),
    }
    return schemas

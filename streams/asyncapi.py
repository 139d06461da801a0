"""The topics for programs in other languages: who writes and reads which messages, as AsyncAPI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adatkg_core.messages import EVENTS, VERSION, message_schemas
from streams.dead_letters import HEADERS, RETRIED, RETRY_OF
from streams.kafka import Topics

Document = dict[str, Any]

ASYNCAPI = "3.0.0"


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
            "giveModelEvents": _operation(
                "send", "events", channels, "Say in the log from where on another version answers.", ["model"]
            ),
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


# -- private ---------------------------------------------------------------------------------------------------


def _channel(address: str, about: str, messages: list[str]) -> Document:
    references = {name: {"$ref": f"#/components/messages/{name}"} for name in messages}
    return {"address": address, "description": about, "messages": references}


def _operation(
    action: str, channel: str, channels: Document, about: str, only: Sequence[str] | None = None
) -> Document:
    """What the worker does with the messages of a channel, with all kinds of them or only some."""
    names = channels[channel]["messages"] if only is None else only
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "summary": about,
        "messages": [{"$ref": f"#/channels/{channel}/messages/{name}"} for name in names],
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

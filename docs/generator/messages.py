"""The page of messages, from the JSON Schemas that come from the declared messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from adatkg_core.messages import (
    MAX_BYTES,
    MAX_K,
    MAX_RANKED,
    encode_fact,
    encode_model,
    encode_query,
    encode_tick,
    message_schemas,
)
from docs.generator.markdown import code, described, document, table
from streams.dead_letters import HEADERS, RETRIED, RETRY_OF
from streams.kafka import LARGEST_MESSAGE, ORIGIN, Topics
from streams.kafka.topics import DEFAULT_PARTITIONS, _wanted

INTRODUCTION = f"""
All messages are JSON objects in UTF-8. The key of every message is the name of its graph; only dead letters and the
announcements of candidates have others. The same is in [JSON Schema](../schemas/fact.schema.json) for each kind and in
[AsyncAPI](../schemas/asyncapi.json) for the whole, and `adatkg schemas` prints both.

## Topics

{{topics}}

`adatkg` stands for the prefix, which `--topic-prefix` or `ADATKG_TOPIC_PREFIX` changes. Topics that are missing are
made by whichever command comes first. The key decides the partition by murmur2, as Kafka's own clients place it. An
event that another client put elsewhere (librdkafka goes by CRC32) is moved there by the worker that finds it, in order,
with the place where it stood, `partition-offset`, in the header `{ORIGIN}`; an event with an origin that was taken
before is a repeat and left out. Only what is committed is read. The number of partitions must not change later. A
message may have up to {LARGEST_MESSAGE >> 20} MiB to enter the log, an event up to {MAX_BYTES >> 20}.

A query may ask for {MAX_K:,} answers and {MAX_RANKED:,} ranks; a worker gives as many as its settings `max_k` and
`max_ranked` allow, and sets aside what asks for [more](dead-letters.md#too-much).
"""
EXAMPLES = {
    "fact": encode_fact("Keller Bikes (Graz)", "orders from", "Depot Graz", "2025-04-22"),
    "query": encode_query("q-1", "orders from", "next", s="Keller Bikes (Graz)", k=3),
    "tick": encode_tick("2025-04-23"),
    "model": encode_model("20250423-061500", after="20250422-060000"),
}


def page() -> str:
    """Topics, and every field of every message."""
    return document("Messages", INTRODUCTION.replace("{topics}", _topics()), *_messages(), *_dead_letters())


def _topics() -> str:
    topics = Topics()
    holds = {
        topics.events: "facts, queries, ticks and which model answers: the log that everything follows from",
        topics.predictions: "predictions",
        topics.deadletter: "dead letters, and marks of those that were retried",
        topics.models: "announcements of bundles",
    }
    made = _wanted(topics, DEFAULT_PARTITIONS)
    described("topics", made, holds)
    rows = [
        (code(name), about, _kept(one.topic_configs), str(one.num_partitions), _settings(one.topic_configs))
        for name, about in holds.items()
        for one in [made[name]]
    ]
    return table(("topic", "holds", "kept", "partitions", "settings"), rows)


def _settings(config: dict[str, str]) -> str:
    return ", ".join(code(f"{name}={value}") for name, value in config.items())


def _kept(config: dict[str, str]) -> str:
    if config.get("cleanup.policy") == "compact":
        return "the latest of each key"
    milliseconds = int(config["retention.ms"])
    return "for ever" if milliseconds < 0 else f"{milliseconds // 86_400_000} days"


def _messages() -> Iterator[str]:
    for name, schema in message_schemas().items():
        yield f"## {name.capitalize()}"
        yield schema["description"]
        rows = []
        for key, field in schema["properties"].items():
            needed = "yes" if key in schema["required"] else "no"
            rows.append((code(key), _kind(field), needed, field.get("description", "")))
        yield table(("field", "type", "required", "is"), rows)
        if name in EXAMPLES:
            yield f"```json\n{json.dumps(json.loads(EXAMPLES[name]))}\n```"


def _kind(field: dict[str, Any]) -> str:
    """The type of a field in words, with its limits."""
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_kind(part) for part in field["anyOf"]))
    if "enum" in field:
        always = "always " if len(field["enum"]) == 1 else ""
        return always + " or ".join(code(json.dumps(value) if always else value) for value in field["enum"])
    kind = field["type"]
    if kind == "array":
        limit = f", at most {field['maxItems']:,}" if "maxItems" in field else ""
        return f"list of {_plural(field['items'])}{limit}"
    if kind == "object" and "properties" in field:
        return f"object with {', '.join(code(name) for name in field['properties'])}"
    if "maxLength" in field:
        return f"name, at most {field['maxLength']:,} characters"
    if "maximum" in field and "default" in field:
        return f"integer from {field['minimum']} to {field['maximum']:,}, {field['default']} if left out"
    return str(kind)


def _plural(items: dict[str, Any]) -> str:
    return "names" if "maxLength" in items else f"{_kind(items).replace('object', 'objects', 1)}"


def _dead_letters() -> Iterator[str]:
    yield "## Dead letter"
    yield "The key and the value as they came, whatever they are. The headers are text in UTF-8:"
    yield table(("header", "is"), ((code(name), about) for name, about in HEADERS.items()))
    yield (
        f"A dead letter that was put back is marked by a message without a value, whose header `{RETRIED}` holds its "
        f"place (`partition-offset`). The event that was put back carries the same in its header `{RETRY_OF}`."
    )

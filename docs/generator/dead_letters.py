"""The page of reasons for dead letters; which there are is read from the code."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from docs.generator.markdown import described, document

ROOT = Path(__file__).parents[2]
_REASON = re.compile(r"[a-z]+(-[a-z0-9]+)*")
# Where a reason stands: as this argument of these calls.
_CALLS = {"Unusable": 0, "Rejected": 1, "Refusal": 1, "dead_letter_headers": 0}
_OBJECTIONS = ("object_to_fact", "object_to_relation", "object_to_time", "_unfit")  # these return (reason, sentence)

INTRODUCTION = """
An event that cannot be processed goes to the topic `adatkg.deadletter` as it came, with a reason that can be counted
and a sentence that says what is wrong. The stream goes on. [Dead letters](../how-to/dead-letters.md) says how to mend
and retry them.
"""
# What it means, and what helps.
ABOUT = {
    "bad-name": ("A name is empty, too long or holds control characters.", "Mend it with `--set`."),
    "bad-time": (
        "A time is neither a tick nor an ISO time, does not fit into 32 bits, or is an ISO time for a graph without a "
        "calendar.",
        "Mend it with `--set t=…`; for a graph without a calendar send ticks.",
    ),
    "bad-value": ("A number or a list is out of its limits, or a query gives both ends or none.", "Mend it."),
    "far-future": (
        "A fact or tick is further ahead of the watermark than `max_jump` ticks. Taking it would make all that follows "
        "late.",
        "Mend a wrong date. After a real pause that long send ticks in between, or raise `max_jump`; then retry.",
    ),
    "late": (
        "A fact is older than the watermark, and the setting `late` is `refuse`.",
        "Retry does not help unless the setting is `apply`.",
    ),
    "missing-field": ("A field is missing that the message needs.", "Mend it with `--set`."),
    "no-graph": ("The message has no key, or the key is no name.", "Send it anew under the right key."),
    "no-model": (
        "A query for a graph that has no model. Facts of such a graph wait in the log.",
        "Train one with `adatkg train --models … --graph …`, then ask again or retry.",
    ),
    "not-json": ("The value is empty or is no JSON.", "Put back a whole value with `--value`."),
    "not-utf8": ("The value is not UTF-8.", "Put back a whole value with `--value-file`."),
    "too-large": ("The value has more than 1 MiB.", "An event that large is a mistake of the producer."),
    "undeliverable": (
        "A prediction is larger than its topic takes. The dead letter has no value and no place in the log.",
        "Raise `max.message.bytes` of the predictions' topic, or ask for fewer answers.",
    ),
    "unknown-kind": ("`kind` is none of fact, query, tick.", "Mend it with `--set kind=…`."),
    "unknown-relation": (
        "The model does not know the relation.",
        "Mend a misspelt one with `--set r=…`. A new one is learned by the next training from the log, which finds the "
        "fact where it stands; retrying it is not needed.",
    ),
    "unknown-version": (
        "`v` is not the version of messages that the worker reads.",
        "Upgrade the worker or the producer.",
    ),
    "wrong-partition": (
        "The event stands in another partition than its graph's. The producer places keys differently from Kafka's own "
        "clients.",
        "Set the producer's partitioner to murmur2, then retry: a retried event is placed rightly.",
    ),
    "wrong-type": ("A field or the whole message is of another type than it must be.", "Mend it."),
}


def page() -> str:
    """Every reason with its meaning and what helps."""
    described("reasons of dead letters", reasons(), ABOUT)
    parts = [f"## {name}\n\n{meaning}\n\n{remedy}" for name, (meaning, remedy) in sorted(ABOUT.items())]
    return document("Reasons for dead letters", INTRODUCTION, *parts)


def reasons() -> set[str]:
    """Every reason that the code gives for setting an event aside."""
    found: set[str] = set()
    for package in ("adatkg_core", "streams"):
        for file in sorted((ROOT / package).rglob("*.py")):
            found |= set(_reasons_in(ast.parse(file.read_text("utf-8"))))
    return found


def _reasons_in(tree: ast.Module) -> Iterator[str]:
    texts: defaultdict[str, list[str]] = defaultdict(list)  # of variables, such as `code = "a" if … else "b"`
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            texts[node.targets[0].id] += _strings(node.value)
    for node in ast.walk(tree):
        given: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
            place = _CALLS[node.func.id]
            given = node.args[place] if len(node.args) > place else None
        elif isinstance(node, ast.FunctionDef) and node.name in _OBJECTIONS:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return) and isinstance(inner.value, ast.Tuple):
                    yield from _strings(inner.value.elts[0])
        if isinstance(given, ast.Name):
            yield from texts[given.id]
        elif given is not None:
            yield from _strings(given)


def _strings(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.IfExp):
        yield from _strings(node.body)
        yield from _strings(node.orelse)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _REASON.fullmatch(node.value):
        yield node.value

"""What a dead letter must be before it goes back into the log, and how to make it so."""

from __future__ import annotations

from typing import Any

import orjson

from adatkg_core.errors import InputError
from adatkg_core.messages import Reason, Unusable, check_event, decode_graph
from streams.dead_letters.letters import DeadLetter

MAY_PASS = frozenset(reason for reason in Reason if reason.may_pass)


def changes_from(settings: list[str]) -> dict[str, Any]:
    """Fields and their new values from texts `field=value`; a value that is not JSON is itself a string."""
    changes: dict[str, Any] = {}
    for setting in settings:
        field, equals, text = setting.partition("=")
        if not (field and equals):
            raise InputError(f"--set {setting}: give field=value, for example r=Consult")
        try:
            changes[field] = orjson.loads(text)
        except orjson.JSONDecodeError:
            changes[field] = text
    return changes


def mended(letter: DeadLetter, changes: dict[str, Any]) -> bytes:
    """The letter's event with some fields changed."""
    try:
        values = orjson.loads(letter.value or b"")
    except orjson.JSONDecodeError:
        values = None
    if not isinstance(values, dict):
        raise InputError(
            f"dead letter {letter.id}: not a JSON object, so no field can be set; give all of it by --value"
        )
    return orjson.dumps(values | changes)


def ready(letter: DeadLetter, value: bytes | None, *, untouched: bool, again: bool) -> bytes:
    """The value that may go back into the log in the letter's place; an InputError says why it may not."""
    if letter.retried and not again:
        raise InputError(f"dead letter {letter.id}: it was retried already; --again puts it back once more")
    try:
        decode_graph(letter.key)
    except Unusable as problem:
        raise InputError(
            f"dead letter {letter.id}: {problem.detail}; send the event anew under the right one"
        ) from problem
    if not (untouched and letter.reason in MAY_PASS):
        try:
            check_event(value)
        except Unusable as problem:
            remedy = "mend it by --set or --value" if untouched else "mend that too"
            raise InputError(f"dead letter {letter.id}: {problem.detail} ({problem.code}); {remedy}") from problem
    return value or b""

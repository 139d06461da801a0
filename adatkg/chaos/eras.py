"""The logs of a run: the events' topic may be made anew, and each log is then judged for itself."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from adatkg.chaos.topics import Record
from streams.kafka import EventLog

Mark = str  # tells an event from those at the same place of other logs
_LONGEST = 65_536  # bytes: what is longer has no id that we gave it


@dataclass(frozen=True)
class Era:
    """What stood in the events' topic from when it was made until it was deleted, or until the end."""

    log: EventLog
    events: Sequence[Record]


def mark_of(value: bytes | None) -> Mark:
    """The mark of an event: its id, where it has one, else a digest of its bytes."""
    if value and len(value) < _LONGEST and value.startswith(b"{"):
        try:
            return f"id {orjson.loads(value)['id']}"
        except (ValueError, KeyError):
            pass
    return hashlib.sha256(value or b"").hexdigest()


def id_mark(id: str) -> Mark:
    """The mark of a query with this id."""
    return f"id {id}"


def write_era(folder: Path, era: Era) -> None:
    """Keep the log of a topic that is about to be deleted."""
    path = folder / f"log-{len(_files(folder)) + 1:03d}.jsonl"
    lines: list[dict[str, Any]] = [{"id": era.log.id, "partitions": era.log.partitions}]
    lines += [_as_json(record) for record in era.events]
    path.write_bytes(b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines))


def read_eras(folder: Path) -> list[Era]:
    """The logs that were kept, in their order."""
    found = []
    for path in _files(folder):
        first, *lines = map(orjson.loads, path.read_bytes().splitlines())
        found.append(Era(EventLog(first["id"], first["partitions"]), [_record(line) for line in lines]))
    return found


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("log-*.jsonl"))


def _as_json(record: Record) -> dict[str, Any]:
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": {name: _text(value) for name, value in record.headers.items()},
    }


def _record(line: dict[str, Any]) -> Record:
    headers = {name: _bytes(value) or b"" for name, value in line["headers"].items()}
    place = line["partition"], line["offset"], line["timestamp"]
    return Record(*place, _bytes(line["key"]), _bytes(line["value"]), headers)


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)

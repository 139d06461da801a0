"""What was sent and what was done to the system, written down before anything is believed about it."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import orjson

SENT, FAULTS = "sent.jsonl", "faults.jsonl"


class Journal:
    """Lines of JSON in a folder, each on disk's way as soon as it is written; any thread may write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._files = {name: (folder / name).open("ab", buffering=0) for name in (SENT, FAULTS)}

    def sends(self, graph: str, id: str, kind: str) -> None:
        """An event is about to be sent, for the first time or again."""
        self._write(SENT, {"graph": graph, "id": id, "kind": kind})

    def sent(self, graph: str, id: str, partition: int, offset: int) -> None:
        """The broker has acknowledged it."""
        self._write(SENT, {"graph": graph, "id": id, "partition": partition, "offset": offset})

    def fault(self, what: str, **more: Any) -> None:
        """Something was done to the system, or came of it."""
        self._write(FAULTS, {"at": round(time.monotonic() - self._began, 3), "what": what, **more})

    def close(self) -> None:
        """Nothing more is written."""
        for file in self._files.values():
            file.close()

    def _write(self, name: str, line: dict[str, Any]) -> None:
        with self._lock:
            self._files[name].write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


def acknowledged(folder: Path) -> dict[tuple[str, str], tuple[int, int]]:
    """Where the broker said that it put each event, by graph and id; the last place of one that was sent again."""
    lines = map(orjson.loads, (folder / SENT).read_bytes().splitlines())
    return {(line["graph"], line["id"]): (line["partition"], line["offset"]) for line in lines if "offset" in line}

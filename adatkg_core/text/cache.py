"""Text vectors kept on disk, so that a name is encoded once on a machine."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import structlog
import torch

if TYPE_CHECKING:
    from adatkg_core.text.encoder import TextEncoder

_log = structlog.get_logger(__name__)

_CHUNK = 1024  # texts encoded between two commits: what a kill can cost
_BUSY_SECONDS = 60.0  # how long to wait for another process that is writing; a commit takes milliseconds


class CachedEncoder:
    """Asks the disk first and the encoder for the rest; several processes may share a folder.

    A cache that cannot be read or written costs time and a warning, never an answer.
    """

    def __init__(self, encoder: TextEncoder, folder: Path, key: str | None = None) -> None:
        self.name = encoder.name
        self.dim = encoder.dim
        self._encoder = encoder
        key = encoder.name if key is None else key
        slug = re.sub(r"[^A-Za-z0-9.-]+", "-", key)[-60:].strip("-")
        digest = hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
        self.path = folder / "texts" / f"{slug}-{digest}.sqlite3"

    def encode(self, texts: Sequence[str]) -> torch.Tensor:  # [n, dim]
        """Unit vectors of the texts, float32 on the CPU."""
        keys = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        wanted = dict(zip(keys, texts, strict=True))
        known = self._read(list(wanted))
        missing = [key for key in wanted if key not in known]
        for start in range(0, len(missing), _CHUNK):
            chunk = missing[start : start + _CHUNK]
            vectors = self._encoder.encode([wanted[key] for key in chunk]).numpy()
            fresh = dict(zip(chunk, vectors, strict=True))
            self._write(fresh)
            known.update(fresh)
        if not keys:
            return torch.zeros(0, self.dim, device="cpu")
        return torch.from_numpy(np.stack([known[key] for key in keys]))

    def _connect(self) -> sqlite3.Connection:
        # A connection per call: it may be used from any thread and survives a fork.
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB NOT NULL)")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _read(self, keys: list[bytes]) -> dict[bytes, np.ndarray]:
        found: dict[bytes, np.ndarray] = {}
        try:
            with closing(self._connect()) as connection:
                for start in range(0, len(keys), 500):  # SQLite limits the parameters of a statement
                    chunk = keys[start : start + 500]
                    wanted = ",".join("?" * len(chunk))
                    for key, blob in connection.execute(
                        f"SELECT text, vector FROM vectors WHERE text IN ({wanted})", chunk
                    ):
                        if len(blob) == 4 * self.dim:
                            found[key] = np.frombuffer(blob, "<f4")
        except (sqlite3.Error, OSError) as error:
            self._warn("read", error)
        return found

    def _write(self, vectors: dict[bytes, np.ndarray]) -> None:
        rows = [(key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()]
        try:
            with closing(self._connect()) as connection, connection:
                connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        except (sqlite3.Error, OSError) as error:
            self._warn("write", error)

    def _warn(self, action: str, error: Exception) -> None:
        _log.warning("text cache not usable", action=action, path=str(self.path), error=str(error))

"""How much a packed file may unpack into: a few kilobytes can be made to fill any disk."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import IO

from adatkg_core.errors import InputError

RATIO = 200  # bytes out of one; tables of events pack to a tenth or a twentieth
AT_LEAST = 64 << 20


class LimitedReader(io.RawIOBase):
    """What comes out of a packed stream, refused once it is far more than went in; `taken` says how much that was."""

    def __init__(self, name: str, unpacked: IO[bytes], taken: Callable[[], int]) -> None:
        self._name, self._unpacked, self._taken = name, unpacked, taken
        self._given = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill a buffer with what comes next."""
        data = self._unpacked.read(len(buffer))
        buffer[: len(data)] = data
        self._given += len(data)
        if self._given > max(AT_LEAST, RATIO * self._taken()):
            raise InputError(
                f"{self._name} unpacks into more than {RATIO} times its size: this is no table of events; unpack it "
                "yourself if you trust it"
            )
        return len(data)

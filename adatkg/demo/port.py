"""A port for the dashboard that no other demonstration takes meanwhile."""

from __future__ import annotations

import fcntl
import os

from adatkg_core.errors import InputError
from adatkg_core.runtime import default_cache
from streams.embedded_broker import check_port, choose_port


class Port:
    """The wanted port of a host if it is free, else another one.

    The worker listens on it only seconds later, so demonstrations that begin together agree by a lock in the cache.
    """

    def __init__(self, host: str, wanted: int) -> None:
        self._lock: int | None = None
        self.number = wanted if wanted and _is_free(host, wanted) and self._claim(wanted) else choose_port(host)

    def close(self) -> None:
        """Leave it to others."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _claim(self, number: int) -> bool:
        folder = default_cache() / "ports"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / str(number), os.O_RDWR | os.O_CREAT, 0o644)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            return False
        except OSError as error:
            raise InputError(
                f"{folder}: {error.strerror}; set ADATKG_CACHE to a folder that can be written to"
            ) from error
        return True


def _is_free(host: str, number: int) -> bool:
    try:
        check_port(host, number)
    except InputError:
        return False
    return True

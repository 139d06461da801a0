"""One trainer at a time for an archive; what holds on all machines is the lease."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adatkg_core.errors import InputError


@contextmanager
def only_trainer(folder: Path, graph: str) -> Iterator[None]:
    """Hold the folder's lock; it ends with the process, however that ends."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / "lock"
    with place.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise InputError(
                f"graph {graph}: process {file.read().strip() or 'unknown'} is training it already ({place}); "
                "wait for it or stop it"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield

"""Facts given as rows of catalog and relations: whether they can be, and which are of one time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from adatkg_core.errors import InputError


def require_known(facts: NDArray[np.int64], entities: int, relations: int) -> None:
    """Raises InputError where facts [n, 4] name rows that are not there: compiled code would not look."""
    if len(facts) == 0:
        return
    ends, relation = facts[:, :3:2], facts[:, 1]
    for what, rows, there in (("entity", ends, entities), ("relation", relation, relations)):
        if int(rows.min()) < 0 or int(rows.max()) >= there:
            wrong = int(rows.min()) if int(rows.min()) < 0 else int(rows.max())
            raise InputError(f"facts by rows: there is no {what} {wrong}, for {there} are registered")


def by_time(facts: NDArray[np.int64], watermark: int | None) -> Iterator[tuple[int, slice]]:
    """The times of facts [n, 4] in log order, and which are of each; a late one is of the time before it."""
    if len(facts) == 0:
        return
    times = np.maximum.accumulate(facts[:, 3])
    if watermark is not None:
        times = times.clip(min=watermark)
    start = 0
    for end in (*(np.flatnonzero(times[1:] != times[:-1]) + 1).tolist(), len(times)):
        yield int(times[start]), slice(start, end)
        start = end

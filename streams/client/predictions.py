"""Which predictions have been read already."""

from __future__ import annotations

from collections import defaultdict

from adatkg_core.messages import Prediction

# A worker that was killed answers again what came after its last snapshot, so repeats follow their originals within
# one snapshot's worth of queries. More ids than that per partition of the events need not be remembered.
REMEMBERED = 100_000


class Seen:
    """The ids of the latest forecasts, for each partition of the events apart: a busy one does not push others out."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._ids: defaultdict[int, dict[str, None]] = defaultdict(dict)  # a dict keeps the order of its keys

    def repeats(self, forecast: Prediction) -> bool:
        """Whether this forecast was here before; from now on it was."""
        ids = self._ids[forecast.source.partition]
        if forecast.id in ids:
            return True
        ids[forecast.id] = None
        if len(ids) > self._remembered:
            del ids[next(iter(ids))]
        return False

"""What becomes of events that no graph here takes: refused, moved to where they belong, or left for a first model."""

from __future__ import annotations

from collections.abc import Sequence

from adatkg_core.messages import MAX_BYTES, Question, Reason, Unusable, decode_event
from streams.worker.arrival import Arrival
from streams.worker.batch import BatchResult, Rejected
from streams.worker.replica import Replica


class TurnedAway:
    """Of several replicas one says so."""

    def __init__(self, replica: Replica, models: str) -> None:
        """`models` is where the model store is."""
        self._replica, self._models = replica, models

    def refuse(self, name: str, arrivals: Sequence[Arrival], problem: Unusable) -> BatchResult:
        """They become dead letters."""
        refused = arrivals if self._replica.leads else ()
        return BatchResult(name, rejected=[Rejected(arrival, problem.code, problem.detail) for arrival in refused])

    def move(self, name: str, arrivals: Sequence[Arrival]) -> BatchResult:
        """To the graph's own partition, whose state and order are its only ones."""
        large = [one for one in arrivals if len(one.value or b"") > MAX_BYTES]
        detail = f"the message has more than the {MAX_BYTES} bytes of an event"
        result = self.refuse(name, large, Unusable(Reason.TOO_LARGE, detail))
        if self._replica.leads:
            result.moved = [one for one in arrivals if len(one.value or b"") <= MAX_BYTES]
            result.counts["moved"] = len(result.moved)
        return result

    def without_model(self, name: str, arrivals: Sequence[Arrival]) -> BatchResult:
        """Facts wait in the log, where the first model will find them; a question cannot wait."""
        result = BatchResult(name)
        detail = f"graph {name} has no model in {self._models}: train one with --models and --graph"
        for arrival in arrivals:
            try:
                if isinstance(event := decode_event(arrival.value, None), Question):
                    if self._replica.answers(event.id):
                        result.rejected.append(Rejected(arrival, Reason.NO_MODEL, detail))
                else:
                    result.counts["waiting"] += 1
            except Unusable as problem:
                if problem.code == Reason.BAD_TIME:  # without a model there is no clock to read it by
                    result.counts["waiting"] += 1
                elif self._replica.leads:
                    result.rejected.append(Rejected(arrival, problem.code, problem.detail))
        return result

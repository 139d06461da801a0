"""How much work one query may ask for: a queue is shared, and every name to be ranked is read and scored."""

from __future__ import annotations

from dataclasses import dataclass

from adatkg_core.messages import Question, Reason, Unusable
from streams.settings import StreamSettings


@dataclass(frozen=True)
class QueryLimits:
    """The most answers and the most ranks that a query gets."""

    k: int
    ranked: int

    def require(self, question: Question) -> None:
        """Raises Unusable for a query that asks for more."""
        for field, asked, most, setting in (
            ("k", question.query.k, self.k, "max_k"),
            ("rank_of", len(question.query.rank_of), self.ranked, "max_ranked"),
        ):
            if asked > most:
                detail = f"{field} asks for {asked}: this worker gives {most} at most (its setting {setting})"
                raise Unusable(Reason.TOO_MUCH, detail)


def limits_of(settings: StreamSettings) -> QueryLimits:
    """The limits that a worker's settings give."""
    return QueryLimits(settings.max_k, settings.max_ranked)

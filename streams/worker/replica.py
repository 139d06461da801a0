"""Which of several replicas answers a query: each takes in every fact, and the queries are dealt out by their ids."""

from __future__ import annotations

import zlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Replica:
    """Replica `replica` of `replicas`, counted from 1."""

    replica: int = 1
    replicas: int = 1

    def answers(self, query_id: str) -> bool:
        """Whether the query is this replica's; exactly one replica says so."""
        return zlib.crc32(query_id.encode()) % self.replicas == self.replica - 1

    @property
    def leads(self) -> bool:
        """Whether this replica reports what no query is: facts and trash that cannot be processed."""
        return self.replica == 1

    @property
    def name(self) -> str:
        """What sets this replica's consumer group and snapshots apart; empty for one that is alone."""
        return "" if self.replicas == 1 else f"{self.replica}-of-{self.replicas}"

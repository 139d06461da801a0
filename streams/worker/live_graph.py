"""One graph of the stream: its engine, fed with what the log brings, in the log's order."""

from __future__ import annotations

from collections.abc import Sequence

from adatkg_core.engine import Engine
from adatkg_core.model import keeps_counts
from adatkg_core.storage import Bundle, Saved, folder_for_copies
from adatkg_core.text import TextEncoder
from streams.kafka import Origins
from streams.settings import StreamSettings
from streams.worker.arrival import Arrival
from streams.worker.batch import Batch, BatchResult
from streams.worker.graph_capture import GraphCapture, SnapshotBase
from streams.worker.live_score import LiveScore
from streams.worker.query_limits import limits_of
from streams.worker.replica import Replica

OUTGROWN = 0.5  # of a whole snapshot's bytes: when what changed since takes more, the next one is whole again


class LiveGraph:
    """Applies events to the engine and answers queries, as if one by one, in batches."""

    def __init__(
        self,
        name: str,
        bundle: Bundle,
        encoder: TextEncoder,
        settings: StreamSettings,
        replica: Replica,
        saved: Saved | None = None,
    ) -> None:
        """From what was saved, or from nothing."""
        snapshot = saved.snapshot.given() if saved else None
        self.name, self.bundle, self.replica = name, bundle, replica
        self.engine: Engine = bundle.engine(encoder, late=settings.late, max_jump=settings.max_jump, snapshot=snapshot)
        self.known_through = saved.known_through if saved else None
        self.origins = Origins(saved.origins if saved else ())
        self.last = saved.last if saved else None
        self.limits = limits_of(settings)
        self.score = LiveScore(horizon=settings.horizon)
        self.heuristic = settings.heuristic and keeps_counts(self.engine.state)
        self._folder = folder_for_copies(settings.snapshots)
        self._base: SnapshotBase | None = None  # upon which the next snapshot may build

    @property
    def version(self) -> str:
        """The bundle that answers."""
        return self.bundle.version

    def apply(self, arrivals: Sequence[Arrival], *, silent: bool = False) -> BatchResult:
        """Take in events in log order, up to one from which on another version answers.

        Silent: only the state follows, since others have answered for it.
        """
        batch = Batch(self, silent=silent)
        for i, arrival in enumerate(arrivals):
            if (switch := batch.add(arrival)) is not None:
                self._took(arrivals[:i])
                return batch.finish(switch)
        self._took(arrivals)
        return batch.finish()

    def follow(self, arrivals: Sequence[Arrival]) -> None:
        """Let the state follow the log, whichever version answers there."""
        batch = Batch(self, silent=True)
        for arrival in arrivals:
            if batch.add(arrival) is not None:
                self.origins.take(arrival.origin)
        self._took(arrivals)
        batch.finish()

    def capture(self, offset: int, log_id: str) -> GraphCapture:
        """The state as of before the event at `offset` of this log, to be copied: what changed since the last whole
        snapshot, if that is durable, else everything."""
        base, self._base = self._base, None
        captured = self.engine.capture(None if base is None else base.changes, self._folder)
        if captured.is_whole or base is None:
            base, changes = None, self.engine.state.watch_changes()
        else:
            changes = base.changes
        return GraphCapture(
            captured,
            base,
            changes,
            graph=self.name,
            version=self.version,
            offset=offset,
            known_through=self.known_through,
            log=log_id,
            origins=self.origins.pairs(),
            last=self.last,
        )

    def is_durable(self, capture: GraphCapture) -> None:
        """What was captured here is written; until a graph hears of that its snapshots are whole ones."""
        size = capture.engine.size
        if capture.base is None:
            self._base = SnapshotBase(capture.offset, size, capture.changes)
        elif size <= OUTGROWN * capture.base.size:
            self._base = capture.base

    def _took(self, arrivals: Sequence[Arrival]) -> None:
        if arrivals:
            self.last = arrivals[-1].as_last()

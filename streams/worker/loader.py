"""Where graphs come from and where they are kept: bundles from the model store, states from snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import structlog
import torch

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.messages import Announcement
from adatkg_core.storage import Bundle, ModelStore, Saved, SnapshotStore, resolve_device, why_unfit
from adatkg_core.text import TextEncoder, load_encoder
from streams.settings import StreamSettings
from streams.worker.live_graph import LiveGraph
from streams.worker.replica import Replica

log = structlog.get_logger()


class Loader:
    """Reads and writes the stores for one worker."""

    def __init__(self, settings: StreamSettings, replica: Replica) -> None:
        self._settings, self._replica = settings, replica
        self._device = resolve_device(settings.device)
        self._models = ModelStore(settings.models)
        self._encoders: dict[tuple[str, str], TextEncoder] = {}

    @property
    def models(self) -> str:
        """Where the model store is."""
        return self._models.url

    def present_version(self, name: str) -> str | None:
        """The version that should answer for a graph."""
        return self._models.present(name)

    def present(self, name: str) -> Bundle | None:
        """The present bundle; where it is damaged, the one that was present before. A store that is away raises."""
        try:
            line = self._models.line(name)
        except InputError as error:
            log.error("model_unusable", graph=name, problem=str(error))
            return None
        if not line:
            log.warning("graph_without_model", graph=name, models=self._models.url)
        for version in line:
            try:
                bundle = self._models.bundle(name, version, self._device)
                problem = why_unfit(bundle, None, name, None, True)
            except InputError as error:
                problem = str(error)
            if problem is None:
                return bundle
            log.error("model_unusable", graph=name, version=version, problem=problem)
        return None

    def load(self, name: str, bundle: Bundle, log_id: str, first: int, end: int) -> tuple[LiveGraph, int]:
        """A graph and the offset it stands at, when its log reaches from `first` to `end`.

        From the newest sound snapshot, else from the state that came with the bundle, else from nothing.
        """
        for saved in self._starts(name, bundle, log_id):
            if saved.log not in ("", log_id) or saved.offset > end:
                log.warning("snapshot_of_another_log", graph=name, offset=saved.offset, end=end)
                continue
            try:
                graph = self.graph(name, bundle, saved, self._device)
            except AdatkgError as error:
                log.warning("snapshot_unusable", graph=name, offset=saved.offset, problem=str(error))
                continue
            if saved.offset < first:
                log.error("log_truncated", graph=name, wanted=saved.offset, first=first)
            return graph, saved.offset
        if first > 0:
            log.error("log_truncated", graph=name, wanted=0, first=first)
        return self.graph(name, bundle, None, self._device), first

    def graph(self, name: str, bundle: Bundle, saved: Saved | None, device: str) -> LiveGraph:
        """A graph with this bundle, which is on this device, from what was saved or from nothing."""
        return LiveGraph(name, bundle, self._encoder(bundle, device), self._settings, self._replica, saved)

    def candidate(self, announcement: Announcement, present: Bundle) -> tuple[LiveGraph, int]:
        """The announced bundle with its state, and the offset it stands at; raises with the reason if it is unfit.

        It is read and put together in plain memory, so that this may run beside the thread that has the device;
        `move` brings it there.
        """
        name = announcement.graph
        bundle = self._models.bundle(name, announcement.version)
        reason = why_unfit(bundle, present, name, announcement.verdict, announcement.forced)
        if reason:
            raise InputError(reason)
        saved = self._models.state(name, announcement.version)
        return self.graph(name, bundle, saved, "cpu"), saved.offset if saved else 0

    def move(self, graph: LiveGraph) -> Iterator[None]:
        """Bring a graph to this worker's device in small steps, all of them for the thread that has it."""
        engine = graph.engine
        if engine.device != torch.device(self._device):
            yield from engine.move(torch.device(self._device), self._encoder(graph.bundle, self._device))

    def save(self, saved: Saved) -> None:
        """Write a snapshot; touches no device."""
        self._snapshots(saved.graph, saved.log).save(saved)

    def _starts(self, name: str, bundle: Bundle, log_id: str) -> Iterable[Saved]:
        yield from self._snapshots(name, log_id).newest_first(bundle.version, self._device)
        try:
            state = self._models.state(name, bundle.version, self._device)
        except AdatkgError as error:
            log.warning("snapshot_unusable", graph=name, problem=str(error))
        else:
            if state is not None:
                yield state

    def _snapshots(self, graph: str, log_id: str) -> SnapshotStore:
        url = self._settings.snapshots
        if self._replica.name:
            url = f"{url.rstrip('/')}/{self._replica.name}"
        return SnapshotStore(url, graph, log_id, self._settings.keep_snapshots)

    def _encoder(self, bundle: Bundle, device: str) -> TextEncoder:
        key = (bundle.model.config.model.encoder, device)
        if key not in self._encoders:
            # At once: else the first newcomer would hold up the stream for as long as a language model takes to load.
            self._encoders[key] = load_encoder(key[0], device=device, at_once=True)
        return self._encoders[key]

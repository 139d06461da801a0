"""Where graphs come from and where they are kept: bundles from the model store, states from snapshots."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import fields

import structlog
import torch

from adatkg_core.errors import InputError
from adatkg_core.messages import Announcement
from adatkg_core.storage import Bundle, ModelStore, Saved, SnapshotStore, resolve_device, safe_name, why_unfit
from adatkg_core.text import TextEncoder, load_encoder
from streams.settings import StreamSettings
from streams.worker.live_graph import LiveGraph
from streams.worker.replica import Replica

DEFAULT_GROUP = next(one.default for one in fields(StreamSettings) if one.name == "group")
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

    def present(self, name: str, device: str | None = None) -> Bundle | None:
        """The present bundle, None where there is none; where it is damaged, the one that was present before.

        Raises where all are damaged, with what is wrong with the present one, and where the store is away.
        """
        line = self._models.line(name)
        if not line:
            log.warning("graph_without_model", graph=name, models=self._models.url)
            return None
        problems = []
        for version in line:
            try:
                bundle = self._models.bundle(name, version, device or self._device)
                self._encoder(bundle, device or self._device)
                problem = why_unfit(bundle, None, name, None, True)
            except InputError as error:
                problem = str(error)
            except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                problem = f"its description has values that no bundle has ({type(error).__name__}: {error})"
            if problem is None:
                return bundle
            log.error("model_unusable", graph=name, version=version, problem=problem)
            problems.append(f"bundle {version} of graph {name} cannot be used: {problem}")
        raise InputError(problems[0])

    def load(
        self, name: str, bundle: Bundle, log_id: str, first: int, end: int, device: str | None = None
    ) -> tuple[LiveGraph, int]:
        """A graph and the offset it stands at, when its log reaches from `first` to `end`.

        From the newest sound snapshot, else from the state that came with the bundle, else from nothing.
        """
        device = device or self._device
        self._encoder(bundle, device)  # what is wrong with it is not the snapshots' fault
        for saved in self._starts(name, bundle, log_id, device):
            if saved.log not in ("", log_id) or saved.offset > end:
                log.warning("snapshot_of_another_log", graph=name, offset=saved.offset, end=end)
                continue
            try:
                return self.graph(name, bundle, saved, device), saved.offset
            except (MemoryError, torch.OutOfMemoryError):
                raise
            except Exception as error:  # a checksum only says that it is as it was written, by whatever program
                log.warning("snapshot_unusable", graph=name, offset=saved.offset, problem=repr(error))
        return self.graph(name, bundle, None, device), 0

    def graphs(self) -> list[str]:
        """The graphs that have a place in the model store."""
        return self._models.graphs()

    def has_snapshot(self, name: str, log_id: str) -> bool:
        """Whether a graph has been here before."""
        return self._snapshots(name, log_id).exist

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

    def _starts(self, name: str, bundle: Bundle, log_id: str, device: str) -> Iterable[Saved]:
        yield from self._snapshots(name, log_id).newest_first(bundle.version, device)
        try:
            state = self._models.state(name, bundle.version, device)
        except InputError as error:
            log.warning("snapshot_unusable", graph=name, problem=str(error))
        else:
            if state is not None:
                yield state

    def _snapshots(self, graph: str, log_id: str) -> SnapshotStore:
        """Each group and each replica has its own: what lies below another one's offset this one has not answered."""
        url, group = self._settings.snapshots, self._settings.group
        if group != DEFAULT_GROUP:
            url = posixpath.join(url, f"@{safe_name(group)}")  # no graph's folder begins so
        if self._replica.name:
            url = posixpath.join(url, self._replica.name)
        return SnapshotStore(url, graph, log_id, self._settings.keep_snapshots)

    def _encoder(self, bundle: Bundle, device: str) -> TextEncoder:
        key = (bundle.model.config.model.encoder, device)
        if key not in self._encoders:
            # At once: else the first newcomer would hold up the stream for as long as a language model takes to load.
            self._encoders[key] = load_encoder(key[0], device=device, at_once=True)
        return self._encoders[key]

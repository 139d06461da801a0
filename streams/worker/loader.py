"""Where graphs come from and where they are kept: bundles from the model store, states from snapshots."""

from __future__ import annotations

import heapq
import posixpath
from collections.abc import Iterator
from dataclasses import fields
from functools import cache

import structlog
import torch

from adatkg_core.errors import InputError
from adatkg_core.messages import Announcement
from adatkg_core.storage import (
    Bundle,
    ModelStore,
    Place,
    Saved,
    SavedIncrement,
    SnapshotStore,
    named_bundle,
    resolve_device,
    safe_name,
    verdict_on,
    why_unfit,
)
from adatkg_core.text import Loading, TextEncoder, load_encoder
from streams.settings import StreamSettings
from streams.worker.live_graph import LiveGraph
from streams.worker.replica import Replica
from streams.worker.state_check import StateCheck

DEFAULT_GROUP = next(one.default for one in fields(StreamSettings) if one.name == "group")
log = structlog.get_logger()


class Loader:
    """Reads and writes the stores for one worker.

    What is damaged is passed over where something else gives the same graph; a store that fails raises, for what it
    keeps may be sound all the same.
    """

    def __init__(self, settings: StreamSettings, replica: Replica) -> None:
        self._settings, self._replica = settings, replica
        self._device = resolve_device(settings.device)
        self._models = ModelStore(settings.models)
        self._encoders: dict[tuple[str, str], TextEncoder] = {}
        self._refused: dict[str, tuple[Place, ...]] = {}  # snapshots of each graph with events that its log has lost

    @property
    def models(self) -> str:
        """Where the model store is."""
        return self._models.url

    def graphs(self) -> list[str]:
        """The graphs that have a place in the model store."""
        return self._models.graphs()

    def has_model(self, name: str) -> bool:
        """Whether a graph has a first version."""
        return self._models.first(name) is not None

    def has_snapshot(self, name: str, log_id: str) -> bool:
        """Whether a graph has been here before."""
        return self._snapshots(name, log_id).exist

    def present_version(self, name: str) -> str | None:
        """The version that should answer for a graph; its log says which one does."""
        return self._models.present(name)

    def begin(
        self, name: str, check: StateCheck, offset: int, device: str | None = None
    ) -> tuple[LiveGraph, int] | None:
        """A graph that is to be fed from `offset` on, and the offset it stands at; None where it has no model.

        From the newest sound snapshot, with the version that made it, for that is the one that the log names there.
        Else with the first version: from the state that came with it, if that is not beyond what is to be answered,
        else from nothing. Raises where the first version cannot be used: no other may answer in its place. `check`
        says what is of the log.
        """
        device = device or self._device
        sound_bundle = cache(lambda version: self._sound_bundle(name, version, device))
        for saved in self._snapshots(name, check.log_id).newest_first(None, device):
            bundle = sound_bundle(saved.version) if check.accepts(saved) else None
            self._refused[name] = tuple(check.refused)
            graph = self._restored(name, bundle, saved, device) if bundle is not None else None
            if graph is not None:
                return graph, saved.offset
        version = self._models.first(name)
        if version is None:
            log.warning("graph_without_model", graph=name, models=self._models.url)
            return None
        bundle = self._usable_bundle(name, version, device)
        for saved in self._shipped(name, version, device):
            usable = check.accepts(saved) and saved.offset <= offset
            graph = self._restored(name, bundle, saved, device) if usable else None
            if graph is not None:
                return graph, saved.offset
        return self.graph(name, bundle, None, device), 0

    def wish(self, name: str, version: str) -> Announcement:
        """What was announced of a version that the store says is present, by its note."""
        forced = self._models.note(name, version).get("forced", True) is not False
        verdict = verdict_on(self._models, name, version)
        return Announcement(name, version, "present", "present in the store", forced=forced, verdict=verdict)

    def candidate(self, wished: Announcement, present: Bundle, log_id: str, end: int) -> tuple[LiveGraph, int]:
        """The wished version with its state, and the offset it stands at; raises with the reason if it is unfit.

        It is read and put together in plain memory, so that this may run beside the thread that has the device;
        `move` brings it there. `end` is that of the log.
        """
        name, version = wished.graph, wished.version
        bundle = self._models.bundle(name, version)
        if reason := why_unfit(bundle, present, name, wished.verdict, wished.forced):
            raise InputError(reason)
        saved = self._models.state(name, version)
        if saved is not None and saved.log not in ("", log_id):
            raise InputError(
                f"the state of bundle {version} of graph {name} belongs to another log, {saved.log}, not to {log_id}: "
                "its offsets mean nothing here; train from this log"
            )
        if saved is not None and saved.offset > end:
            raise InputError(
                f"the state of bundle {version} of graph {name} stands at offset {saved.offset}, but the log ends at "
                f"{end}; train from this log"
            )
        return self._caught_up_furthest(name, bundle, log_id, end)

    def named(self, name: str, version: str, present: Bundle, log_id: str, offset: int) -> tuple[LiveGraph, int]:
        """The version that a model event at `offset` names, from a state that is not beyond it; raises Unusable.

        Put together in plain memory, like a candidate.
        """
        bundle = named_bundle(self._models, name, version, present)
        return self._caught_up_furthest(name, bundle, log_id, offset)

    def graph(self, name: str, bundle: Bundle, saved: Saved | None, device: str) -> LiveGraph:
        """A graph with this bundle, which is on this device, from what was saved or from nothing."""
        return LiveGraph(name, bundle, self._encoder(bundle, device), self._settings, self._replica, saved)

    def move(self, graph: LiveGraph) -> Iterator[None]:
        """Bring a graph to this worker's device in small steps, all of them for the thread that has it."""
        engine = graph.engine
        if engine.device != torch.device(self._device):
            yield from engine.move(torch.device(self._device), self._encoder(graph.bundle, self._device))

    def save(self, saved: Saved | SavedIncrement) -> None:
        """Write a snapshot; touches no device."""
        self._snapshots(saved.graph, saved.log).save(saved, self._refused.pop(saved.graph, ()))

    def _caught_up_furthest(self, name: str, bundle: Bundle, log_id: str, limit: int) -> tuple[LiveGraph, int]:
        """A graph of this version that stands at `limit` or before it, as near as what is kept allows."""
        self._encoder(bundle, "cpu")  # what is wrong with it is not the snapshots' fault
        snapshots = self._snapshots(name, log_id).newest_first(bundle.version, "cpu", limit)
        shipped = self._shipped(name, bundle.version, "cpu")
        for saved in heapq.merge(snapshots, shipped, key=lambda one: one.offset, reverse=True):
            graph = self._restored(name, bundle, saved, "cpu") if self._is_of(saved, log_id, limit) else None
            if graph is not None:
                return graph, saved.offset
        return self.graph(name, bundle, None, "cpu"), 0

    def _shipped(self, name: str, version: str, device: str) -> Iterator[Saved]:
        """The state that came with a bundle, where there is one that is not damaged."""
        try:
            state = self._models.state(name, version, device)
        except InputError as error:
            log.warning("snapshot_unusable", graph=name, problem=str(error))
        else:
            if state is not None:
                yield state

    def _is_of(self, saved: Saved, log_id: str, end: int) -> bool:
        """Whether a state belongs to this log and stands before or at `end`."""
        refused = saved.place in self._refused.get(saved.graph, ())
        ours = saved.log in ("", log_id) and saved.offset <= end and not refused
        if not ours:
            log.warning("snapshot_of_another_log", graph=saved.graph, offset=saved.offset, end=end)
        return ours

    def _restored(self, name: str, bundle: Bundle, saved: Saved, device: str) -> LiveGraph | None:
        try:
            return self.graph(name, bundle, saved, device)
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # a checksum only says that it is as it was written, by whatever program
            log.warning("snapshot_unusable", graph=name, offset=saved.offset, problem=repr(error))
            return None

    def _sound_bundle(self, name: str, version: str, device: str) -> Bundle | None:
        try:
            return self._usable_bundle(name, version, device)
        except InputError:
            return None

    def _usable_bundle(self, name: str, version: str, device: str) -> Bundle:
        """A bundle with its encoder; raises InputError where it is damaged or unfit."""
        try:
            bundle = self._models.bundle(name, version, device)
            self._encoder(bundle, device)
            problem = why_unfit(bundle, None, name, None, True)
        except InputError as error:
            problem = str(error)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            problem = f"its description has values that no bundle has ({type(error).__name__}: {error})"
        if problem is None:
            return bundle
        log.error("model_unusable", graph=name, version=version, problem=problem)
        raise InputError(f"bundle {version} of graph {name} cannot be used: {problem}")

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
            # Before the first newcomer comes, whom it would hold up for seconds; beside, where nothing else has the
            # device.
            loading: Loading = "beside" if device == "cpu" else "at once"
            self._encoders[key] = load_encoder(key[0], device=device, loading=loading)
        return self._encoders[key]

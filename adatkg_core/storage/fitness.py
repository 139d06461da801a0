"""Whether a bundle may answer for a graph: the one list of reasons against it, for the command and for the worker."""

from __future__ import annotations

from collections.abc import Sequence

from adatkg_core.errors import InputError
from adatkg_core.messages import Reason, Unusable, Verdict
from adatkg_core.storage.artifact import require_finite
from adatkg_core.storage.bundle import Bundle
from adatkg_core.storage.model_store import ModelStore


def why_unfit(
    candidate: Bundle, present: Bundle | None, graph: str, verdict: Verdict | None, forced: bool
) -> str | None:
    """Why this bundle must not answer for this graph; None if it may. Force overrides only a verdict."""
    if candidate.graph != graph:
        trained = f"for graph {candidate.graph}" if candidate.graph is not None else "for no graph"
        return f"bundle {candidate.version} was made {trained}, not for {graph}; train one for {graph}"
    try:
        require_finite(candidate.model.state_dict(), f"bundle {candidate.version} of graph {graph}")
    except InputError as error:
        return str(error)
    if present is not None:
        lacking = why_lacking(candidate.relations, present, f"bundle {candidate.version} of graph {graph}")
        if lacking is not None:
            return lacking
    if verdict is not None and not verdict.better and not forced:
        wanted = f" and had to be better by {verdict.margin:g}" if verdict.margin else ""
        return (
            f"bundle {candidate.version} of graph {graph} did worse than the one present when it was judged: "
            f"{verdict.candidate:.4f} against {verdict.present:.4f} ({verdict.slice}){wanted}; promote it by force, "
            "or train another"
        )
    return None


def named_bundle(store: ModelStore, graph: str, version: str, present: Bundle) -> Bundle:
    """The bundle that a model event names where `present` has answered so far. Raises Unusable if it may not answer.

    This follows from the log and from what was written into the store, and from nothing else: not from a verdict, for
    that was asked for before the event was written. A bundle that is there and cannot be read is another matter: it may
    have answered elsewhere, so nothing stands in for it, and the error of reading it is raised.
    """
    if version not in store.versions(graph):
        detail = f"graph {graph} has no bundle {version} in {store.url}: {present.version} goes on"
        raise Unusable(Reason.UNKNOWN_MODEL, detail)
    bundle = store.bundle(graph, version)
    if reason := why_unfit(bundle, present, graph, None, True):
        raise Unusable(Reason.UNFIT_MODEL, reason)
    return bundle


def why_lacking(relations: Sequence[str], present: Bundle, what: str) -> str | None:
    """Why nothing with only these relations may follow the present bundle; None if they are enough.

    The log may hold facts of every relation that the present one knows.
    """
    known = set(relations)
    missing = next((name for name in present.relations if name not in known), None)
    if missing is None:
        return None
    return (
        f"{what} lacks relation {missing!r} that the present one, {present.version}, knows; train it with that relation"
    )

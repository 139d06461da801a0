"""What is known of the bundles in a model store, in plain values for people and programs."""

from __future__ import annotations

from typing import Any

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.messages import Unusable, Verdict, verdict_from
from adatkg_core.storage.model_store import ModelStore


def bundle_rows(store: ModelStore, graph: str) -> list[dict[str, Any]]:
    """A graph's bundles, the newest last; `problem` says what is wrong with one as far as a glance can tell."""
    line, rows = store.line(graph), []
    for version in store.versions(graph):
        note = store.note(graph, version)
        row = {"graph": graph, "version": version, "is": _role(line, version), "created": note.get("created")}
        try:
            measured, verdict, problem = _measured(store, graph, version), verdict_on(store, graph, version), None
        except AdatkgError as error:
            measured, verdict, problem = (None, None), None, str(error)
        row |= {"mrr": measured[0], "measured_on": measured[1], "reason": note.get("reason"), "problem": problem}
        row |= {"present_mrr": verdict.present if verdict else None, "better": verdict.better if verdict else None}
        row |= {"seconds": note.get("seconds"), "facts": note.get("facts")}
        rows.append(row)
    return sorted(rows, key=lambda row: str(row["created"] or ""))


def describe_bundle(store: ModelStore, graph: str, version: str) -> dict[str, Any]:
    """Everything about one bundle; it is read to its end, and `problem` says what is wrong with it."""
    described: dict[str, Any] = {
        "graph": graph,
        "version": version,
        "is": _role(store.line(graph), version),
        "url": store.bundle_url(graph, version),
        "problem": None,
        "note": store.note(graph, version),
    }
    try:
        meta, size = store.bundle_meta(graph, version)
        state = store.state_meta(graph, version)
        described |= {
            "encoder": meta.get("encoder"),
            "relations": len(meta.get("relations", ())),
            "entities": len(meta.get("entities", ())),
            "names": meta.get("config", {}).get("model", {}).get("names"),
            "clock": meta.get("clock"),
            "bytes": size,
            "state": None if state is None else _place_in_log(*state),
            "metrics": meta.get("metrics"),
            "config": meta.get("config"),
        }
        store.bundle(graph, version)
    except AdatkgError as error:
        described["problem"] = str(error)
    return described


def verdict_on(store: ModelStore, graph: str, version: str) -> Verdict | None:
    """How a bundle was judged, by its note; None if it was not."""
    scores = store.note(graph, version).get("scores")
    try:
        return None if scores is None else verdict_from(scores)
    except Unusable as problem:
        raise InputError(
            f"{store.url}: note on bundle {version} of graph {graph}: {problem.detail}; mend or remove the note"
        ) from problem


def _role(line: list[str], version: str) -> str:
    if version not in line:
        return "candidate"
    return "present" if version == line[0] else "before"


def _place_in_log(meta: dict[str, Any], size: int) -> dict[str, Any]:
    return {"offset": meta.get("offset"), "known_through": meta.get("known_through"), "bytes": size}


def _measured(store: ModelStore, graph: str, version: str) -> tuple[float | None, str | None]:
    """Its MRR, and on what."""
    meta, _ = store.bundle_meta(graph, version)
    verdict = verdict_on(store, graph, version)
    if verdict is not None:
        return verdict.candidate, f"newest window, {verdict.slice}"
    try:
        return float(meta["metrics"]["valid"]["slices"]["all"]["mrr"]), "valid, all"
    except (KeyError, TypeError, ValueError):
        return None, None

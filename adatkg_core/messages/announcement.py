"""Announcements of bundles: which one answers for a graph, by what figures, and which were only tried."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import orjson

from adatkg_core.messages.events import VERSION, Unusable, decode_by
from adatkg_core.messages.shapes import mismatch

Status = Literal["present", "candidate"]


@dataclass(frozen=True)
class Verdict:
    """How a candidate did against the present bundle on the same newest window, strictly causal."""

    slice: str
    margin: float  # by how much the candidate has to be better
    candidate: float
    present: float | None  # None: there was none to be better than

    @property
    def better(self) -> bool:
        """Whether the candidate should answer from now on."""
        return self.present is None or self.candidate >= self.present + self.margin


@dataclass(frozen=True)
class Announcement:
    """A bundle is present from now on, or was kept as a candidate; `reason` says why.

    A worker refuses a present one whose own verdict says that it is worse, unless it is `forced`.
    """

    graph: str
    version: str
    status: Status
    reason: str
    verdict: Verdict | None = None
    forced: bool = False

    @property
    def key(self) -> bytes:
        """The topic keeps the latest of each key: the present bundle of a graph, and every candidate's fate."""
        return (self.graph if self.status == "present" else f"{self.graph}@{self.version}").encode()


def encode_announcement(announcement: Announcement) -> bytes:
    """An announcement as bytes."""
    return orjson.dumps(
        {
            "v": VERSION,
            "graph": announcement.graph,
            "version": announcement.version,
            "status": announcement.status,
            "reason": announcement.reason,
            "forced": announcement.forced,
            "scores": None if announcement.verdict is None else asdict(announcement.verdict),
        }
    )


def decode_announcement(data: bytes | None) -> Announcement:
    """The announcement that these bytes are. Raises Unusable."""
    values = decode_by(ANNOUNCEMENT, data, "announcement")
    return Announcement(
        values["graph"],
        values["version"],
        values["status"],
        values["reason"],
        None if values["scores"] is None else verdict_from(values["scores"]),
        values["forced"],
    )


def verdict_from(scores: Any) -> Verdict:
    """The verdict of an announcement's scores, or of a note's. Raises Unusable."""
    if problem := mismatch(scores, _SCORES_SCHEMA, "scores"):
        raise Unusable("wrong-type", f"{problem}: this is no verdict")
    present = scores["present"]
    return Verdict(
        scores["slice"],
        float(scores["margin"]),
        float(scores["candidate"]),
        None if present is None else float(present),
    )


_SCORES_SCHEMA = {
    "type": "object",
    "properties": {
        "slice": {"type": "string", "description": "of the queries, by which the two were judged"},
        "margin": {"type": "number", "description": "by how much the candidate had to be better"},
        "candidate": {"type": "number"},
        "present": {"type": ["number", "null"], "description": "null: there was none to be better than"},
    },
    "required": ["slice", "margin", "candidate", "present"],
}

ANNOUNCEMENT: dict[str, dict[str, Any]] = {
    "graph": {"type": "string"},
    "version": {"type": "string", "description": "of the bundle in the model store"},
    "status": {
        "type": "string",
        "enum": list(get_args(Status)),
        "description": "present: it answers from now on; candidate: it was tried and kept aside",
    },
    "reason": {"type": "string"},
    "forced": {"type": "boolean", "description": "it shall answer whatever its scores say"},
    "scores": {
        **_SCORES_SCHEMA,
        "type": ["object", "null"],
        "description": "MRR of the candidate and of the bundle then present, on the same newest window",
    },
}

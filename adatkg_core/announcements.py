"""Announcements of bundles: which one answers for a graph, by what figures, and which were only tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import orjson

from adatkg_core.messages import VERSION, Unusable

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
    verdict = announcement.verdict
    return orjson.dumps(
        {
            "v": VERSION,
            "graph": announcement.graph,
            "version": announcement.version,
            "status": announcement.status,
            "reason": announcement.reason,
            "forced": announcement.forced,
            "scores": None
            if verdict is None
            else {
                "slice": verdict.slice,
                "margin": verdict.margin,
                "candidate": verdict.candidate,
                "present": verdict.present,
            },
        }
    )


def decode_announcement(data: bytes | None) -> Announcement:
    """The announcement that these bytes are. Raises Unusable."""
    try:
        values: dict[str, Any] = orjson.loads(data or b"")
        if values["v"] != VERSION:
            raise Unusable("unknown-version", f"v is {values['v']!r}: this program reads version {VERSION}")
        scores = values["scores"]
        verdict = None if scores is None else _verdict(scores)
        status = values["status"]
        if status not in ("present", "candidate"):
            raise ValueError(f"status {status!r}")
        return Announcement(
            str(values["graph"]), str(values["version"]), status, str(values["reason"]), verdict, bool(values["forced"])
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise Unusable("not-json", f"not an announcement ({error})") from error


def _verdict(scores: dict[str, Any]) -> Verdict:
    present = scores["present"]
    return Verdict(
        str(scores["slice"]),
        float(scores["margin"]),
        float(scores["candidate"]),
        None if present is None else float(present),
    )

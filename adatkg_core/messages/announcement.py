"""Announcements of bundles: which one answers for a graph, by what figures, and which were only tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import orjson
from msgspec import Meta, Struct, field

from adatkg_core.messages.explanation import explain, explain_part, parse_object, require_version
from adatkg_core.messages.fields import VERSION
from adatkg_core.messages.reasons import Reason, Unusable

Status = Literal["present", "candidate"]


@dataclass(frozen=True)
class Verdict:
    """How a candidate did against the present bundle on the same newest window, strictly causal."""

    slice: Annotated[str, Meta(description="of the queries, by which the two were judged")]
    margin: Annotated[float, Meta(description="by how much the candidate had to be better")]
    candidate: float
    present: Annotated[float | None, Meta(description="null: there was none to be better than")]

    @property
    def better(self) -> bool:
        """Whether the candidate should answer from now on."""
        return self.present is None or self.candidate >= self.present + self.margin


class Announcement(Struct, frozen=True):
    """A bundle is present from now on, or was kept as a candidate; `reason` says why.

    A worker refuses a present one whose own verdict says that it is worse, unless it is `forced`.
    """

    graph: str
    version: Annotated[str, Meta(description="of the bundle in the model store")]
    status: Annotated[
        Status, Meta(description="present: it answers from now on; candidate: it was tried and kept aside")
    ]
    reason: str
    forced: Annotated[bool, Meta(description="it shall answer whatever its scores say")]
    verdict: Annotated[
        Verdict | None,
        Meta(description="MRR of the candidate and of the bundle then present, on the same newest window"),
    ] = field(name="scores")

    @property
    def key(self) -> bytes:
        """The topic keeps the latest of each key: the present bundle of a graph, and every candidate's fate."""
        return (self.graph if self.status == "present" else f"{self.graph}@{self.version}").encode()


def encode_announcement(announcement: Announcement) -> bytes:
    """An announcement as bytes."""
    return orjson.dumps({"v": VERSION, **msgspec.to_builtins(announcement)})


def decode_announcement(data: bytes | None) -> Announcement:
    """The announcement that these bytes are. Raises Unusable."""
    if not data:
        raise Unusable(Reason.NOT_JSON, "the message is empty: this is no announcement")
    values = parse_object(data)
    require_version(values)
    try:
        return msgspec.convert(values, Announcement)
    except msgspec.ValidationError as error:
        raise explain(values, Announcement, "announcement") from error


def verdict_from(scores: Any) -> Verdict:
    """The verdict of a note's scores. Raises Unusable."""
    try:
        return msgspec.convert(scores, Verdict)
    except msgspec.ValidationError as error:
        raise explain_part(scores, Verdict, "scores", "verdict") from error

"""The worker's settings: the [stream] sections of TOML files, then ADATKG_STREAM_* variables, then flags."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from adatkg_core.constants import MAX_JUMP, LatePolicy
from adatkg_core.errors import InputError
from adatkg_core.messages import MAX_K, MAX_RANKED
from adatkg_core.settings import load_section, setting

Horizon = int | Literal["auto"]  # ticks, or as the rhythm of the stream has it


@dataclass(frozen=True)
class StreamSettings:
    """How a worker reads, answers, and keeps what it knows."""

    models: str = setting("models", "Model store, a folder or an fsspec URL.")
    snapshots: str = setting("snapshots", "Where states are kept, a folder or an fsspec URL.")
    device: str = setting("auto", "`auto`, `cpu` or `cuda`.")
    group: str = setting("adatkg-worker", "Consumer group; workers of one group share the graphs.")
    replica: int = setting(1, "Which replica this is, from 1.")
    replicas: int = setting(
        1,
        "How many replicas there are; each takes in every fact and answers its share of the queries.",
    )
    batch_events: int = setting(512, "Events in a batch, at most.")
    batch_seconds: float = setting(0.005, "Seconds after its first event when a batch is closed though it is not full.")
    snapshot_events: int = setting(50_000, "Events after which a snapshot is due.")
    snapshot_seconds: float = setting(30.0, "Seconds with something new after which a snapshot is due.")
    keep_snapshots: int = setting(
        3,
        "Snapshots kept for each graph; at least 2. What these build upon is kept too, and the two newest whole ones.",
    )
    late: LatePolicy = setting(
        "apply",
        "Facts older than the watermark: `apply` counts them as of now, `refuse` sets them aside.",
    )
    max_jump: int = setting(MAX_JUMP, "Ticks by which the watermark may move at once.")
    max_k: int = setting(1_000, "Answers that one query gets, at most; a query that asks for more is set aside.")
    max_ranked: int = setting(
        100, "Names in a query's `rank_of`, at most: each that no fact has named yet is read by the text encoder."
    )
    heuristic: bool = setting(True, "Score what counting alone would have answered beside every answer.")
    horizon: Horizon = setting(
        "auto",
        "Ticks for which a query about `next` waits for the fact that settles it in the live score; `auto`: "
        "three of four times when something of a kind happened again, it took no longer. No prediction "
        "depends on it.",
    )
    web_host: str = setting("127.0.0.1", "Address of the web pages.")
    web_port: int = setting(6066, "Port of the web pages; 0 is none.")
    # A browser that was led here by any other name is refused.
    web_names: tuple[str, ...] = setting((), "Other names under which the pages may be asked for.")
    # From the file or from ADATKG_STREAM_WEB_TOKEN; there is no flag, because flags show in process lists.
    web_token: str = setting(
        "",
        "Whoever knows it may promote, roll back and retry from the page; nobody while it is empty.",
        repr=False,
    )
    session_seconds: float = setting(
        10.0,
        "Seconds without a sign of life after which a worker's graphs go to others; 6 to 60.",
    )

    def __post_init__(self) -> None:
        rules = {
            "replica must be from 1 to replicas": 1 <= self.replica <= self.replicas,
            "batch_events and snapshot_events must be at least 1": min(self.batch_events, self.snapshot_events) >= 1,
            "batch_seconds and snapshot_seconds must not be negative": (
                min(self.batch_seconds, self.snapshot_seconds) >= 0
            ),
            "keep_snapshots must be at least 2, the newest and the one before": self.keep_snapshots >= 2,
            "max_jump must be at least 1": self.max_jump >= 1,
            f"max_k must be from 1 to {MAX_K} and max_ranked from 1 to {MAX_RANKED}, which messages may ask for": (
                1 <= self.max_k <= MAX_K and 1 <= self.max_ranked <= MAX_RANKED
            ),
            "horizon must be auto or at least 1 tick": self.horizon == "auto" or self.horizon >= 1,
            "web_port must be from 0 to 65535": 0 <= self.web_port <= 65_535,
            "web_names must be names without port or slashes": all(
                re.fullmatch(r"[\w.-]+|\[[0-9a-fA-F:.]+\]", name) for name in self.web_names
            ),
            "web_token must be printable ASCII without blanks": re.fullmatch(r"[!-~]*", self.web_token) is not None,
            "session_seconds must be from 6 to 60, which brokers and Faust allow": 6 <= self.session_seconds <= 60,
        }
        for rule, holds in rules.items():
            if not holds:
                raise InputError(f"stream settings: {rule}")


def load_settings(
    path: Path | None, flags: Mapping[str, Any], environ: Mapping[str, str] = os.environ
) -> StreamSettings:
    """Settings from the [stream] sections, the environment and flags; a flag that is None was not given."""
    settings: StreamSettings = load_section(StreamSettings, "stream", path, flags, environ)
    return settings

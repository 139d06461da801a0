"""The worker's settings: the [stream] sections of TOML files, then ADATKG_STREAM_* variables, then flags."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from adatkg_core.constants import MAX_JUMP, LatePolicy
from adatkg_core.errors import InputError
from adatkg_core.settings import parse_value, read_section, settings_of

Horizon = int | Literal["auto"]  # ticks, or as the rhythm of the stream has it


@dataclass(frozen=True)
class StreamSettings:
    """How a worker reads, answers, and keeps what it knows."""

    models: str = "models"
    snapshots: str = "snapshots"
    device: str = "auto"
    group: str = "adatkg-worker"
    # Replica i of n takes in every fact and answers its share of the queries; 1 of 1 answers all.
    replica: int = 1
    replicas: int = 1
    # A batch is closed when it is full, or so many seconds after its first event.
    batch_events: int = 512
    batch_seconds: float = 0.02
    # A snapshot is due after so many events, or so many seconds with something new.
    snapshot_events: int = 50_000
    snapshot_seconds: float = 30.0
    keep_snapshots: int = 3
    late: LatePolicy = "apply"
    max_jump: int = MAX_JUMP
    # Mark what the recurrency heuristic would have said beside every answer, where the model keeps its counts.
    heuristic: bool = True
    # For how many ticks a query about the next time may wait for the fact that marks it.
    horizon: Horizon = "auto"
    web_host: str = "127.0.0.1"
    web_port: int = 6066
    # By which other names the web pages may be asked for; a browser that was led here by any other is refused.
    web_names: tuple[str, ...] = ()
    # Whoever knows it may promote, roll back and retry from the web page; nobody may while it is empty. It comes from
    # the file or from ADATKG_STREAM_WEB_TOKEN; there is no flag, because flags show in process lists.
    web_token: str = field(default="", repr=False)
    # A worker that is gone for this long loses its graphs to the others.
    session_seconds: float = 10.0

    def __post_init__(self) -> None:
        rules = {
            "replica must be from 1 to replicas": 1 <= self.replica <= self.replicas,
            "batch_events and snapshot_events must be at least 1": min(self.batch_events, self.snapshot_events) >= 1,
            "batch_seconds and snapshot_seconds must not be negative": (
                min(self.batch_seconds, self.snapshot_seconds) >= 0
            ),
            "keep_snapshots must be at least 2, the newest and the one before": self.keep_snapshots >= 2,
            "max_jump must be at least 1": self.max_jump >= 1,
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
    values = settings_of(StreamSettings, "stream", path, environ)
    for one in fields(StreamSettings):
        variable = f"ADATKG_STREAM_{one.name}".upper()
        if variable in environ:
            values[one.name] = _from_text(one.type, environ[variable])
    values |= {name: value for name, value in flags.items() if value is not None}
    settings: StreamSettings = read_section(StreamSettings, values, "stream settings:")
    return settings


def _from_text(hint: Any, text: str) -> Any:
    """A variable's text as its setting's type wants it; names in a row may simply have commas between them."""
    if hint == "str":
        return text
    value = parse_value(text)
    if str(hint).startswith("tuple") and isinstance(value, str):
        return [name.strip() for name in value.split(",") if name.strip()]
    return value

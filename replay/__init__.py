"""Publishes a data set to Kafka in chronological order.

The public names are imported when first used, so that what only wants the sequence needs no Kafka client.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from replay.publisher import Published, publish
    from replay.resume import resume_position
    from replay.sequence import Choice, ReplaySequence

_HOME = {
    "publisher": ("Published", "publish"),
    "resume": ("resume_position",),
    "sequence": ("Choice", "ReplaySequence"),
}

__all__ = ["Choice", "Published", "ReplaySequence", "publish", "resume_position"]


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(importlib.import_module(f"replay.{module}"), name)
    raise AttributeError(f"module 'replay' has no attribute {name!r}")

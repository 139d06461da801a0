"""Publishes a data set to Kafka in chronological order.

The public names are imported when first used, so that what only wants the sequence needs no Kafka client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adatkg_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from replay.publisher import Published, publish
    from replay.resume import resume_position
    from replay.sequence import Choice, ReplaySequence

_HOME = {
    "replay.publisher": ("Published", "publish"),
    "replay.resume": ("resume_position",),
    "replay.sequence": ("Choice", "ReplaySequence"),
}

__all__ = ["Choice", "Published", "ReplaySequence", "publish", "resume_position"]

__getattr__ = lazy_names(__name__, _HOME)

"""Zones of the calendar: by their names in the time zone database, or as a fixed offset from UTC."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from adatkg_core.errors import InputError

_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)")


@lru_cache(maxsize=64)
def zone_of(name: str | None) -> tzinfo:
    """The zone of this name, such as America/New_York or +02:00; UTC for None. Raises ValueError."""
    if name is None:
        return UTC
    if offset := _OFFSET.fullmatch(name):
        ahead = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(ahead if offset[1] == "+" else -ahead)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{name!r} is no zone such as America/New_York or +02:00") from error


@dataclass(frozen=True)
class ZoneChoice:
    """The zone in which the times of a table are shown, None for UTC, and what decided it."""

    name: str | None
    source: str

    @property
    def shown(self) -> str:
        """Its name."""
        return self.name or "UTC"


def parse_zone(text: str | None) -> str | None:
    """A zone as `--zone` says it; None, which is also UTC, where it says nothing else."""
    if text is None or text.upper() in ("", "UTC", "Z", "+00:00"):
        return None
    try:
        zone_of(text)
    except ValueError as error:
        raise InputError(f"--zone {text}: {error}; give a name of the time zone database or an offset") from error
    return text


def choose_zone(wanted: str | None, offsets: Collection[str | None]) -> ZoneChoice:
    """The zone that was wanted, else the one offset that the times have, else UTC."""
    if wanted is not None:
        return ZoneChoice(wanted, "--zone")
    if not offsets:
        return ZoneChoice(None, "no offset in the times")
    if len(offsets) == 1:
        return ZoneChoice(next(iter(offsets)), "the offset of all times")
    return ZoneChoice(None, f"several offsets: {', '.join(sorted(name or '+00:00' for name in offsets))}")


def offset_name(when: datetime) -> str | None:
    """The offset of a time as the name of a zone; None for UTC, and for offsets that are not in whole minutes."""
    ahead = when.utcoffset() or timedelta()
    minutes, rest = divmod(abs(ahead), timedelta(minutes=1))
    if not minutes or rest:
        return None
    return f"{'-' if ahead < timedelta() else '+'}{minutes // 60:02d}:{minutes % 60:02d}"

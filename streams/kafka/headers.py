"""What stands in the headers of a message."""

from __future__ import annotations

from collections.abc import Iterable

from adatkg_core.events import Source

ORIGIN = "origin"  # of an event that was moved to its graph's partition: where it stood, as partition-offset


def header(headers: Iterable[tuple[str, bytes | None]], name: str) -> str:
    """The first header of this name as text; empty when there is none."""
    return next(((value or b"").decode(errors="replace") for key, value in headers if key == name), "")


def origin_of(headers: Iterable[tuple[str, bytes | None]]) -> Source | None:
    """Where an event stood before it was moved to its graph's partition; None where it was not."""
    partition, _, offset = header(headers, ORIGIN).partition("-")
    if not (partition.isascii() and partition.isdecimal() and offset.isascii() and offset.isdecimal()):
        return None
    return Source(int(partition), int(offset))


def with_origin(headers: Iterable[tuple[str, bytes]], origin: Source) -> list[tuple[str, bytes]]:
    """The headers of an event that is moved from `origin`, beside those that it has."""
    return [(ORIGIN, origin.id.encode()), *((name, value) for name, value in headers if name != ORIGIN)]

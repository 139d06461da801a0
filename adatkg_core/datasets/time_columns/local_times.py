"""Columns of times: what clocks of a zone show and the moments at which they do, and times far from all others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

import numpy as np
from numpy.typing import NDArray

from adatkg_core.clock import DAY

Integers = NDArray[np.int64]

_MICRO = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEAR = 365 * DAY
_FARTHER = 10  # times the largest gap between the others: a sparse history has wide gaps everywhere


@dataclass(frozen=True, eq=False)
class Moments:
    """Wall clock times as microseconds since 1970 in UTC, and which of them clocks show twice or never."""

    micros: Integers  # [n]
    twice: NDArray[np.bool_]  # [n] taken as the first of the two
    never: NDArray[np.bool_]  # [n] taken as if clocks had not gone forward


def moments(walls: Integers, zone: tzinfo) -> Moments:
    """The moments of wall clock times, given as microseconds since 1970 as if in UTC."""
    distinct, where = np.unique(walls, return_inverse=True)
    found = np.array([_offsets(wall, zone) for wall in distinct.tolist()], np.int64).reshape(-1, 2)
    first, second = found[:, 0], found[:, 1]
    return Moments((distinct - first)[where], (first > second)[where], (first < second)[where])


def wall_seconds(seconds: Integers, zone: tzinfo) -> Integers:
    """What clocks of the zone show at these seconds since 1970, counted as if in UTC."""
    distinct, where = np.unique(seconds, return_inverse=True)
    ahead = [_ahead((_EPOCH + timedelta(seconds=one)).astimezone(zone)) for one in distinct.tolist()]
    return (distinct + np.array(ahead, np.int64) // _MICRO)[where]


def lone_times(seconds: Integers) -> Integers:
    """Which rows are each years away from all others, which lie close together; most likely by a slip of the pen."""
    times, where, counts = np.unique(seconds, return_inverse=True, return_counts=True)
    gaps = np.diff(times)
    if not len(gaps):
        return np.empty(0, np.int64)
    far = np.iinfo(np.int64).max
    nearest = np.minimum(np.append(gaps, far), np.insert(gaps, 0, far))
    lone = (counts == 1) & (nearest > _YEAR)
    others = times[~lone]
    widest = int(np.diff(others).max()) if len(others) > 1 else 0
    if counts[~lone].sum() < 2:
        return np.empty(0, np.int64)
    return np.flatnonzero((lone & (nearest > _FARTHER * widest))[where])


def _offsets(wall: int, zone: tzinfo) -> tuple[int, int]:
    """How far ahead of UTC the zone is at a wall clock time, before and after a change of its clocks."""
    when = (_EPOCH + timedelta(microseconds=wall)).replace(tzinfo=zone)
    return _ahead(when), _ahead(when.replace(fold=1))


def _ahead(when: datetime) -> int:
    return (when.utcoffset() or timedelta()) // timedelta(microseconds=1)

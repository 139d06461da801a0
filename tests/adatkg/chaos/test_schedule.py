"""The schedule of faults is a pure function of its seed."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from adatkg.chaos import KINDS
from adatkg.chaos.schedule import LEAST_GAP, schedule

SPANS = {name: (kind.least, kind.most) for name, kind in KINDS.items()}


def test_the_same_seed_gives_the_same_faults_and_another_seed_others() -> None:
    assert schedule(7, 600, SPANS, 15) == schedule(7, 600, dict(reversed(SPANS.items())), 15)
    assert schedule(7, 600, SPANS, 15) != schedule(8, 600, SPANS, 15)


def test_an_hour_has_more_than_150_faults_of_every_kind_about_equally_often() -> None:
    faults = schedule(1, 3600, SPANS, 15)
    assert len(faults) > 150
    counts = Counter(fault.kind for fault in faults)
    assert counts.keys() == SPANS.keys() and max(counts.values()) - min(counts.values()) <= 1


def test_faults_come_in_order_within_the_time_and_last_as_long_as_their_kind() -> None:
    faults = schedule(3, 900, SPANS, 8)
    assert all(later.at - earlier.at >= LEAST_GAP for earlier, later in pairwise(faults))
    assert faults[0].at > 0 and faults[-1].at < 900
    assert all(SPANS[fault.kind][0] <= fault.seconds <= SPANS[fault.kind][1] for fault in faults)


def test_without_some_kinds_the_others_still_come() -> None:
    assert {fault.kind for fault in schedule(3, 900, {"promoted": (0, 0)}, 8)} == {"promoted"}

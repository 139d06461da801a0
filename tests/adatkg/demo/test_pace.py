from __future__ import annotations

from adatkg.demo.pace import CAUGHT_UP, MOST, Pace


def test_the_stream_is_held_from_when_too_much_waits_until_it_is_caught_up_with() -> None:
    pace = Pace()
    held = []
    for lag in (None, 0, MOST, MOST + 1, None, MOST, CAUGHT_UP + 1, CAUGHT_UP, MOST, MOST + 1):
        pace.heed(lag)
        held.append(pace.holds())
    assert held == [False, False, False, True, True, True, True, False, False, True]

"""ISO times and ticks stand for each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adatkg_core.clock import Clock, clock_from_dict, tick_of
from adatkg_core.errors import InputError

QUARTERS = Clock("2018-01-01", 900)


@given(st.integers(-100_000, 100_000), st.sampled_from([Clock(), QUARTERS, Clock("2014-01-01T06:00:00+02:00", 3600)]))
def test_the_beginning_of_a_tick_lies_in_it(tick: int, clock: Clock) -> None:
    assert clock.tick(clock.iso(tick)) == tick


@pytest.mark.parametrize(
    ("text", "tick"),
    [
        ("2018-01-01", 0),
        ("2018-01-01T00:14:59.999", 0),
        ("2018-01-01T00:15:00Z", 1),
        ("2018-01-01T02:15:00+02:00", 1),
        ("2017-12-31T23:59:59", -1),
    ],
)
def test_a_time_is_floored_to_its_tick_and_without_a_zone_it_is_utc(text: str, tick: int) -> None:
    assert QUARTERS.tick(text) == tick


def test_what_a_user_writes_is_a_tick_or_an_iso_time() -> None:
    assert tick_of("61", None, "--from") == 61
    assert tick_of("2018-01-02", QUARTERS, "--from") == 96
    with pytest.raises(InputError, match="--from yesterday"):
        tick_of("yesterday", QUARTERS, "--from")
    with pytest.raises(InputError, match="calendar"):
        tick_of("2018-01-02", None, "--from")


@pytest.mark.parametrize("values", [{}, {"origin": "x", "seconds": 1}, {"origin": "2018-01-01", "seconds": 0}, 7])
def test_what_is_no_clock_is_refused_by_name(values: object) -> None:
    with pytest.raises(InputError, match="bundle b: clock"):
        clock_from_dict(values, "bundle b: clock")
    assert clock_from_dict(Clock().as_dict(), "here") == Clock()

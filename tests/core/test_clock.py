"""ISO times and ticks stand for each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adatkg_core.clock import Clock, _parse_iso, clock_from_dict, readable, span_of, tick_of
from adatkg_core.errors import InputError

QUARTERS = Clock("2018-01-01", 900)
NEW_YORK = "America/New_York"


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


@given(
    st.integers(-100_000, 100_000),
    st.sampled_from(
        [
            Clock("2013-01-01", 86_400, NEW_YORK),
            Clock("2013-01-07", 7 * 86_400, NEW_YORK),
            Clock("2013-01-01T05:00:00-05:00", 3600, NEW_YORK),
            Clock("2013-01-01T00:00:00+05:30", 900, "+05:30"),
        ]
    ),
)
def test_the_beginning_of_a_tick_lies_in_it_in_any_zone(tick: int, clock: Clock) -> None:
    assert clock.tick(clock.iso(tick)) == tick
    assert clock_from_dict(clock.as_dict(), "here") == clock


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2013-03-10T04:59:59Z", "2013-03-09"),
        ("2013-03-10T05:00:00Z", "2013-03-10"),
        ("2013-03-11T03:59:59Z", "2013-03-10"),  # 23 hours later clocks have gone forward
        ("2013-03-11T04:00:00Z", "2013-03-11"),
        ("2013-11-03T04:00:00Z", "2013-11-03"),
        ("2013-11-04T04:59:59Z", "2013-11-03"),  # a day of 25 hours
        ("2013-11-04T05:00:00Z", "2013-11-04"),
        ("2013-03-10", "2013-03-10"),
        ("2013-03-10T23:30:00", "2013-03-10"),
    ],
)
def test_ticks_of_days_are_the_dates_of_the_zone_also_where_clocks_change(text: str, day: str) -> None:
    clock = Clock("2013-01-01", 86_400, NEW_YORK)
    assert clock.iso(clock.tick(text)) == day


def test_hours_keep_their_length_and_show_the_offset_of_their_day() -> None:
    clock = Clock("2013-03-10T00:00:00-05:00", 3600, NEW_YORK)
    assert [clock.iso(tick)[11:] for tick in range(4)] == [
        "00:00:00-05:00",
        "01:00:00-05:00",
        "03:00:00-04:00",
        "04:00:00-04:00",
    ]


def test_a_local_time_that_comes_twice_is_the_first_and_one_that_is_skipped_counts_on() -> None:
    clock = Clock("2013-03-10T00:00:00-05:00", 3600, NEW_YORK)
    assert clock.tick("2013-11-03T01:30:00") == clock.tick("2013-11-03T01:30:00-04:00")
    assert clock.tick("2013-03-10T02:30:00") == clock.tick("2013-03-10T03:30:00-04:00")


def test_a_clock_without_a_zone_is_written_as_ever() -> None:
    assert Clock("2018-01-01", 900).as_dict() == {"origin": "2018-01-01", "seconds": 900}
    assert clock_from_dict({"origin": "2018-01-01", "seconds": 900}, "here") == QUARTERS


@pytest.mark.parametrize(
    ("seconds", "ticks", "words"),
    [
        (86_400, 14, "14 days"),
        (86_400, 1, "1 day"),
        (3_600, 6, "6 hours"),
        (3_600, 48, "2 days"),
        (900, 6, "90 minutes"),
        (900, 4, "1 hour"),
        (7, 3, "21 seconds"),
        (7 * 86_400, 3, "3 weeks"),
        (None, 5, "5 ticks"),
    ],
)
def test_a_span_of_ticks_is_told_in_the_largest_unit_that_fits(seconds: int | None, ticks: int, words: str) -> None:
    assert span_of(None if seconds is None else Clock(seconds=seconds), ticks) == words


BAD = [
    {},
    {"origin": "x", "seconds": 1},
    {"origin": "2018-01-01", "seconds": 0},
    {"origin": "2018-01-01", "seconds": 1, "zone": "Middle/Earth"},
    7,
]


@pytest.mark.parametrize("values", BAD)
def test_what_is_no_clock_is_refused_by_name(values: object) -> None:
    with pytest.raises(InputError, match="bundle b: clock"):
        clock_from_dict(values, "bundle b: clock")
    assert clock_from_dict(Clock().as_dict(), "here") == Clock()


def test_people_read_a_tick_only_where_the_calendar_has_no_place_for_it() -> None:
    assert readable(QUARTERS, 3) == "2018-01-01T00:45:00+00:00"
    assert readable(None, 3) == "3"
    assert readable(Clock(), 2**31 - 1) == str(2**31 - 1)


def test_a_text_too_long_for_a_time_is_neither_parsed_nor_remembered() -> None:
    before = _parse_iso.cache_info()
    with pytest.raises(ValueError, match="900000 characters"):
        Clock().tick("2014-03-02" + "0" * 899_990)
    after = _parse_iso.cache_info()
    assert (after.misses, after.currsize) == (before.misses, before.currsize)
    assert Clock().tick("2014-03-02T12:00:00.000000+00:00:00.000001") == Clock().tick("2014-03-02")

"""Zones of imported times, clocks that change, and times far from all others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from adatkg_core.clock import Clock
from adatkg_core.datasets import Dataset, load_dataset
from adatkg_core.datasets.csv_import import import_csv
from adatkg_core.datasets.csv_import.importer import Imported
from adatkg_core.errors import InputError

Import = Callable[..., tuple[Imported, Dataset]]
NEW_YORK = "America/New_York"


@pytest.fixture
def make(tmp_path: Path) -> Import:
    """Imports one fact at each of these times and loads the folder that came of it."""

    def run(*times: str, **options: object) -> tuple[Imported, Dataset]:
        file = tmp_path / "events.csv"
        file.write_text("subject,relation,object,time\n" + "".join(f"a,r,b,{time}\n" for time in times))
        imported = import_csv(file, tmp_path / "graph", **options)  # type: ignore[arg-type]
        return imported, load_dataset(str(tmp_path / "graph"))

    return run


def shown(data: Dataset) -> list[str]:
    assert data.clock is not None
    return [data.clock.iso(tick) for tick in data.facts[:, 3].tolist()]


def odd(imported: Imported) -> dict[str, tuple[int, list[tuple[int, str]]]]:
    return {one.kind: (one.count, one.examples) for one in imported.odd if "zone" in one.kind or "time" in one.kind}


def test_the_one_offset_of_all_times_is_kept_as_the_zone(make: Import) -> None:
    imported, data = make("2025-04-23T08:00:00+02:00", "2025-04-23T09:00:00+02:00")
    assert data.clock == Clock("2025-04-23T08:00:00+02:00", 3600, "+02:00")
    assert shown(data) == ["2025-04-23T08:00:00+02:00", "2025-04-23T09:00:00+02:00"]
    report = imported.as_dict("graph")
    assert (report["zone"], report["zone_from"]) == ("+02:00", "the offset of all times")


def test_days_are_those_of_the_kept_offset(make: Import) -> None:
    _, data = make(
        "2025-04-23T00:30:00+02:00", "2025-04-23T23:30:00+02:00", "2025-04-24T00:30:00+02:00", granularity="day"
    )
    assert shown(data) == ["2025-04-23", "2025-04-23", "2025-04-24"]
    assert data.clock == Clock("2025-04-23", 86_400, "+02:00")


def test_hours_begin_where_the_zones_clocks_show_a_full_hour(make: Import) -> None:
    _, data = make("2025-04-23T08:00:00+05:30", "2025-04-23T08:59:00+05:30", granularity="hour")
    assert shown(data) == ["2025-04-23T08:00:00+05:30"] * 2


def test_several_offsets_are_shown_in_utc_and_the_report_names_them(make: Import) -> None:
    imported, data = make("2013-03-09T08:00:00-05:00", "2013-03-11T08:00:00-04:00", granularity="hour")
    assert shown(data) == ["2013-03-09T13:00:00+00:00", "2013-03-11T12:00:00+00:00"]
    report = imported.as_dict("graph")
    assert (report["zone"], report["zone_from"]) == ("UTC", "several offsets: -04:00, -05:00")


def test_a_zone_that_is_given_is_the_one_in_which_several_offsets_are_shown(make: Import) -> None:
    times = ("2013-03-09T08:00:00-05:00", "2013-03-11T08:00:00-04:00")
    imported, data = make(*times, granularity="hour", zone=NEW_YORK)
    assert shown(data) == list(times)
    assert imported.as_dict("graph")["zone_from"] == "--zone"


@pytest.mark.parametrize("granularity", ["auto", "day"])
def test_local_midnights_around_a_change_of_clocks_are_days_in_a_row(make: Import, granularity: str) -> None:
    days = ["2013-03-09", "2013-03-10", "2013-03-11", "2013-11-03", "2013-11-04"]
    _, data = make(*(f"{day} 00:00:00" for day in days), zone=NEW_YORK, granularity=granularity)
    assert shown(data) == days
    assert data.facts[:, 3].tolist() == [0, 1, 2, 239, 240]


@pytest.mark.parametrize(
    "times", [["2013-03-09", "2013-03-11"], ["2013/03/09", "2013/03/11"], ["20130309", "20130311"]]
)
def test_dates_are_dates_of_the_zone(make: Import, times: list[str]) -> None:
    _, data = make(*times, zone=NEW_YORK)
    assert shown(data) == ["2013-03-09", "2013-03-11"]


def test_weeks_begin_on_the_zones_monday(make: Import) -> None:
    _, data = make("2013-03-11T03:30:00Z", "2013-03-11T04:30:00Z", zone=NEW_YORK, granularity="week")
    assert shown(data) == ["2013-03-04", "2013-03-11"]


def test_times_without_an_offset_are_local_and_those_clocks_show_twice_or_never_are_told_of(make: Import) -> None:
    times = ("2013-03-10 01:00", "2013-03-10 02:30", "2013-11-03 01:30", "2013-11-03T01:30-05:00", "2013-11-03 03:00")
    imported, data = make(*times, zone=NEW_YORK, granularity="hour")
    assert shown(data) == [
        "2013-03-10T01:00:00-05:00",
        "2013-03-10T03:00:00-04:00",
        "2013-11-03T01:00:00-04:00",
        "2013-11-03T01:00:00-05:00",
        "2013-11-03T03:00:00-05:00",
    ]
    found = odd(imported)
    assert found[f"times that {NEW_YORK} skips, taken as if it did not"] == (1, [(3, "2013-03-10T02:30:00")])
    assert found[f"times that {NEW_YORK} has twice, taken as the first"] == (1, [(4, "2013-11-03T01:30:00")])
    assert found[f"times without a zone among others, taken as {NEW_YORK}"][0] == 4


def test_an_unknown_zone_is_refused(make: Import) -> None:
    with pytest.raises(InputError, match="--zone Middle/Earth: 'Middle/Earth' is no zone such as America/New_York"):
        make("2013-03-10", zone="Middle/Earth")


def test_a_time_years_away_from_all_others_is_told_by_its_line_and_kept(make: Import) -> None:
    imported, data = make("2014-03-01", "2014-03-02", "2041-03-03", "2014-03-04", "1970-01-01")
    assert odd(imported) == {
        "time years away from all others": (2, [(4, "2041-03-03T00:00:00"), (6, "1970-01-01T00:00:00")])
    }
    assert len(data.facts) == 5


@pytest.mark.parametrize(
    "times",
    [
        [f"{year}-01-01" for year in range(1900, 2020, 7)],
        ["2014-03-01", "2014-03-02", "2041-03-03", "2041-03-03"],
        ["2014-03-01", "2014-11-02"],
        ["2014-03-01", "2041-03-03"],
        ["3", "5", "90000000"],
    ],
    ids=["a sparse history", "two at the far time", "months away", "nothing to be away from", "ticks"],
)
def test_other_times_are_not_called_far(make: Import, times: list[str]) -> None:
    imported, _ = make(*times)
    assert not [one for one in imported.odd if "years away" in one.kind]

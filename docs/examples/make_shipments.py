"""Writes shipments.csv, the events of a made-up logistics network: `python docs/examples/make_shipments.py`.

The same script gives the same file on every machine. Names tell what somebody is, most of them keep habits, some habits
change, and newcomers keep arriving; three rows are broken on purpose.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from random import Random

FIRST, DAYS = date(2025, 1, 6), 120
CITIES = ("Antwerp", "Bremen", "Gdansk", "Graz", "Lyon", "Malmo", "Milan", "Porto", "Rouen", "Zagreb")
PORTS = ("Antwerp", "Bremerhaven", "Gdansk", "Genoa", "Leixoes", "Rotterdam")
HAULIERS: tuple[str, ...] = (
    "Adler",
    "Bruno",
    "Corvo",
    "Dalgaard",
    "Ekstrom",
    "Fontana",
    "Grgic",
    "Horvat",
    "Iversen",
    "Jansen",
)
HAULIERS += ("Kowalski", "Lindqvist", "Moreau", "Novak", "Oliveira", "Pettersson")
FAMILIES: tuple[str, ...] = (
    "Almeida",
    "Bauer",
    "Conti",
    "Dubois",
    "Eriksen",
    "Ferrari",
    "Gruber",
    "Hansen",
    "Ilic",
    "Jonker",
    "Keller",
)
FAMILIES += ("Lefevre", "Maric", "Nowak", "Olsen", "Pereira", "Ricci", "Santos", "Tomic", "Urban", "Vidal", "Weber")
TRADES = ("Bakery", "Bikes", "Books", "Furniture", "Garden", "Hardware", "Pharmacy", "Textiles", "Toys", "Wines")
BROKEN = {700: ("Depot Lyon", "ships to", ""), 1500: ("", "orders from", "Depot Graz")}

Event = tuple[str, str, str]


def pick(random: Random, choices: Sequence[str]) -> str:
    """One of them, by the one call whose results Python promises to keep."""
    return choices[int(random.random() * len(choices))]


class Customer:
    """Orders from a depot on its own days of the week; a carrier that is its favourite brings it."""

    def __init__(self, name: str, random: Random, depot: str, carriers: Sequence[str]) -> None:
        self.name, self.depot, self.carrier = name, depot, pick(random, carriers)
        self.weekdays = {int(random.random() * 6) for _ in range(2)}
        self.patient = random.random() < 0.8
        self._random = random

    def day(self, weekday: int, depots: Sequence[str], carriers: dict[str, list[str]]) -> list[Event]:
        """What it does and what others do for it on a day."""
        random = self._random
        if weekday not in self.weekdays or random.random() < 0.25:
            return []
        if random.random() < 0.01:
            self.depot = pick(random, depots)
            self.carrier = pick(random, carriers[self.depot])
        depot = self.depot if random.random() < 0.9 else pick(random, depots)
        carrier = self.carrier if depot == self.depot and random.random() < 0.8 else pick(random, carriers[depot])
        events = [(self.name, "orders from", depot), (carrier, "picks up from", depot)]
        if random.random() < 0.12:
            events.append((carrier, "reports delay to", depot))
            if not self.patient:
                events.append((self.name, "complains to", depot))
        else:
            events.append((carrier, "delivers to", self.name))
        return events


def shipments(random: Random) -> list[tuple[date, Event]]:
    """The events of all days, in order."""
    depots = [f"Depot {city}" for city in CITIES]
    ports = {depot: f"Port of {pick(random, PORTS)}" for depot in depots}
    carriers = {depot: [f"{haulier} Road Freight" for haulier in HAULIERS[i : i + 3]] for i, depot in enumerate(depots)}
    unused = [f"{family} {trade}" for family in FAMILIES for trade in TRADES]
    customers: list[Customer] = []
    events: list[tuple[date, Event]] = []
    for day in range(DAYS):
        when = FIRST + timedelta(days=day)
        for _ in range(36 if day == 0 else int(random.random() * 1.6)):
            city = pick(random, CITIES)
            depot = f"Depot {city if random.random() < 0.95 else pick(random, CITIES)}"
            name = f"{unused.pop(int(random.random() * len(unused)))} ({city})"
            customers.append(Customer(name, random, depot, carriers[depot]))
        if day % 20 == 10:
            city = pick(random, CITIES)
            carriers[f"Depot {city}"].append(f"{HAULIERS[-1 - day // 20]} Express Freight ({city})")
        today: list[Event] = []
        for customer in customers:
            today += customer.day(when.weekday(), depots, carriers)
        for i, depot in enumerate(depots):
            if (day + i) % 3 == 0 and when.weekday() < 5:
                today += [(ports[depot], "ships to", depot), (carriers[depot][0], "loads at", ports[depot])]
        events += [(when, event) for event in today]
    return events


def write(path: Path) -> int:
    """Write the file; returns how many rows it has."""
    rows = [(f"{when.isoformat()}", *event) for when, event in shipments(Random(7))]
    for place, event in BROKEN.items():
        rows.insert(place, (rows[place][0], *event))
    rows.insert(2200, ("last Tuesday", "Depot Porto", "ships to", "Depot Milan"))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("day", "sender", "action", "receiver"))
        writer.writerows(rows)
    return len(rows)


if __name__ == "__main__":
    target = Path(__file__).with_name("shipments.csv")
    print(f"{target}: {write(target)} rows")

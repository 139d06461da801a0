"""Generated graphs of any size: habits that recur, types that show in the names, entities that emerge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adatkg_core.datasets.dataset import Dataset
from adatkg_core.datasets.renumber import first_of_each
from adatkg_core.errors import InputError

_TYPES = ("Minister", "Army", "Bank", "Newspaper", "Union", "Court", "Police", "Farmer", "Student", "Rebel")
_PLACES = ("Arden", "Borealia", "Cintra", "Dorne", "Elbonia", "Freedonia", "Genovia", "Hyrkania")
_VERBS = ("Consult", "Praise", "Accuse", "Visit", "Threaten", "Pay", "Arrest", "Demand from", "Host", "Sue")
_NOISE = 0.1  # the share of facts that follow no habit
_DRAWS = 4  # for each fact asked for, because many coincide


def synthesize(
    entities: int, relations: int, times: int, facts_per_time: int, seed: int, emerging: float = 0.3
) -> Dataset:
    """A graph whose facts mostly follow habits (s, r, o) that recur with a period of their relation.

    An entity's type and place are in its name and decide whom it deals with, and how; a share `emerging` of
    the entities first acts at some later time. The same arguments give the same graph.
    """
    _check(entities, relations, times, facts_per_time, emerging)
    rng = np.random.default_rng(seed)
    kind = rng.integers(len(_TYPES), size=entities)
    place = rng.integers(len(_PLACES), size=entities)
    born = np.zeros(entities, np.int64)
    late = rng.permutation(entities)[: int(entities * emerging)]
    born[late] = rng.integers(1, max(times, 2), size=len(late))
    # The order of birth lets "any entity alive at t" be a draw below a count; at least two are always alive.
    order = np.argsort(born, kind="stable")
    born[order[:2]] = 0
    alive = np.searchsorted(born[order], np.arange(times), side="right")  # [times]

    habits = _habits(rng, kind, place, relations, max(4 * facts_per_time, entities))
    period = rng.integers(1, 8, size=relations)
    tick = np.repeat(np.arange(times), _DRAWS * facts_per_time)
    chosen = _recurring(rng, habits, np.maximum(born[habits[:, 0]], born[habits[:, 2]]), period, tick)
    rows = np.column_stack([habits[chosen], tick])
    # Of a tick's draws the first few are noise, then come habits, then noise to fill up should these run out.
    place_in_tick = np.arange(len(rows)) % (_DRAWS * facts_per_time)
    noise = place_in_tick + rng.random(len(rows)) < _NOISE * facts_per_time
    noise |= place_in_tick >= (_DRAWS - 1) * facts_per_time
    n = int(noise.sum())
    rows[noise, 0] = order[(rng.random(n) * alive[tick[noise]]).astype(np.int64)]
    rows[noise, 1] = rng.integers(relations, size=n)
    rows[noise, 2] = order[(rng.random(n) * alive[tick[noise]]).astype(np.int64)]
    # Rows repeat by chance and a fact is true once at a time: of a tick's distinct rows the first drawn stay.
    rows = rows[noise | (chosen >= 0)]
    rows = rows[first_of_each(rows)]
    rows = rows[np.arange(len(rows)) - np.searchsorted(rows[:, 3], rows[:, 3]) < facts_per_time]
    return Dataset(f"synth-{seed}", _entity_names(kind, place), _relation_names(relations), rows, 1, "tick")


def _check(entities: int, relations: int, times: int, facts_per_time: int, emerging: float) -> None:
    for name, value, least in (
        ("entities", entities, 2),
        ("relations", relations, 1),
        ("times", times, 1),
        ("facts_per_time", facts_per_time, 1),
    ):
        if value < least:
            raise InputError(f"{name} is {value}: a graph needs at least {least}")
    if not 0 <= emerging <= 1:
        raise InputError(f"emerging is {emerging}: give a share between 0 and 1")


def _habits(
    rng: np.random.Generator, kind: NDArray[np.int64], place: NDArray[np.int64], relations: int, count: int
) -> NDArray[np.int64]:  # [count, 3]
    """Who does what to whom: the types decide the relation, and most partners are from the same place."""
    subject = rng.integers(len(kind), size=count)
    # Each type deals with a few types by one of a few relations.
    partner_kind = rng.integers(len(_TYPES), size=(len(_TYPES), 3))
    verb = rng.integers(relations, size=(len(_TYPES), 3))
    manner = rng.integers(3, size=count)
    wanted = partner_kind[kind[subject], manner]
    abroad = rng.random(count) < 0.2
    home = np.where(abroad, rng.integers(len(_PLACES), size=count), place[subject])
    # Entities sorted by (type, place) make the candidates of a habit one slice; an empty slice takes anyone.
    group = kind * len(_PLACES) + place
    by_group = np.argsort(group, kind="stable")
    edges = np.searchsorted(group[by_group], np.arange(len(_TYPES) * len(_PLACES) + 1))
    cell = wanted * len(_PLACES) + home
    first, size = edges[cell], edges[cell + 1] - edges[cell]
    index = np.where(size > 0, first + (rng.random(count) * size).astype(np.int64), rng.integers(len(kind), size=count))
    return np.column_stack([subject, verb[kind[subject], manner], by_group[index]])


def _recurring(
    rng: np.random.Generator,
    habits: NDArray[np.int64],
    since: NDArray[np.int64],
    period: NDArray[np.int64],
    tick: NDArray[np.int64],
) -> NDArray[np.int64]:  # [facts]
    """For each fact a habit that is due at its tick and whose two entities exist; -1 if none was found."""
    phase = rng.integers(1 << 30, size=len(habits)) % period[habits[:, 1]]
    # Heavy tail: few habits make most of the news, as in real event data.
    weight = np.cumsum(1.0 / np.arange(1, len(habits) + 1) ** 0.8)
    chosen = np.full(len(tick), -1)
    for _ in range(12):  # draws again for those that are not due; few are left after that
        open_ = np.flatnonzero(chosen < 0)
        draw = np.searchsorted(weight, rng.random(len(open_)) * weight[-1])
        due = (tick[open_] % period[habits[draw, 1]] == phase[draw]) & (since[draw] <= tick[open_])
        chosen[open_[due]] = draw[due]
    return chosen


def _entity_names(kind: NDArray[np.int64], place: NDArray[np.int64]) -> tuple[str, ...]:
    return tuple(f"{_TYPES[k]} {i} ({_PLACES[p]})" for i, (k, p) in enumerate(zip(kind, place, strict=True)))


def _relation_names(relations: int) -> tuple[str, ...]:
    return tuple(
        _VERBS[i] if i < len(_VERBS) else f"{_VERBS[i % len(_VERBS)]} {i // len(_VERBS) + 1}" for i in range(relations)
    )

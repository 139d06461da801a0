"""The small graph as these tests measure it, and plain Python around it."""

from __future__ import annotations

import functools
from dataclasses import replace

import torch

from adatkg_core.datasets import Dataset, by_first_appearance
from adatkg_core.engine import Engine
from adatkg_core.evaluation import Asked
from adatkg_core.events import Fact, Query
from tests.support.small_graph import ENCODER, shared_model, small_graph

Row = tuple[int, int, int, int]  # subject, relation (r + R asks backwards), answer, time


@functools.cache
def graph() -> Dataset:
    return by_first_appearance(small_graph())


def rows(dataset: Dataset) -> list[Row]:
    return [tuple(row) for row in dataset.facts.tolist()]


def fresh(name: str = "default") -> Engine:
    """An engine that knows all names from the start."""
    return Engine(shared_model(name), graph().relations, ENCODER, entities=graph().entities)


def empty(name: str = "default") -> Engine:
    """An engine that has heard of nobody."""
    return Engine(shared_model(name), graph().relations, ENCODER)


def both(facts: list[Row]) -> list[Row]:
    """The queries of one time in the order in which they are measured."""
    n = graph().n_relations
    return [*facts, *((o, r + n, s, t) for s, r, o, t in facts)]


def queries(split: str = "test") -> list[Row]:
    first, last = {"valid": (8, 10), "test": (11, 15)}[split]
    return [query for t in range(first, last + 1) for query in both([row for row in rows(graph()) if row[3] == t])]


def flat(asked: list[Asked]) -> list[Row]:
    columns = [(one.subject, one.relation, one.answer, torch.full_like(one.subject, one.time)) for one in asked]
    return [row for part in columns for row in zip(*(column.tolist() for column in part), strict=True)]


def ranks_of(asked: list[Asked]) -> list[float]:
    return [rank for one in asked for rank in one.ranks.realistic.tolist()]


def as_query(row: Row, truths: set[Row]) -> Query:
    """By name, without the other right answers of its time."""
    data, n = graph(), graph().n_relations
    s, r, o, t = row
    others = [data.entities[a] for q, k, a, when in truths if (q, k, when) == (s, r, t) and a != o]
    query = Query(data.relations[r % n], t, rank_of=(data.entities[o],), exclude=tuple(others))
    name = data.entities[s]
    return replace(query, o=name) if r >= n else replace(query, s=name)


def as_fact(row: Row) -> Fact:
    data = graph()
    return Fact(data.entities[row[0]], data.relations[row[1]], data.entities[row[2]], row[3])

"""Histories for the families of evidence: the same facts as a state and as plain lists, and the definitions' words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from adatkg_core.evidence import Questions, observe_evidence
from adatkg_core.state import GraphState, Grouping, both_sides
from adatkg_core.text import NameStructure
from tests.support.small_graph import small_config

NAMES = (
    "Citizen (Kenya)",
    "Police (Kenya)",
    "Kenya",
    "Citizen (Peru)",
    "Peru",
    "Ann",
    "Court (Peru)",
    "Police (Mali)",
    "Bob",
)
STRANGERS = ("Citizen (Mali)", "Court (Kenya)", "Guard (Peru)", "Guard (Chad)", "Chad", "Eve")  # in no fact
EVERYONE = (*NAMES, *STRANGERS)
RELATIONS = 3
FAST, SLOW = 3.0, 20.0
ROOMY = 512  # slots: more than any history here can fill

Triple = tuple[int, int, int]  # subject, relation, object
Commit = tuple[int, list[Triple]]  # ticks since the one before, and the facts of that time


@dataclass(frozen=True)
class Happened:
    """One side of a fact: what an entity did with another under a relation, the inverse ones included."""

    entity: int
    relation: int
    other: int
    time: int


@dataclass(frozen=True)
class History:
    """The same past as a state and as a list."""

    state: GraphState
    past: list[Happened]
    now: int  # the time of the latest fact


EVERY_QUERY = [(s, r) for s in range(len(EVERYONE)) for r in range(2 * RELATIONS)]


def commits(most: int = 8) -> st.SearchStrategy[list[Commit]]:
    """Histories of a few times: facts repeat, entities have to do with themselves, long pauses occur."""
    entity = st.integers(0, len(NAMES) - 1)
    fact = st.tuples(entity, st.integers(0, RELATIONS - 1), entity)
    step = st.sampled_from([1, 1, 2, 5, 31, 70])
    return st.lists(st.tuples(step, st.lists(fact, min_size=1, max_size=12)), min_size=1, max_size=most)


def ask(queries: Sequence[tuple[int, int]], time: int, n: int) -> Questions:
    """(subject, relation) pairs as questions about the first n entities."""
    subject, relation = torch.tensor(queries).view(-1, 2).unbind(1)
    return Questions.of(subject, relation, time, n)


def empty_state(names: Sequence[str] = NAMES, changes: dict[str, Any] | None = None) -> GraphState:
    """A state in which the names have rows and STRANGERS stand behind them, as while a query is answered."""
    roomy = {f"recall.{table}_slots": ROOMY for table in ("pair", "relation", "partner", "fact", "kin")}
    spans = {"recall.fast": FAST, "recall.slow": SLOW, "recall.hops": ROOMY}
    config = small_config({"model.names": "brackets", **roomy, **spans, **(changes or {})})
    state = GraphState(config, 4, RELATIONS, torch.device("cpu"))
    state.reserve(len(names) + len(STRANGERS))
    grouping = Grouping(NameStructure("brackets"))
    found = zip(grouping.add(names), grouping.look_up(STRANGERS), strict=True)
    for tensor, (known, strange) in zip(("group", "role") if state.keeps_evidence else (), found, strict=False):
        state.tensors[tensor][: len(names) + len(STRANGERS)] = torch.tensor([*known, *strange])
    state.entities = len(names)
    return state


def write(state: GraphState, facts: Sequence[Triple], time: int) -> list[Happened]:
    """Take the facts of one time in as a commit does; what happened, from both sides."""
    entity, relation, other = both_sides(torch.tensor(facts), RELATIONS)
    observe_evidence(state, entity, relation, other, time)
    state.pair_table.add(state, entity, relation, other, time)
    who, count = torch.unique(entity, return_counts=True)
    state.put("interactions", who, state.tensors["interactions"][who] + count)
    sides = zip(entity.tolist(), relation.tolist(), other.tolist(), strict=True)
    return [Happened(s, r, o, time) for s, r, o in sides]


def remember(story: Sequence[Commit], changes: dict[str, Any] | None = None) -> History:
    """A history from its commits."""
    state, past, time = empty_state(changes=changes), [], 0
    for step, facts in story:
        time += step
        past += write(state, facts, time)
    return History(state, past, time)


def group_of(row: int) -> str:
    """The group that a name tells of, read by hand; a name without brackets is the head of its own."""
    name = EVERYONE[row]
    return name[name.index("(") + 1 : -1] if "(" in name else name


def role_of(row: int) -> str:
    """The role, "" for a head."""
    name = EVERYONE[row]
    return name[: name.index(" (")] if "(" in name else ""


def lively(times: Sequence[int], now: int, span: float) -> float:
    """A count that decays: each time counts exp(-age / span)."""
    return sum(math.exp(-(now - time) / span) for time in times)


def every_place(questions: Questions) -> Tensor:
    """The flat places of all candidates of all queries."""
    return torch.arange(questions.subject.shape[0] * questions.n)


def assert_features(found: Tensor, wanted: Sequence[Sequence[float]]) -> None:
    """Equal up to rounding, with the place of the worst in the message."""
    expected = torch.tensor(wanted, dtype=torch.float64).view(found.shape)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)

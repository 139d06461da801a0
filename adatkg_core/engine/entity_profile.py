"""What is known of one entity, for people who look: its facts, its memory, and who is like it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from adatkg_core.engine.engine import Engine
from adatkg_core.events import Fact

FACTS = 30
MEMBERS = 12


@dataclass(frozen=True)
class EntityProfile:
    """An entity as the state stands; one that no fact has named is not `known`, and has a cluster by its name alone."""

    name: str
    known: bool
    interactions: int  # facts seen of it, those at the watermark included
    updates: int  # of its memory, which takes facts in when time has moved on
    gate: float
    memory_norm: float
    cluster: int | None  # None: this configuration has no clusters
    cluster_size: int
    cluster_members: tuple[str, ...]  # the busiest others
    facts: tuple[Fact, ...]  # newest first


@torch.no_grad()
def profile_entity(engine: Engine, name: str) -> EntityProfile:
    """Read an entity's row. It changes nothing, takes no pending facts in, and costs the same however long it ran."""
    state = engine.state
    with engine.rows_for([name]) as (row,):
        place = torch.tensor([row], device=engine.device)
        view = engine.model.view(state, place)
        waiting, waiting_count = _waiting(engine, row)
        clusters = engine.model.codebook is not None and engine.model.config.model.enabled
        cluster = int(view.cluster[0]) if clusters else None
        size, members = (0, ()) if cluster is None else _members(engine, cluster, row)
        return EntityProfile(
            name=name,
            known=row < state.entities,
            interactions=int(state.tensors["interactions"][row]) + waiting_count,
            updates=int(state.tensors["updates"][row]),
            gate=float(view.gate[0]),
            memory_norm=float(engine.memory_norms(place)[0]),
            cluster=cluster,
            cluster_size=size,
            cluster_members=members,
            facts=(*reversed(waiting), *_remembered(engine, row))[:FACTS],
        )


def _members(engine: Engine, cluster: int, row: int) -> tuple[int, tuple[str, ...]]:
    state = engine.state
    same = state.tensors["cluster"][: state.entities] == cluster
    size = int(same.sum())
    busy = torch.where(same, state.tensors["interactions"][: state.entities], -1)
    found, order = busy.topk(min(MEMBERS + 1, state.entities))
    rows = [one for one, count in zip(order.tolist(), found.tolist(), strict=True) if count >= 0 and one != row]
    return size, tuple(engine.catalog.names[one] for one in rows[:MEMBERS])


def _waiting(engine: Engine, row: int) -> tuple[list[Fact], int]:
    """The latest of its facts that wait at the watermark, in log order, and how often they name it."""
    pending = engine.pending()
    named = pending[:, [0, 2]] == row  # [n, 2]
    mine = pending[named.any(1)][-FACTS:].tolist()
    assert engine.watermark is not None or not mine
    time = engine.watermark or 0
    names, relations = engine.catalog.names, list(engine.relations)
    return [Fact(names[s], relations[r], names[o], time) for s, r, o in mine], int(named.sum())


def _remembered(engine: Engine, row: int) -> list[Fact]:
    """The facts in its ring, newest first; the earlier ones have been overwritten."""
    tensors, names, relations = engine.state.tensors, engine.catalog.names, list(engine.relations)
    kinds, others, times = (tensors[name][row].tolist() for name in ("ring_relation", "ring_other", "ring_time"))
    count = int(tensors["interactions"][row])
    facts = []
    for i in range(count - 1, max(0, count - len(times)) - 1, -1):
        column = i % len(times)
        kind, other, time = kinds[column], others[column], times[column]
        inverse = kind >= len(relations)
        if not (inverse and other == row):  # what it did with itself stands there from both sides
            s, o = (other, row) if inverse else (row, other)
            facts.append(Fact(names[s], relations[kind % len(relations)], names[o], time))
    return facts

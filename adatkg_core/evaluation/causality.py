"""Whether what was measured could know of the future: sampled queries, asked again of an engine that has none.

While a measurement runs, each sampled query is also asked alone, by name, with a ranking of all candidates. Afterwards
another engine, made from the same bundle, is given the facts before the first sampled time, asked, given those up to
the next, and so on: it never has a fact at or after the time that it is asked about. Both rankings must be bitwise the
same, and the rank that went into the figures must be theirs too. That one was computed beside other queries, which
rounds sums differently: there candidates may have swapped places that are closer than TOLERANCE.

Names are not facts: an engine that began with all names of the data set is compared with one that did, too. Where the
catalog grows with the facts, the other engine has heard of nobody who comes later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adatkg_core.datasets import Dataset, Split, facts_by_time
from adatkg_core.engine import Engine
from adatkg_core.errors import InputError
from adatkg_core.evaluation.measuring import Asked
from adatkg_core.events import Fact, Query, Ranking

TOLERANCE = 1e-5  # of the largest score, or of 1: what the order of a sum may change
NAMED = 5  # queries that the result names when they differ


@dataclass(frozen=True)
class _Seen:
    """A whole ranking, small enough to be kept by the thousand."""

    digest: bytes  # of names, scores and the answer's rank
    rank: float
    scores: NDArray[np.float64]  # of the candidates but the answer, descending
    own: float | None  # of the answer, if it is a candidate


@dataclass(frozen=True)
class _Probe:
    """A query that was asked alone, what came of it, and the rank that went into the figures."""

    query: Query
    seen: _Seen
    counted: float


class CausalityCheck:
    """Samples queries of a split; `follow` asks them during a measurement, `compare` asks another engine."""

    def __init__(self, dataset: Dataset, split: Split, count: int, seed: int) -> None:
        """`dataset` is what is measured, numbered as it is there."""
        if count < 1:
            raise InputError(f"a check of {count} queries checks nothing: give a number from 1")
        total = 2 * len(dataset.split(split))
        chosen = np.random.default_rng(seed).choice(total, min(count, total), replace=False)
        self._dataset, self._seed = dataset, seed
        self._chosen = np.sort(chosen)  # numbers of queries in the order in which they are measured
        self._probes: list[_Probe] = []

    def follow(self, asked: Iterable[Asked], engine: Engine) -> Iterator[Asked]:
        """Passes the queries on; the chosen ones are asked alone, of the engine that is measured, on the way."""
        start = 0
        for one in asked:
            end = start + len(one.subject)
            first, last = np.searchsorted(self._chosen, (start, end))
            for place in (self._chosen[first:last] - start).tolist():
                query = self._query(one, place)
                self._probes.append(_Probe(query, _ask(engine, query), float(one.ranks.realistic[place])))
            start = end
            yield one

    def compare(self, reference: Engine, progress: Callable[[int], None] = lambda _: None) -> dict[str, Any]:
        """Ask a fresh engine, which is given only what was before each query, and say how many answers differ."""
        different: list[Query] = []
        upcoming = iter(self._probes)
        probe = next(upcoming, None)
        for time, rows in facts_by_time(self._dataset.facts):
            while probe is not None and probe.query.t <= time:
                if not _same(probe, _ask(reference, probe.query)):
                    different.append(probe.query)
                progress(1)
                probe = next(upcoming, None)
            if probe is None:
                break
            # By name, as a stream would: nothing can come in with a number.
            reference.observe_admitted([self._fact(row) for row in rows.tolist()])
        named = [{"subject": q.s, "relation": q.r, "object": q.o, "time": q.t} for q in different[:NAMED]]
        return {"checked": len(self._probes), "different": len(different), "seed": self._seed, "examples": named}

    def _query(self, one: Asked, place: int) -> Query:
        """The query by names; other right answers of its time are left out, as in the figures."""
        names, relations = self._dataset.entities, self._dataset.relations
        subject, relation, answer = (int(column[place]) for column in (one.subject, one.relation, one.answer))
        same = one.answer[(one.subject == subject) & (one.relation == relation)].tolist()
        others = tuple(names[row] for row in dict.fromkeys(same) if row != answer)
        inverse = relation >= len(relations)
        return Query(
            relations[relation % len(relations)],
            one.time,
            s=None if inverse else names[subject],
            o=names[subject] if inverse else None,
            k=len(names),
            rank_of=(names[answer],),
            exclude=others,
        )

    def _fact(self, row: list[int]) -> Fact:
        names, relations = self._dataset.entities, self._dataset.relations
        return Fact(names[row[0]], relations[row[1]], names[row[2]], row[3])


def _ask(engine: Engine, query: Query) -> _Seen:
    engine.read_anew()
    ranking = engine.predict([query])[0]
    assert isinstance(ranking, Ranking)
    (answer,) = query.rank_of
    rank = ranking.ranks[answer]
    names = "\0".join(one.entity for one in ranking.top)
    scores = np.array([one.score for one in ranking.top])
    digest = hashlib.sha256(names.encode() + scores.tobytes() + np.float64(rank).tobytes()).digest()
    others = np.array([one.entity != answer for one in ranking.top], bool)
    own = scores[~others]
    return _Seen(digest, rank, scores[others], float(own[0]) if len(own) else None)


def _same(probe: _Probe, reference: _Seen) -> bool:
    """Whether both engines said bitwise the same, and the figures have the rank that both said."""
    if probe.seen.digest != reference.digest:
        return False
    # Whoever stands between the two ranks, and the answer itself, must be too close to be told apart.
    low, high = sorted((probe.counted, reference.rank))
    passed = reference.scores[int(low) - 1 : int(np.ceil(high)) - 1] if low < high else reference.scores[:0]
    if reference.own is not None and len(passed):
        passed = np.append(passed, reference.own)
    largest = max(1.0, float(np.abs(reference.scores).max(initial=0.0)))
    return len(passed) == 0 or float(np.ptp(passed)) <= 4 * TOLERANCE * largest

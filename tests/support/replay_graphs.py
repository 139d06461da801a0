"""Data sets for replays: any shape, awkward names, facts that repeat; and what a replay of one must say."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from adatkg_core.datasets import Dataset
from adatkg_core.datasets.dataset import make_dataset
from adatkg_core.messages import encode_fact, encode_query
from replay import Choice

# What JSON escapes, what bytes formatting would take for its own, and what is not ASCII.
ENTITIES = ('Say "no"', "back\\slash", "100 %d of %b", "Ünïcode 市", "😀", "%", "S", "tab-free/slash", "</script>", "T")
RELATIONS = ("Consult", 'Make "%s"', "R")


@st.composite
def data_sets(draw: st.DrawFn) -> Dataset:
    """Few entities, so that questions have several answers and facts repeat."""
    fact = st.tuples(st.integers(0, len(ENTITIES) - 1), st.integers(0, 2), st.integers(0, len(ENTITIES) - 1))
    times = draw(st.lists(st.integers(0, 30), min_size=1, max_size=6, unique=True))
    rows = [(*row, time) for time in times for row in draw(st.lists(fact, min_size=1, max_size=12))]
    return make_dataset(draw(st.sampled_from(("plain", 'na"me %d', "ü"))), ENTITIES, RELATIONS, np.array(rows))


@st.composite
def choices(draw: st.DrawFn, dataset: Dataset) -> Choice:
    """A choice that leaves something to publish."""
    times = dataset.times.tolist()
    first, last = sorted((draw(st.sampled_from(times)), draw(st.sampled_from(times))))
    return Choice(
        graph=draw(st.sampled_from(("plain", "gräph"))),
        first=draw(st.sampled_from((None, first))),
        last=draw(st.sampled_from((None, last))),
        queries=draw(st.booleans()),
        queries_from=draw(st.sampled_from((None, last, times[0] - 5))),
        k=draw(st.integers(0, 20)),
    )


def by_definition(dataset: Dataset, choice: Choice) -> list[bytes]:
    """The messages of a replay by the codec, each question's other answers found by looking at every fact."""
    messages = []
    facts = dataset.facts.tolist()
    for time in dataset.times.tolist():
        if (choice.first is not None and time < choice.first) or (choice.last is not None and time > choice.last):
            continue
        here = [(row, *fact[:3]) for row, fact in enumerate(facts) if fact[3] == time]
        asked = choice.queries if choice.queries_from is None else time >= choice.queries_from
        for row, s, r, o in here if asked else []:
            objects = {fact[2] for fact in facts if (fact[0], fact[1], fact[3]) == (s, r, time)} - {o}
            subjects = {fact[0] for fact in facts if (fact[1], fact[2], fact[3]) == (r, o, time)} - {s}
            relation = dataset.relations[r]
            for side, given, wanted, others in (("o", {"s": s}, o, objects), ("s", {"o": o}, s, subjects)):
                messages.append(
                    encode_query(
                        f"{dataset.name}-{row}-{side}",
                        relation,
                        time,
                        **{end: dataset.entities[entity] for end, entity in given.items()},
                        k=choice.k,
                        rank_of=[dataset.entities[wanted]],
                        exclude=[dataset.entities[other] for other in sorted(others)],
                    )
                )
        messages += [
            encode_fact(dataset.entities[s], dataset.relations[r], dataset.entities[o], time) for _, s, r, o in here
        ]
    return messages

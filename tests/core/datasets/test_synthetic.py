from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adatkg_core.datasets import load_dataset, synthesize, write_dataset
from adatkg_core.errors import InputError


def test_the_same_seed_gives_the_same_graph_and_another_seed_another() -> None:
    one, same, other = (synthesize(50, 5, 20, 30, seed) for seed in (1, 1, 2))
    assert one.entities == same.entities
    assert np.array_equal(one.facts, same.facts)
    assert not np.array_equal(one.facts, other.facts)


@settings(max_examples=40, deadline=None)
@given(
    entities=st.integers(2, 60),
    relations=st.integers(1, 12),
    times=st.integers(1, 15),
    facts=st.integers(1, 40),
    seed=st.integers(0, 2**32),
    emerging=st.floats(0, 1),
)
def test_graphs_of_any_size_are_sound(
    entities: int, relations: int, times: int, facts: int, seed: int, emerging: float
) -> None:
    graph = synthesize(entities, relations, times, facts, seed, emerging)
    assert graph.facts.min() >= 0
    assert (graph.facts.max(axis=0) < [entities, relations, entities, times]).all()
    assert (np.diff(graph.facts[:, 3]) >= 0).all()
    assert len(np.unique(graph.facts, axis=0)) == len(graph.facts)
    assert np.bincount(graph.facts[:, 3], minlength=times).max() <= facts
    assert len(graph.times) == times
    assert (len(set(graph.entities)), len(set(graph.relations))) == (entities, relations)


def test_most_facts_recur_and_entities_emerge() -> None:
    graph = synthesize(300, 12, 100, 60, seed=3, emerging=0.4)
    assert len(graph.facts) == 6000
    train, test = graph.split("train"), graph.split("test")
    seen = {tuple(row) for row in np.concatenate([train, graph.split("valid")])[:, :3].tolist()}
    recurring = np.mean([tuple(row) in seen for row in test[:, :3].tolist()])
    assert 0.4 < recurring < 0.95
    unknown = ~np.isin(test[:, [0, 2]], train[:, [0, 2]]).all(axis=1)
    assert 0.05 < unknown.mean() < 0.6


def test_entities_of_a_type_behave_alike() -> None:
    graph = synthesize(300, 12, 100, 60, seed=3)
    kind = np.array([name.split()[0] for name in graph.entities])
    for one in np.unique(kind):
        used = np.bincount(graph.facts[kind[graph.facts[:, 0]] == one, 1], minlength=12)
        assert np.sort(used)[-3:].sum() > 0.7 * used.sum()


def test_a_written_graph_reads_back_as_it_was(tmp_path: Path) -> None:
    graph = synthesize(50, 5, 20, 30, seed=1)
    write_dataset(graph, tmp_path / "new" / "graph")
    back = load_dataset(str(tmp_path / "new" / "graph"))
    assert (back.entities, back.relations) == (graph.entities, graph.relations)
    assert np.array_equal(back.facts, graph.facts)


def test_a_folder_with_something_in_it_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(InputError, match="not empty"):
        write_dataset(synthesize(5, 2, 3, 2, seed=1), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1, 0.3), (2, 0, 1, 1, 0.3), (2, 1, 0, 1, 0.3), (2, 1, 1, 1, 1.5)])
def test_impossible_sizes_are_refused(sizes: tuple[int, int, int, int, float]) -> None:
    entities, relations, times, facts, emerging = sizes
    with pytest.raises(InputError, match="is "):
        synthesize(entities, relations, times, facts, 0, emerging)

"""The sequence of a replay: what is published, in which order, and that it asks what evaluation asks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adatkg_core.datasets import Dataset, load_dataset, synthesize
from adatkg_core.datasets.dataset import make_dataset
from adatkg_core.errors import InputError
from adatkg_core.evaluation import measure
from adatkg_core.events import Fact, Ranking
from adatkg_core.messages import Question, decode_event
from adatkg_core.metrics import TimeFilter
from adatkg_core.state import both_sides
from replay import Choice, ReplaySequence
from tests.support.replay_graphs import ENTITIES, RELATIONS, by_definition, choices, data_sets
from tests.support.small_graph import fresh_engine, play, small_graph

GRAPH = make_dataset("plain", ENTITIES, RELATIONS, np.array([[0, 0, 1, 3], [0, 0, 2, 3], [4, 1, 5, 7], [4, 1, 5, 10]]))
WHOLE = Choice("plain", queries=True)


def messages(sequence: ReplaySequence, start: int = 0) -> list[bytes]:
    return [message for _, block in sequence.blocks(start) for message in block]


# -- what is published ----------------------------------------------------------------------------------------


@given(st.data())
def test_a_replay_says_byte_by_byte_what_the_codec_says(data: st.DataObject) -> None:
    dataset = data.draw(data_sets())
    choice = data.draw(choices(dataset))
    if choice.queries_from is not None and choice.queries_from > (choice.last or dataset.times[-1]):
        choice = replace(choice, queries_from=None)
    sequence = ReplaySequence(dataset, choice)
    assert messages(sequence) == by_definition(dataset, choice)
    assert len(sequence) == len(by_definition(dataset, choice))


@given(st.data())
@settings(max_examples=30)
def test_a_sequence_begun_anywhere_goes_on_as_the_whole_one(data: st.DataObject) -> None:
    dataset = data.draw(data_sets())
    sequence = ReplaySequence(dataset, Choice("plain", queries_from=int(dataset.times[-1]), k=3))
    whole = messages(sequence)
    kinds = [isinstance(decode_event(message, None), Question) for message in whole]
    for start in range(len(whole) + 1):
        assert messages(sequence, start) == whole[start:]
        assert sequence.counts(start, len(whole)) == (kinds[start:].count(False), kinds[start:].count(True))
        assert sequence.counts(0, start) == (kinds[:start].count(False), kinds[:start].count(True))


def test_every_message_is_an_event_of_its_block_and_queries_come_before_the_facts() -> None:
    dataset = load_dataset("icews14")
    sequence = ReplaySequence(dataset, Choice("icews14", queries_from=250, last=300))
    reached, number, ids = 0, 0, set()
    for time, block in sequence.blocks():
        assert time > reached
        reached, facts_began = time, False
        for message in block:
            event = decode_event(message, dataset.clock)
            assert sequence.time_of(number) == time
            number += 1
            if isinstance(event, Question):
                assert not facts_began and time >= 250 and event.query.t == time
                ids.add(event.id)
            else:
                assert isinstance(event, Fact) and event.t == time
                facts_began = True
    facts, queries = sequence.counts(0, len(sequence))
    assert (reached, number) == (300, len(sequence)) and len(ids) == queries
    assert facts == np.searchsorted(dataset.facts[:, 3], 300, "right")


def test_both_directions_of_a_fact_that_repeats_are_asked_as_often_as_it_is_told() -> None:
    rows = np.array([[0, 0, 1, 3], [0, 0, 1, 3], [0, 0, 2, 3]])
    sequence = ReplaySequence(make_dataset("plain", ENTITIES, RELATIONS, rows), WHOLE)
    events = [decode_event(message, None) for message in messages(sequence)]
    asked = [event for event in events if isinstance(event, Question)]
    assert [one.id for one in asked] == [f"plain-{row}-{side}" for row in range(3) for side in "os"]
    assert [one.query.rank_of for one in asked[::2]] == [(ENTITIES[1],), (ENTITIES[1],), (ENTITIES[2],)]
    assert [one.query.exclude for one in asked[::2]] == [(ENTITIES[2],), (ENTITIES[2],), (ENTITIES[1],)]
    assert all(one.query.exclude == () for one in asked[1::2])
    assert Counter(type(event) for event in events) == {Question: 6, Fact: 3}


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_the_splits_are_those_of_the_data_set(split: str) -> None:
    dataset = small_graph()
    sequence = ReplaySequence(dataset, Choice("small", split=split))  # type: ignore[arg-type]
    rows = dataset.split(split)  # type: ignore[arg-type]
    told = [decode_event(message, None) for message in messages(sequence)]
    assert told == [Fact(dataset.entities[s], dataset.relations[r], dataset.entities[o], t) for s, r, o, t in rows]


# -- what is asked --------------------------------------------------------------------------------------------


@given(data_sets())
@settings(max_examples=30)
def test_excluded_are_the_answers_that_the_time_aware_filter_excludes(dataset: Dataset) -> None:
    known = TimeFilter(dataset.facts, dataset.n_relations)
    asked: dict[str, set[str]] = {}
    for message in messages(ReplaySequence(dataset, WHOLE)):
        event = decode_event(message, None)
        if isinstance(event, Question):
            assert not set(event.query.rank_of) & set(event.query.exclude)
            asked[event.id] = {*event.query.rank_of, *event.query.exclude}
    facts = torch.from_numpy(dataset.facts)
    subject, relation, _ = both_sides(facts[:, :3], dataset.n_relations)
    answers: list[set[str]] = [set() for _ in range(2 * len(facts))]
    for row, entity in known.exclusions(subject, relation, facts[:, 3].repeat(2)).tolist():
        answers[row].add(dataset.entities[entity])
    ids = [f"{dataset.name}-{row}-{side}" for side in "os" for row in range(len(facts))]
    assert asked == dict(zip(ids, answers, strict=True))


def test_ranks_of_a_replay_are_the_ranks_of_an_evaluation() -> None:
    dataset = small_graph()
    sequence = ReplaySequence(dataset, Choice("small", queries_from=dataset.split_bounds[1]))
    events = [decode_event(message, None) for message in messages(sequence)]
    log = [event.query if isinstance(event, Question) else event for event in events]
    assert not any(hasattr(event, "next") for event in log)
    answers = play(fresh_engine(entities=dataset.entities), log)  # type: ignore[arg-type]
    ranks = [rank for answer in answers if isinstance(answer, Ranking) for rank in answer.ranks.values()]
    asked = measure(fresh_engine(entities=dataset.entities), dataset, "test", baseline=False)
    wanted = torch.cat([one.ranks.realistic.view(2, -1).T.flatten() for one in asked])  # fact by fact
    assert ranks == wanted.tolist()


# -- what names it --------------------------------------------------------------------------------------------


def test_the_digest_changes_with_all_that_changes_the_messages() -> None:
    changed = [
        (GRAPH, replace(WHOLE, graph="other")),
        (GRAPH, replace(WHOLE, first=7)),
        (GRAPH, replace(WHOLE, last=7)),
        (GRAPH, replace(WHOLE, split="train")),
        (GRAPH, replace(WHOLE, queries=False)),
        (GRAPH, replace(WHOLE, queries_from=7)),
        (GRAPH, replace(WHOLE, k=3)),
        (replace(GRAPH, name="other"), WHOLE),
        (replace(GRAPH, entities=(*ENTITIES[:-1], "other")), WHOLE),
        (replace(GRAPH, relations=(*RELATIONS[:-1], "other")), WHOLE),
        (replace(GRAPH, facts=GRAPH.facts[[1, 0, 2, 3]]), WHOLE),
    ]
    digests = [ReplaySequence(dataset, choice).digest for dataset, choice in changed]
    assert len({*digests, ReplaySequence(GRAPH, WHOLE).digest}) == len(changed) + 1


def test_the_digest_is_the_same_for_the_same_messages_said_differently() -> None:
    said = [WHOLE, replace(WHOLE, first=3, last=10), replace(WHOLE, queries_from=-1), replace(WHOLE, first=-8)]
    assert len({ReplaySequence(GRAPH, choice).digest for choice in said}) == 1
    assert ReplaySequence(GRAPH, replace(WHOLE, queries=False, k=3)).digest == (
        ReplaySequence(GRAPH, replace(WHOLE, queries=False)).digest
    )


# -- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (Choice("plain", first=9, last=3), ("--from 9", "--to 3")),
        (Choice("plain", first=11), ("nothing to publish", "3 to 10")),
        (Choice("plain", last=2), ("nothing to publish", "time 2")),
        (Choice("plain", first=4, last=6), ("nothing to publish", "time 4")),
        (Choice("plain", split="test", last=5), ("nothing to publish", "test has times")),
        (Choice("plain", queries_from=8, last=7), ("--queries-from 8", "7")),
        (Choice("plain", k=-1), ("--k -1",)),
        (Choice("plain", k=10_001), ("--k 10001", "10000")),
        (Choice(""), ("--graph", "empty")),
        (Choice("a\nb"), ("--graph", "control")),
    ],
)
def test_a_choice_that_cannot_be_published_is_refused_by_name(choice: Choice, words: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as refused:
        ReplaySequence(GRAPH, choice)
    assert all(word in str(refused.value) for word in words), refused.value


def test_names_that_every_reader_would_refuse_are_refused_before_anything_is_published() -> None:
    for names in (("x" * 1_001, *ENTITIES[1:]), ("bell\x07", *ENTITIES[1:])):
        with pytest.raises(InputError, match="entity 0"):
            ReplaySequence(replace(GRAPH, entities=names), WHOLE)


def test_a_question_with_more_answers_than_a_message_holds_is_refused_by_its_id() -> None:
    many = 1_200
    facts = np.array([[0, 0, entity, 1] for entity in range(1, many)])
    names = ["subject", *(f"{entity:0999d}" for entity in range(1, many))]
    sequence = ReplaySequence(make_dataset("wide", names, ("r",), facts), Choice("wide", queries=True))
    with pytest.raises(InputError, match=r"query .wide-0-o.*bytes"):
        messages(sequence)


def test_an_empty_split_is_refused() -> None:
    with pytest.raises(InputError, match="valid split is empty"):
        ReplaySequence(synthesize(5, 2, 1, 3, seed=1), Choice("short", split="valid"))

"""The selection of chains, and their encoding, against plain Python."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adatkg_core.engine import commit_facts
from adatkg_core.model import AdaTKG
from adatkg_core.model.chain_encoder import ChainLayer
from adatkg_core.state import Chains, GraphState, select_chains
from tests.support.small_graph import ENCODER, small_config, small_graph, small_model

ENTITIES, RELATIONS = 5, 5
WINDOW, LENGTH, CAPACITY = 5, 3, 5  # as in the small configuration
Fact = tuple[int, int, int]
Token = tuple[int, int, int, int]  # entity, relation, other, age
MODEL = small_model(small_config({"model.memory": "none", "model.prior": False, "recall.enabled": False}))

fact = st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1))
commits = st.lists(st.tuples(st.integers(1, 4), st.lists(fact, min_size=1, max_size=9)), min_size=1, max_size=6)
readers = st.lists(st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, 2 * RELATIONS - 1)), min_size=1, max_size=12)
quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def empty_state(model: AdaTKG = MODEL) -> GraphState:
    state = GraphState(model.config, ENCODER.dim, RELATIONS, torch.device("cpu"))
    state.reserve(ENTITIES)
    state.entities = ENTITIES
    state.tensors["text"][:ENTITIES] = ENCODER.encode(small_graph().entities[:ENTITIES])
    return state


def replay(history: list[tuple[int, list[Fact]]]) -> tuple[GraphState, list[tuple[int, int, int, int]], int]:
    """The state, the interactions (entity, relation, other, time) in the order of the log, and the last time."""
    state, past, time = empty_state(), [], 0
    for step, facts in history:
        time += step
        commit_facts(MODEL, state, torch.tensor(facts), time)
        past += [(s, r, o, time) for s, r, o in facts]
        past += [(o, r + RELATIONS, s, time) for s, r, o in facts]
    return state, past, time


def select(state: GraphState, asked: list[tuple[int, int]], time: int) -> Chains:
    entity, relation = torch.tensor(asked).unbind(1)
    return select_chains(state, entity, relation, time, MODEL.similarity, WINDOW, LENGTH)


def tokens_of_readers(chains: Chains) -> list[list[Token]]:
    columns = (chains.entity, chains.relation, chains.other, chains.age)
    flat = list(zip(*(column[chains.fact].tolist() for column in columns), strict=True))
    sizes = chains.mask.sum(1).tolist()
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    of_chain = [flat[start : start + size] for start, size in zip(starts, sizes, strict=True)]
    return [of_chain[chain] for chain in chains.of_reader.tolist()]


def oracle(past: list[tuple[int, int, int, int]], entity: int, relation: int, time: int) -> list[Token]:
    held = [one for one in past if one[0] == entity][-CAPACITY:]
    inside = [one for one in held if time - WINDOW <= one[3] < time][::-1]  # the latest first
    if len(inside) > LENGTH:
        # Similarities are compared as whole millionths, so that rounding cannot decide.
        inside.sort(key=lambda one: -int(MODEL.similarity[relation, one[1]] * 1e6))
    return [(one[0], one[1], one[2], time - one[3]) for one in inside[:LENGTH]]


@quick
@given(history=commits, asked=readers, later=st.integers(0, 7))
def test_a_chain_holds_the_most_similar_and_latest_facts_of_the_window(
    history: list[tuple[int, list[Fact]]], asked: list[tuple[int, int]], later: int
) -> None:
    state, past, time = replay(history)
    found = tokens_of_readers(select(state, asked, time + later))
    assert found == [oracle(past, entity, relation, time + later) for entity, relation in asked]


@quick
@given(history=commits, asked=readers)
def test_readers_share_a_chain_unless_their_relation_decides_what_is_in_it(
    history: list[tuple[int, list[Fact]]], asked: list[tuple[int, int]]
) -> None:
    state, past, time = replay(history)
    chains = select(state, asked, time + 1)

    def crowded(entity: int) -> bool:
        held = [one for one in past if one[0] == entity][-CAPACITY:]
        return sum(time + 1 - WINDOW <= one[3] for one in held) > LENGTH

    distinct = {(entity, relation if crowded(entity) else -1) for entity, relation in asked}
    assert chains.mask.shape == (len(distinct), LENGTH)
    assert len(set(chains.of_reader.tolist())) == len(distinct)
    assert int(chains.mask.sum()) == chains.fact.shape[0]  # packed: no token is padding


def test_a_fact_that_several_chains_hold_is_there_once() -> None:
    state, _, time = replay([(1, [(0, relation, 1 + relation % 4) for relation in range(RELATIONS)])])
    chains = select(state, [(0, relation) for relation in range(2 * RELATIONS)], time + 1)
    assert chains.fact.shape[0] == 2 * RELATIONS * LENGTH
    assert chains.entity.shape[0] == len(set(chains.fact.tolist())) <= CAPACITY


def test_facts_at_or_after_the_time_of_reading_are_not_in_a_chain() -> None:
    state, _, time = replay([(3, [(0, 1, 2)]), (1, [(0, 2, 3)])])
    assert time == 4
    assert tokens_of_readers(select(state, [(0, 0)], 4)) == [[(0, 1, 2, 1)]]
    assert tokens_of_readers(select(state, [(0, 0)], 3)) == [[]]
    assert tokens_of_readers(select(state, [(0, 0)], 5)) == [[(0, 2, 3, 1), (0, 1, 2, 2)]]


def test_the_window_ends_exactly_so_many_ticks_ago() -> None:
    state, _, _ = replay([(10, [(0, 1, 2)])])
    assert tokens_of_readers(select(state, [(0, 0)], 10 + WINDOW)) == [[(0, 1, 2, WINDOW)]]
    assert tokens_of_readers(select(state, [(0, 0)], 11 + WINDOW)) == [[]]


@pytest.mark.parametrize("count", [CAPACITY, CAPACITY + 1, 3 * CAPACITY + 2])
def test_more_facts_in_one_commit_than_the_ring_holds_leave_the_latest(count: int) -> None:
    facts = [(0, i % RELATIONS, 1 + i % (ENTITIES - 1)) for i in range(count)]
    state, past, _ = replay([(1, [(0, 4, 4)]), (1, facts)])
    ring = [oracle(past, 0, relation, 3) for relation in range(2 * RELATIONS)]
    assert tokens_of_readers(select(state, [(0, r) for r in range(2 * RELATIONS)], 3)) == ring
    assert int(state.tensors["interactions"][0]) == count + 1


@quick
@given(history=commits, asked=readers)
def test_the_encoding_of_a_chain_does_not_depend_on_who_else_is_read(
    history: list[tuple[int, list[Fact]]], asked: list[tuple[int, int]]
) -> None:
    state, past, time = replay(history)
    entity, relation = torch.tensor(asked).unbind(1)
    with torch.no_grad():
        together, nonempty = MODEL.encode_chains(state, entity, relation, time + 1)
        for i, (e, r) in enumerate(asked):
            alone, _ = MODEL.encode_chains(state, entity[i : i + 1], relation[i : i + 1], time + 1)
            torch.testing.assert_close(together[i : i + 1], alone, atol=1e-5, rtol=1e-5)
            assert bool(nonempty[i]) == bool(oracle(past, e, r, time + 1))
            assert bool(nonempty[i]) or torch.equal(together[i], torch.zeros_like(together[i]))


def test_packed_attention_equals_attention_over_each_chain_alone() -> None:
    """The textbook layer, chain by chain and without padding, gives what the packed one gives."""
    state, _, time = replay([(1, [(0, 1, 2), (0, 2, 3), (1, 1, 4)]), (1, [(0, 3, 4), (1, 0, 2), (0, 0, 1)])])
    asked = [(0, 1), (0, 7), (1, 2), (2, 3), (4, 4)]
    chains, encoder = select(state, asked, time + 1), MODEL.chain
    with torch.no_grad():
        vectors = MODEL.relations()
        entities, relations = torch.tensor(asked).unbind(1)
        found, _ = MODEL.encode_chains(state, entities, relations, time + 1)
        for reader, (tokens, (_, relation)) in enumerate(zip(tokens_of_readers(chains), asked, strict=True)):
            _, kind, other, age = torch.tensor(tokens).unbind(1)
            stamp = torch.stack((age / WINDOW, torch.log1p(age.float())), 1)
            parts = encoder.relation(vectors[kind]), encoder.entity(state.tensors["text"][other]), encoder.age(stamp)
            assert encoder.part_norms is not None
            x = sum(norm(part) for norm, part in zip(encoder.part_norms, parts, strict=True))
            assert isinstance(x, torch.Tensor)
            for layer in encoder.layers:
                assert isinstance(layer, ChainLayer)
                q, k, v = layer.qkv(layer.norm_attention(x)).view(len(tokens), 3, layer.heads, -1).permute(1, 2, 0, 3)
                weight = (q @ k.transpose(1, 2) / q.shape[-1] ** 0.5).softmax(-1)
                x = x + layer.out((weight @ v).transpose(0, 1).reshape(len(tokens), -1))
                x = x + layer.narrow(layer.widen(layer.norm_forward(x)).relu())
            x = encoder.norm(x)
            pooling = (encoder.answer(x) @ encoder.ask(vectors[relation]) / x.shape[1] ** 0.5).softmax(0)
            torch.testing.assert_close(found[reader], pooling @ x, atol=1e-5, rtol=1e-5)

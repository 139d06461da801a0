"""One suite that every memory operator passes, then what sets each apart."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from adatkg_core.engine import commit_facts
from adatkg_core.model import AdaTKG, Ema
from adatkg_core.model.memory import Attention, Gate, Members, MemoryOperator, memory_operator
from adatkg_core.settings import Config
from adatkg_core.state import GraphState
from tests.support.small_graph import ENCODER, assert_same_bits, bits, small_config, small_graph, small_model

DIM, ENTITIES, CODES, RING = 16, 6, 4, 3
OPERATORS: dict[str, dict[str, Any]] = {
    "ema": {"model.memory": "ema"},
    "ema-per-entity": {"model.memory": "ema", "model.decay": "entity"},
    "ema-per-dimension": {"model.memory": "ema", "model.decay": "dimension"},
    "gru": {"model.memory": "gru"},
    "attention": {"model.memory": "attention", "model.ring": RING},
}
each_operator = pytest.mark.parametrize("name", OPERATORS)


def configured(name: str) -> Config:
    return small_config({"recall.enabled": False, **OPERATORS[name]})


def operator(name: str) -> MemoryOperator:
    torch.manual_seed(1)
    made = memory_operator(configured(name).model, ENTITIES)
    assert made is not None
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn(parameter.shape) * 0.5)
    return made.eval()


def members(*entity: int, updates: int = 0) -> Members:
    ids = torch.tensor(entity)
    return Members(ids, ids % CODES, torch.full_like(ids, updates))


def zeros(made: MemoryOperator, n: int) -> Tensor:
    return torch.zeros(n, *made.shape)


def after(made: MemoryOperator, signals: Tensor) -> tuple[Tensor, Members]:
    """The memory of entity 0 after signals [n, d], one update each."""
    memory = zeros(made, 1)
    for i, signal in enumerate(signals):
        memory = made.update(memory, signal.unsqueeze(0), members(0, updates=i))
    return memory, members(0, updates=len(signals))


# -- the suite ----------------------------------------------------------------------------------------------------


@each_operator
def test_update_and_read_leave_their_inputs_as_they_were(name: str) -> None:
    made = operator(name)
    memory, signal, asked = torch.randn(2, *made.shape), torch.randn(2, DIM), torch.randn(2, DIM)
    who = members(1, 4, updates=2)
    inputs = {"m": memory, "x": signal, "h": asked, "e": who.entity, "c": who.cluster, "u": who.updates}
    copies = {key: tensor.clone() for key, tensor in inputs.items()}
    made.update(memory, signal, who)
    made.read(memory, asked, who)
    assert_same_bits(inputs, copies)


@each_operator
def test_a_memory_without_an_update_reads_as_zero_and_its_gate_is_zero(name: str) -> None:
    made = operator(name)
    asked = torch.randn(3, DIM)
    read = made.read(zeros(made, 3), asked, members(0, 1, 2))
    assert torch.equal(read, torch.zeros(3, DIM))
    for kind in ("adaptive", "constant"):
        assert torch.equal(Gate(DIM, kind)(asked, torch.randn(3, DIM), torch.zeros(3)), torch.zeros(3, DIM))
        assert bool((Gate(DIM, kind)(asked, torch.randn(3, DIM), torch.ones(3)) > 0).all())


@each_operator
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1.0, 1e4])
def test_memories_stay_finite(name: str, scale: float) -> None:
    made = operator(name)
    memory, who = after(made, torch.randn(3 * RING, DIM) * scale)
    read = made.read(memory, torch.randn(1, DIM), who)
    assert bool(memory.isfinite().all()) and bool(read.isfinite().all())


@each_operator
def test_an_update_changes_the_memory_and_each_entity_by_its_own_signal(name: str) -> None:
    made = operator(name)
    memory, signal = torch.randn(3, *made.shape), torch.randn(3, DIM)
    together = made.update(memory, signal, members(0, 1, 5))
    assert not torch.equal(together, memory)
    for i, entity in enumerate((0, 1, 5)):
        alone = made.update(memory[i : i + 1], signal[i : i + 1], members(entity))
        torch.testing.assert_close(together[i : i + 1], alone)


@each_operator
def test_a_memory_has_the_same_shape_however_many_updates_it_had(name: str) -> None:
    made = operator(name)
    for updates in (1, RING, 5 * RING):
        assert after(made, torch.randn(updates, DIM))[0].shape == (1, *made.shape)


@each_operator
def test_gradient_reaches_every_parameter_and_the_signal(name: str) -> None:
    made = operator(name).train()
    signal = torch.randn(ENTITIES, DIM, requires_grad=True)
    who = members(*range(ENTITIES), updates=1)
    memory = made.update(torch.randn(ENTITIES, *made.shape), signal, who)
    read = made.read(memory, torch.randn(ENTITIES, DIM), members(*range(ENTITIES), updates=2))
    (read * torch.randn(ENTITIES, DIM)).sum().backward()  # type: ignore[no-untyped-call]
    assert signal.grad is not None and bool((signal.grad.abs().sum(1) > 0).all())
    for key, parameter in made.named_parameters():
        assert parameter.grad is not None and bool((parameter.grad != 0).any()), key


@each_operator
def test_an_operator_survives_its_state_dict_bit_for_bit(name: str) -> None:
    made, again = operator(name), memory_operator(configured(name).model, ENTITIES)
    assert again is not None
    made.settle(torch.tensor([1, 0, 2, 0, 0, 3]), torch.tensor([0, 0, 1, 1, 2, 1]))
    again.load_state_dict(made.state_dict())
    memory, signal, who = torch.randn(3, *made.shape), torch.randn(3, DIM), members(0, 1, 40, updates=2)
    assert bits(again.eval().update(memory, signal, who)) == bits(made.update(memory, signal, who))
    assert bits(again.read(memory, signal, who)) == bits(made.read(memory, signal, who))


# -- the suite inside a commit ------------------------------------------------------------------------------------


def graph_of(model: AdaTKG, entities: int = 10) -> GraphState:
    state = GraphState(model.config, ENCODER.dim, model.n_relations, torch.device("cpu"))
    state.reserve(entities)
    state.entities = entities
    state.tensors["text"][:entities] = ENCODER.encode(small_graph().entities[:entities])
    state.tensors["cluster"][:entities] = model.assign_clusters(state, torch.arange(entities))
    return state


def facts(*rows: tuple[int, int, int]) -> Tensor:
    return torch.tensor(rows)


@each_operator
def test_a_commit_touches_only_the_memories_of_those_who_took_part(name: str) -> None:
    model = small_model(configured(name), entities=ENTITIES)
    state = graph_of(model)
    commit_facts(model, state, facts((0, 0, 1), (2, 1, 3)), 1)
    before = state.export()
    commit_facts(model, state, facts((0, 2, 4), (0, 1, 4)), 2)
    now = state.export()
    took_part = torch.tensor([0, 4])
    others = torch.tensor([i for i in range(10) if i not in (0, 4)])
    assert bits(now["memory"][others]) == bits(before["memory"][others])
    assert bits(now["updates"][others]) == bits(before["updates"][others])
    assert bool((now["memory"][took_part] != before["memory"][took_part]).flatten(1).any(1).all())
    assert now["updates"][:5].tolist() == [2, 1, 1, 1, 1]  # two facts of one time are one update
    assert now["interactions"][:5].tolist() == [3, 1, 1, 1, 2]


@each_operator
def test_interactions_of_one_commit_are_one_update_with_their_mean_signal(name: str) -> None:
    model = small_model(configured(name), entities=ENTITIES)
    state = graph_of(model)
    commit_facts(model, state, facts((0, 0, 1), (0, 1, 2)), 1)
    previous, count = state.tensors["memory"][:1].clone(), state.tensors["updates"][:1].clone()
    entity, relation = torch.tensor([0, 0, 0]), torch.tensor([1, 2, 3 + model.n_relations])
    with torch.no_grad():
        encoding, _ = model.encode_chains(state, entity, relation, 3)
        signal = model.signal(encoding, relation, model.relations())
        assert model.memory is not None
        who = Members(torch.tensor([0]), state.tensors["cluster"][:1], count)
        wanted = model.memory.update(previous, signal.mean(0, keepdim=True), who)
    assert not torch.allclose(signal[0], signal[1])
    commit_facts(model, state, facts((0, 1, 5), (0, 2, 6), (7, 3, 0)), 3)
    torch.testing.assert_close(state.tensors["memory"][:1], wanted)


@each_operator
def test_a_reader_that_repeats_the_last_update_sees_what_the_commit_wrote(name: str) -> None:
    model = small_model(configured(name), entities=ENTITIES)
    state = graph_of(model)
    commit_facts(model, state, facts((0, 0, 1), (2, 1, 3)), 1)
    last = commit_facts(model, state, facts((0, 2, 4), (0, 1, 4), (2, 1, 0)), 2)
    ids = torch.arange(10)
    with torch.no_grad():
        plain, lazy = model.view(state, ids), model.view(state, ids, last)
    assert last is not None
    torch.testing.assert_close(lazy.fused, plain.fused)
    model.view(state, ids, last).fused.pow(2).sum().backward()  # type: ignore[no-untyped-call]
    for parameter in (model.signal_in.weight, model.signal_out.weight):
        assert parameter.grad is not None and bool((parameter.grad != 0).any())


# -- each of them -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ema", "ema-per-dimension", "ema-per-entity"])
@settings(deadline=None, max_examples=10)
@given(count=st.integers(1, 12), seed=st.integers(0, 99))
def test_the_moving_average_has_its_closed_form(name: str, count: int, seed: int) -> None:
    made = operator(name)
    assert isinstance(made, Ema)
    made.settle(torch.tensor([count, 0, 1, 0, 0, 0]), torch.arange(ENTITIES) % CODES)
    signals = torch.randn(count, DIM, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    rho = made.rho.detach().double()
    alpha = torch.sigmoid(rho[0] if name == "ema-per-entity" else rho)
    wanted = sum(((1 - alpha) * alpha ** (count - 1 - i) * x for i, x in enumerate(signals)), torch.zeros(DIM))
    found, _ = after(made, signals.float())
    torch.testing.assert_close(found[0].double(), wanted, atol=1e-5, rtol=1e-5)


def test_an_entity_that_training_never_updated_uses_the_mean_decay_of_its_cluster() -> None:
    made = operator("ema-per-entity")
    assert isinstance(made, Ema)
    cluster = torch.tensor([0, 0, 0, 1, 1, 2])
    made.settle(torch.tensor([4, 1, 0, 2, 0, 0]), cluster)
    rho = made.rho.detach()
    ids, signal = torch.tensor([0, 2, 4, 5, 99]), torch.ones(5, DIM)
    found = made.update(torch.zeros(5, DIM), signal, Members(ids, torch.tensor([0, 0, 1, 2, 0]), torch.ones(5)))[:, 0]
    trained = [rho[0], rho[1], rho[3]]
    wanted = [rho[0], (rho[0] + rho[1]) / 2, rho[3], torch.stack(trained).mean(), (rho[0] + rho[1]) / 2]
    torch.testing.assert_close(found, 1 - torch.sigmoid(torch.stack(wanted)))


@pytest.mark.parametrize("count", [1, 2, RING, RING + 1, 4 * RING + 2])
def test_the_attention_ring_reads_like_attention_over_the_latest_signals(count: int) -> None:
    made = operator("attention")
    assert isinstance(made, Attention)
    signals, asked = torch.randn(count, DIM), torch.randn(1, DIM)
    memory, who = after(made, signals)
    attention = torch.nn.MultiheadAttention(DIM, made.heads, bias=False, batch_first=True)
    with torch.no_grad():
        attention.in_proj_weight.copy_(torch.cat((made.ask.weight, made.key.weight, made.value.weight)))
        attention.out_proj.weight.copy_(made.out.weight)
        latest = signals[-RING:].unsqueeze(0)
        wanted, _ = attention(asked.unsqueeze(0), latest, latest)
    torch.testing.assert_close(made.read(memory, asked, who), wanted[0], atol=1e-5, rtol=1e-5)


def test_the_gru_is_the_textbook_cell() -> None:
    made = operator("gru")
    memory, signal = torch.randn(2, DIM), torch.randn(2, DIM)
    weights = dict(made.named_parameters())

    def part(kind: str, x: Tensor, i: int) -> Tensor:
        rows = slice(i * DIM, (i + 1) * DIM)
        return x @ weights[f"cell.weight_{kind}"][rows].T + weights[f"cell.bias_{kind}"][rows]

    reset = torch.sigmoid(part("ih", signal, 0) + part("hh", memory, 0))
    keep = torch.sigmoid(part("ih", signal, 1) + part("hh", memory, 1))
    new = torch.tanh(part("ih", signal, 2) + reset * part("hh", memory, 2))
    torch.testing.assert_close(made.update(memory, signal, members(0, 1)), (1 - keep) * new + keep * memory)


@pytest.mark.parametrize(("kind", "gate"), [("adaptive", None), ("constant", 0.5)])
def test_the_gate_is_learned_or_one_half(kind: str, gate: float | None) -> None:
    torch.manual_seed(0)
    made = Gate(DIM, kind)
    base, memory = torch.randn(4, DIM), torch.randn(4, DIM)
    found = made(base, memory, torch.tensor([0, 1, 2, 9]))
    assert torch.equal(found[0], torch.zeros(DIM))
    if gate is not None:
        assert torch.equal(found[1:], torch.full((3, DIM), gate))
        assert not list(made.parameters())
    else:
        assert made.weight is not None
        wanted = torch.sigmoid(torch.cat((base, memory), 1) @ made.weight.weight.T + made.weight.bias)
        torch.testing.assert_close(found[1:], wanted[1:])


@pytest.mark.parametrize(("decay", "size"), [("shared", 1), ("dimension", DIM), ("entity", ENTITIES)])
def test_a_decay_is_shared_or_one_per_dimension_or_one_per_entity(decay: str, size: int) -> None:
    assert Ema(DIM, decay, ENTITIES, CODES).rho.shape == (size,)

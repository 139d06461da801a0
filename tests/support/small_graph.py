"""Small models with weights that matter, small logs, and what it means for two answers or states to be the same."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from adatkg_core.datasets import Dataset, synthesize
from adatkg_core.engine import Engine, Snapshot
from adatkg_core.events import Fact, Query, Ranking, Refusal
from adatkg_core.model import AdaTKG, Ema
from adatkg_core.settings import Config, config_from_dict
from adatkg_core.text.encoder import HashEncoder

ENCODER = HashEncoder(24)
TOLERANCE = 1e-5  # what the order of a sum may change; candidates closer than this may swap places
EVERYTHING = 10_000  # as k: the whole ranking

# Every kind of memory, gate, prior, entity and recall, each at least once away from the default.
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "memoryless": {"model.memory": "none"},
    "decay-per-entity": {"model.decay": "entity"},
    "decay-per-dimension": {"model.decay": "dimension", "recall.enabled": False},
    "gru": {"model.memory": "gru"},
    "attention": {"model.memory": "attention", "model.ring": 2},
    "constant-gate": {"model.gate": "constant", "model.prior": False},
    "learned-entities": {"model.entity": "learned"},
    "model-alone": {"recall.enabled": False},
    "recall-alone": {"model.enabled": False},
    "as-published": {"model.scaled": False, "model.token": "quarters", "model.decoder": "rectified"},
    "no-evidence": {"recall.evidence": False},
    "groups": {"model.names": "brackets"},
}
PER_ENTITY = ("decay-per-entity", "learned-entities")
ENTITIES = 12  # for which those have weights
_SMALL: dict[str, Any] = {
    "model.dim": 16,
    "model.layers": 1,
    "model.heads": 2,
    "model.encoder": "hash:24",
    "model.chain_length": 3,
    "model.chain_window": 5,
    "model.chain_capacity": 5,
    "model.codes": 4,
    "model.filters": 4,
    "recall.pair_slots": 16,
    "recall.relation_slots": 16,
    "recall.partner_slots": 16,
    "recall.fact_slots": 16,
    "recall.kin_slots": 16,
    "recall.hops": 4,
    "recall.proposals": 6,
    "recall.neighbours": 3,
    "recall.cold_below": 6,
    "recall.heads": 2,
    "recall.hidden": 8,
    "recall.relation_dim": 8,
}


@dataclass(frozen=True)
class Tick:
    """Time passes."""

    t: int


Event = Fact | Query | Tick


def small_config(changes: Mapping[str, Any] = {}) -> Config:
    """A configuration for tests with some dotted settings changed."""
    values: dict[str, dict[str, Any]] = {}
    for dotted, value in (_SMALL | dict(changes)).items():
        section, key = dotted.split(".")
        values.setdefault(section, {})[key] = value
    return config_from_dict(values, where="test")


@functools.cache
def small_graph() -> Dataset:
    """A graph in which entities emerge, whose history fills rings and tables."""
    return synthesize(40, 5, 16, 12, seed=3)


def small_model(config: Config, relations: int = 5, entities: int = ENTITIES, seed: int = 0) -> AdaTKG:
    """A model in evaluation mode in which no weight and no buffer is trivial."""
    names = list(small_graph().relations[:relations])
    model = AdaTKG(config, ENCODER.encode(names), entities)
    randomize(model, seed)
    return model.eval()


@torch.no_grad()
def randomize(model: AdaTKG, seed: int) -> None:
    """Weights and buffers that differ from their start: some of these are zero and would make a test blind."""
    source = torch.Generator().manual_seed(seed)
    for name, tensor in sorted(model.named_parameters()):
        spread = 0.5 if tensor.dim() < 2 else tensor[0].numel() ** -0.5
        tensor.copy_(torch.randn(tensor.shape, generator=source) * spread + ("norm" in name and "weight" in name))
    for part in model.modules():
        if isinstance(part, nn.BatchNorm1d):
            assert part.running_mean is not None and part.running_var is not None
            part.running_mean.copy_(torch.randn(part.running_mean.shape, generator=source) * 0.3)
            part.running_var.copy_(torch.rand(part.running_var.shape, generator=source) + 0.5)
    if model.codebook is not None:
        model.codebook.codes.copy_(torch.randn(model.codebook.codes.shape, generator=source))
        model.codebook.size.fill_(1)
        model.codebook.ready.fill_(True)
    if isinstance(model.memory, Ema):
        model.memory.trained.copy_(torch.rand(model.memory.trained.shape, generator=source) < 0.5)
        model.memory.cluster_rho.copy_(torch.randn(model.memory.cluster_rho.shape, generator=source))


@functools.cache
def shared_model(name: str) -> AdaTKG:
    """The model of one of CONFIGURATIONS; nobody may change it."""
    return small_model(small_config(CONFIGURATIONS[name]))


def fresh_engine(name: str = "default", **options: Any) -> Engine:
    """An engine without a past; where a model has weights for single entities, these are in its catalog."""
    if name in PER_ENTITY:
        options.setdefault("entities", small_graph().entities[:ENTITIES])
    return Engine(shared_model(name), small_graph().relations, ENCODER, **options)


def named(facts: Iterable[Sequence[int]]) -> list[Fact]:
    """Rows of the small graph as facts by name."""
    graph = small_graph()
    return [Fact(graph.entities[s], graph.relations[r], graph.entities[o], int(t)) for s, r, o, t in facts]


@functools.cache
def _past(name: str) -> Snapshot:
    engine = fresh_engine(name)
    engine.observe(named(small_graph().facts.tolist()))
    return engine.snapshot()


def engine_with_past(name: str = "default", **options: Any) -> Engine:
    """An engine that has seen the small graph, whose last facts are pending."""
    engine = fresh_engine(name, **options)
    engine.restore(_past(name))
    return engine


def play(engine: Engine, log: Sequence[Event], cuts: Iterable[int] = ()) -> list[Ranking | Refusal]:
    """Give the log to an engine, neighbours of one kind together except at the cuts; the answers in order."""
    answers: list[Ranking | Refusal] = []
    cuts = set(cuts)
    start = 0
    for end in range(1, len(log) + 1):
        if end < len(log) and end not in cuts and type(log[end]) is type(log[start]):
            continue
        part = log[start:end]
        answers += engine.predict([event for event in part if isinstance(event, Query)])
        engine.observe([event for event in part if isinstance(event, Fact)])
        for event in part:
            if isinstance(event, Tick):
                engine.advance(event.t)
        start = end
    return answers


def assert_same_answers(found: Sequence[Ranking | Refusal], wanted: Sequence[Ranking | Refusal]) -> None:
    """Equal up to TOLERANCE in the scores and to the places of candidates closer than that."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        if isinstance(one, Refusal) or isinstance(other, Refusal):
            assert isinstance(one, Refusal) and isinstance(other, Refusal)
            assert one.reason == other.reason
        else:
            _assert_same_prediction(one, other)


def _assert_same_prediction(one: Ranking, other: Ranking) -> None:
    assert (one.as_of, one.late, one.cold_start) == (other.as_of, other.late, other.cold_start)
    assert one.interactions == other.interactions
    assert abs(one.gate - other.gate) <= TOLERANCE
    assert len(one.top) == len(other.top)
    scores = {answer.entity: answer.score for answer in other.top}
    for mine, theirs in zip(one.top, other.top, strict=True):
        assert abs(mine.score - theirs.score) <= TOLERANCE
        assert abs(mine.probability - theirs.probability) <= TOLERANCE
        # Whoever swapped places, or stands only in one of two cut lists, is as close as that to its neighbour.
        assert abs(scores.get(mine.entity, other.top[-1].score) - mine.score) <= 2 * TOLERANCE
    assert one.ranks.keys() == other.ranks.keys()
    for name, rank in one.ranks.items():
        passed = _passed(rank, other.ranks[name], name, scores)
        assert max(passed, default=0.0) - min(passed, default=0.0) <= 4 * TOLERANCE, f"rank of {name}"


def _passed(rank: float, other: float, name: str, scores: Mapping[str, float]) -> list[float]:
    """The scores of the candidates between two ranks of a name, with its own if it is a candidate itself."""
    low, high = min(rank, other), max(rank, other)
    others = sorted((score for entity, score in scores.items() if entity != name), reverse=True)
    between = others[int(low) - 1 : math.ceil(high) - 1] if low < high else []
    return [*between, scores[name]] if name in scores else between


def assert_same_snapshot(found: Snapshot, wanted: Snapshot) -> None:
    """Bitwise equal, tensor by tensor."""
    assert found.meta == wanted.meta
    assert_same_bits(found.tensors, wanted.tensors)


def assert_same_bits(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """The same names, types, shapes and bytes."""
    assert found.keys() == wanted.keys()
    for name, tensor in found.items():
        assert tensor.dtype == wanted[name].dtype and tensor.shape == wanted[name].shape, name
        assert bits(tensor) == bits(wanted[name]), f"{name} differs"


def bits(tensor: Tensor) -> bytes:
    """The bytes of a tensor, in which 0 and -0 differ and NaN is equal to itself."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()

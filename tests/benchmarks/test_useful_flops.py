"""What counts as useful arithmetic, against the products that the model really does."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from adatkg_core.engine import commit_facts
from adatkg_core.model import AdaTKG
from adatkg_core.settings import Config, ModelConfig, RecallConfig
from adatkg_core.state import GraphState, select_chains
from benchmarks.useful_flops import of_chains, of_entities, of_queries

MODEL = ModelConfig(dim=64, chain_length=4, chain_capacity=8, heads=4, filters=6, codes=5)
TEXT, RELATIONS, ENTITIES = 48, 3, 20


class Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts what products and convolutions do while it lasts; torch's own counter would load a compiler."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out, name = func(*args, **(kwargs or {})), func.overloadpacket.__name__
        if name in ("mm", "bmm", "addmm"):
            left = args[1] if name == "addmm" else args[0]
            self.flops += 2 * out.numel() * left.shape[-1]
        elif name == "convolution":
            self.flops += 2 * out.numel() * args[1][0].numel()
        return out


def scene() -> tuple[AdaTKG, GraphState]:
    """Entities 0 to 3 with four facts each: no chain is short, and none has a relation chosen for it."""
    torch.manual_seed(0)
    config = Config(MODEL, RecallConfig(enabled=False))
    model = AdaTKG(config, torch.randn(RELATIONS, TEXT), ENTITIES).eval()
    state = GraphState(config, TEXT, RELATIONS, torch.device("cpu"))
    state.reserve(ENTITIES)
    state.entities = ENTITIES
    facts = [(s, i % RELATIONS, 4 + 4 * s + i) for s in range(4) for i in range(4)]
    commit_facts(model, state, torch.tensor(facts), 1)
    return model, state


def counted(model: AdaTKG, state: GraphState, asked: torch.Tensor, relation: torch.Tensor) -> tuple[int, int, int]:
    """Products done for the view of all entities, for the chains, and for the rest of scoring."""
    with torch.no_grad():
        with Products() as entities:
            view = model.view(state, torch.arange(ENTITIES))
        with Products() as chains:
            encoding, _ = model.encode_chains(state, asked, relation, 2, view.relations)
        with Products() as rest:
            model.score(state, view, asked, relation, 2, encoding=encoding)
    return entities.flops, chains.flops, rest.flops


def test_full_chains_cost_what_counts_and_little_else() -> None:
    model, state = scene()
    asked, relation = torch.arange(4), torch.tensor([0, 1, 2, 0])
    chains = select_chains(state, asked, relation, 2, model.similarity, MODEL.chain_window, MODEL.chain_length)
    assert chains.mask.shape == (4, 4) and bool(chains.mask.all())
    _, encoding, scoring = counted(model, state, asked, relation)
    assert of_queries(MODEL, 4, ENTITIES) == scoring
    assert of_chains(MODEL, TEXT, chains) <= encoding <= 1.02 * of_chains(MODEL, TEXT, chains)


def test_the_view_costs_no_less_than_what_counts_of_it() -> None:
    model, state = scene()
    remembering = int((state.tensors["updates"][:ENTITIES] > 0).sum())
    done, _, _ = counted(model, state, torch.arange(2), torch.arange(2))
    clusters = 2 * MODEL.dim * MODEL.codes * ENTITIES  # only training assigns them here
    assert done >= of_entities(MODEL, TEXT, ENTITIES, remembering) - clusters

"""Configurations: all of ours load, a wrong one is named, and every ablation of the paper is one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from adatkg_core.datasets import aligned
from adatkg_core.engine import Engine
from adatkg_core.errors import InputError
from adatkg_core.evaluation import measure, summarize
from adatkg_core.model import AdaTKG, Ema
from adatkg_core.settings import (
    Config,
    config_from_dict,
    environment_overrides,
    load_config,
    parse_value,
    shipped_configs,
)
from adatkg_core.state import GraphState
from tests.support.small_graph import ENCODER, small_config, small_graph, small_model


def written(tmp_path: Path, text: str) -> str:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    return str(file)


# -- files --------------------------------------------------------------------------------------------------------


def test_the_configurations_of_the_paper_and_ours_are_shipped() -> None:
    papers = {f"paper-{name}" for name in ("icews14", "icews18", "icews05-15", "gdelt")}
    assert set(shipped_configs()) >= papers | {"full", "live", "recall", "tiny"}


@pytest.mark.parametrize("name", shipped_configs())
def test_a_shipped_configuration_loads_and_survives_its_plain_form(name: str) -> None:
    config = load_config(name)
    assert config_from_dict(config.as_dict(), where="again") == config
    if name.startswith("paper"):
        assert not config.recall.enabled
        assert (config.train.protocol, config.model.timing, config.model.memory) == ("snapshot", "before", "ema")


def test_full_is_live_with_the_model_and_recall_keeps_no_wider_evidence() -> None:
    read_by_the_model = {"model.memory": "ema", "model.chain_capacity": 64}
    assert load_config("full") == load_config("live", {"model.enabled": True, "model.dropout": 0.1} | read_by_the_model)
    assert not load_config("live").model.enabled and load_config("live").recall.evidence
    assert not load_config("recall").model.enabled and not load_config("recall").recall.evidence


@pytest.mark.parametrize("name", ["live", "recall"])
def test_without_the_papers_model_the_state_holds_nothing_for_it_and_parameters_begin_as_they_did(name: str) -> None:
    now, then = load_config(name), load_config(name, {"model.memory": "ema", "model.chain_capacity": 64})
    state = GraphState(now, 8, 3, torch.device("cpu"))
    assert "memory" not in state.tensors and state.tensors["ring_time"].shape[1] >= 30  # facts that are shown
    models = []
    for config in (now, then):
        torch.manual_seed(4)
        models.append((AdaTKG(config, torch.ones(3, 8), 0).state_dict(), torch.rand(1)))
    (parameters, drawn), (before, drawn_before) = models
    assert before.keys() - parameters.keys() == {key for key in before if key.startswith("memory")}
    assert all(torch.equal(tensor, before[key]) for key, tensor in parameters.items())
    assert torch.equal(drawn, drawn_before)  # whatever is drawn next is the same too


@pytest.mark.parametrize(
    ("name", "dim", "layers", "length", "codes"),
    [
        ("paper-icews14", 768, 3, 10, 100),
        ("paper-icews18", 1024, 3, 30, 100),
        ("paper-icews05-15", 1024, 3, 30, 50),
        ("paper-gdelt", 1024, 2, 30, 30),
    ],
)
def test_the_papers_hyper_parameters_are_those_of_its_table(
    name: str, dim: int, layers: int, length: int, codes: int
) -> None:
    model = load_config(name).model
    assert (model.dim, model.layers, model.chain_length, model.codes) == (dim, layers, length, codes)


def test_an_empty_file_is_the_default_configuration(tmp_path: Path) -> None:
    assert load_config(written(tmp_path, "")) == Config()


def test_overrides_win_over_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "[train]\nepochs = 7\nseed = 5\n")
    config = load_config(file, {"train.epochs": 2, "model.memory": "gru"})
    assert (config.train.epochs, config.train.seed, config.model.memory) == (2, 5, "gru")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[modell]\ndim = 8", "modell"),
        ("[model]\ndimm = 8", "`dimm`"),
        ("[model]\ndim = 'large'", "dim = 'large'"),
        ("[model]\ndim = 8.5", "dim = 8.5"),
        ("[model]\ndim = true", "dim = True"),
        ("[model]\nprior = 1", "prior = 1"),
        ("[model]\nmemory = 'lstm'", "memory = 'lstm'"),
        ("[model]\nmemory = ['ema']", "memory = ['ema']"),
        ("[train]\nselect = 'all'", "select = 'all'"),
        ("[train]\nselect = 5", "select = 5"),
        ("[train]\nselect = [1]", "select = [1]"),
        ("[train]\nlr = 'fast'", "lr = 'fast'"),
        ("model = 3", "[model]"),
        ("train = 3", "[train]"),
        ("[model\ndim = 8", "not TOML"),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path: Path, text: str, names: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        load_config(file, {"train.seed": 3})
    assert names in str(caught.value) and "mine.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "value", "names"),
    [
        ("model.dim", 30, "model.dim"),
        ("model.dim", 0, "model.dim"),
        ("model.heads", 3, "model.heads"),
        ("model.dropout", 1.0, "model.dropout"),
        ("model.dropout", float("nan"), "model.dropout"),
        ("model.layers", 0, "model.layers"),
        ("model.codes", 0, "codes"),
        ("model.ring", 0, "ring"),
        ("model.kernel", 2, "model.kernel"),
        ("model.kernel", -1, "model.kernel"),
        ("model.chain_capacity", 1, "model.chain_capacity"),
        ("model.prototype_decay", 0.0, "model.prototype_decay"),
        ("recall.fast", 0.0, "recall.fast"),
        ("recall.pair_slots", 24, "recall.pair_slots"),
        ("recall.neighbours", 0, "recall.neighbours"),
        ("recall.hidden", 0, "hidden"),
        ("train.epochs", 0, "train.epochs"),
        ("train.batch", 1, "train.batch"),
        ("train.lr", 0.0, "train.lr"),
        ("train.clip", float("nan"), "train.lr, recall_lr and clip"),
        ("train.patience", -1, "train.patience"),
        ("train.burn_in", 1.0, "train.burn_in"),
        ("train.combine_from", 1.0, "train.combine_from"),
        ("train.select", [], "train.select"),
        ("train.select", ["everything"], "train.select"),
    ],
)
def test_a_value_out_of_range_is_named(setting: str, value: Any, names: str) -> None:
    with pytest.raises(InputError) as caught:
        load_config("tiny", {setting: value})
    assert names in str(caught.value)


def test_a_configuration_without_model_and_recall_is_refused() -> None:
    with pytest.raises(InputError, match=r"recall\.enabled"):
        load_config("tiny", {"model.enabled": False, "recall.enabled": False})


def test_a_file_that_is_not_there_is_refused_with_the_names_that_are() -> None:
    with pytest.raises(InputError, match=r"nothing\.toml.*live.*tiny"):
        load_config("nothing.toml")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"mine\.toml"):
        load_config(str(tmp_path / "mine.toml"))


def test_variables_set_what_they_name_and_others_are_left_alone() -> None:
    variables = {
        "ADATKG_TRAIN_EPOCHS": "3",
        "ADATKG_MODEL_MEMORY": "gru",
        "ADATKG_RECALL_ENABLED": "false",
        "ADATKG_TRAIN_SELECT": '["all", "unknown"]',
        "ADATKG_TRAIN_LR": "1e-4",
        "ADATKG_LOG": "debug",
        "ADATKG_DATA": "/somewhere",
        "EPOCHS": "9",
    }
    found = environment_overrides(variables)
    assert found == {
        "train.epochs": 3,
        "model.memory": "gru",
        "recall.enabled": False,
        "train.select": ["all", "unknown"],
        "train.lr": 1e-4,
    }
    config = load_config("tiny", found)
    assert config.train.select == ("all", "unknown") and not config.recall.enabled


def test_a_wrong_variable_is_named() -> None:
    with pytest.raises(InputError, match="epochs = 'many'"):
        load_config("tiny", environment_overrides({"ADATKG_TRAIN_EPOCHS": "many"}))


@pytest.mark.parametrize(
    ("text", "value"), [("3", 3), ("0.5", 0.5), ("true", True), ("gru", "gru"), ("hash:64", "hash:64"), ('"3"', "3")]
)
def test_a_value_is_read_as_toml_and_else_as_a_string(text: str, value: Any) -> None:
    found = parse_value(text)
    assert found == value and type(found) is type(value)


# -- the paper's tables -------------------------------------------------------------------------------------------

ABLATIONS: dict[str, dict[str, Any]] = {
    "static, transductive": {"model.memory": "none", "model.prior": False},
    "static, transductive, learned": {"model.memory": "none", "model.prior": False, "model.entity": "learned"},
    "adaptive, transductive": {"model.prior": False},
    "adaptive, transductive, learned": {"model.prior": False, "model.entity": "learned"},
    "static, inductive (memoryless)": {"model.memory": "none"},
    "adaptive, inductive": {},
    "constant gate": {"model.gate": "constant"},
    "GRU": {"model.memory": "gru"},
    "GRU, constant gate": {"model.memory": "gru", "model.gate": "constant"},
    "cross-attention": {"model.memory": "attention"},
    "cross-attention, constant gate": {"model.memory": "attention", "model.gate": "constant"},
    "decay per entity": {"model.decay": "entity"},
    "decay per dimension": {"model.decay": "dimension"},
    "after": {"model.timing": "after"},
    "before, GRU": {"model.memory": "gru", "model.timing": "before"},
    "after, cross-attention": {"model.memory": "attention", "model.timing": "after"},
}


def measured(changes: dict[str, Any], protocol: str) -> tuple[dict[str, Any], list[float]]:
    config = small_config({"recall.enabled": False, "train.protocol": protocol, **changes})
    graph = small_graph()
    graph = aligned(graph, graph.entities, graph.relations)
    engine = Engine(small_model(config, entities=graph.n_entities), graph.relations, ENCODER, entities=graph.entities)
    asked = list(measure(engine, graph, "valid", config.train.protocol))
    ranks = torch.cat([one.ranks.realistic for one in asked]).tolist()
    return summarize(asked)[0], ranks


@pytest.mark.parametrize("row", ABLATIONS)
def test_every_row_of_the_ablation_tables_is_a_configuration_that_scores(row: str) -> None:
    slices, ranks = measured(ABLATIONS[row], "snapshot")
    assert slices["all"]["count"] == len(ranks) > 0
    assert 0 < slices["all"]["mrr"] <= 1
    if row != "adaptive, inductive":
        assert ranks != measured({}, "snapshot")[1]  # the setting does something


def test_the_variants_of_the_decay_have_the_parameters_that_they_say() -> None:
    sizes = {"shared": 1, "entity": 12, "dimension": 16}
    for decay, size in sizes.items():
        memory = small_model(small_config({"model.decay": decay})).memory
        assert isinstance(memory, Ema) and memory.rho.numel() == size


def test_timing_is_of_no_account_in_the_streaming_protocol() -> None:
    assert measured({"model.timing": "after"}, "streaming")[1] == measured({}, "streaming")[1]

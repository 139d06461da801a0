"""A bundle comes back bit for bit, or not at all and with one line that says why."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.events import Query
from adatkg_core.storage import Bundle, load_bundle, read_artifact, resolve_device, save_bundle, write_artifact
from adatkg_core.text import NameStructure
from tests.support.small_graph import (
    CONFIGURATIONS,
    ENCODER,
    EVERYTHING,
    assert_same_bits,
    named,
    shared_model,
    small_config,
    small_graph,
    small_model,
)

GRAPH = small_graph()


def bundle_of(name: str = "default") -> Bundle:
    metrics = {"valid": {"slices": {"all": {"mrr": 0.25}}}, "epoch": 3}
    return Bundle(shared_model(name), GRAPH.relations, GRAPH.entities[:12], "graph-1", metrics)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_bundle(bundle_of(), str(tmp_path / "bundle"))
    return tmp_path / "bundle"


def answers(bundle: Bundle) -> list[Any]:
    engine = bundle.engine(ENCODER)
    engine.observe(named(GRAPH.facts.tolist()))
    time = int(GRAPH.facts[-1, 3]) + 1
    queries = [Query(relation, time, s=GRAPH.entities[i], k=EVERYTHING) for i, relation in enumerate(GRAPH.relations)]
    return engine.predict(queries)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_bundle_that_was_written_and_read_gives_bitwise_the_same_scores(tmp_path: Path, name: str) -> None:
    bundle = bundle_of(name)
    save_bundle(bundle, str(tmp_path / "bundle"))
    again = load_bundle(str(tmp_path / "bundle"))
    assert_same_bits(again.model.state_dict(), bundle.model.state_dict())
    assert (again.relations, again.entities, again.version) == (bundle.relations, bundle.entities, bundle.version)
    assert again.metrics == bundle.metrics
    assert again.model.config == bundle.model.config
    assert answers(again) == answers(bundle)  # floats and all, exactly


@pytest.mark.slow
def test_reading_bundles_loads_no_compiler(tmp_path: Path) -> None:
    for name in CONFIGURATIONS:
        save_bundle(bundle_of(name), str(tmp_path / name))
    code = "import sys; from adatkg_core.storage import load_bundle\n"
    code += "compilers = {'torch._dynamo', 'sympy'}\n"
    code += "print([name for name in sys.argv[1:] if load_bundle(name) and compilers & {*sys.modules}])"
    command = [sys.executable, "-c", code, *(str(tmp_path / name) for name in CONFIGURATIONS)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_bundle_names_its_encoder_for_those_who_only_read_its_description(saved: Path) -> None:
    assert read_artifact(saved, "bundle")[1]["encoder"] == "hash:24"
    assert load_bundle(str(saved)).engine().encoder.name == "hash:24"


def test_a_bundle_keeps_how_names_tell_of_groups(tmp_path: Path) -> None:
    model = small_model(small_config({"model.names": "slash"}))
    save_bundle(Bundle(model, GRAPH.relations, (), "v"), str(tmp_path / "bundle"))
    assert load_bundle(str(tmp_path / "bundle")).names == NameStructure("slash")


def test_in_a_bundle_that_does_not_say_so_names_tell_of_no_groups(saved: Path) -> None:
    rewritten(saved, lambda tensors, meta: meta["config"]["model"].pop("names"))
    assert load_bundle(str(saved)).names == NameStructure("none")


# -- what is wrong with it ----------------------------------------------------------------------------------------


def rewritten(saved: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """The bundle with other content and true checksums, as another program might have written it."""
    tensors, meta = read_artifact(saved, "bundle")
    change(tensors, meta)
    shutil.rmtree(saved)
    write_artifact(saved, "bundle", tensors, meta)


def truncate(saved: Path) -> None:
    tensors = saved / "tensors.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-10])


def flip(saved: Path) -> None:
    tensors = saved / "tensors.safetensors"
    data = bytearray(tensors.read_bytes())
    data[-1] ^= 1
    tensors.write_bytes(bytes(data))


def empty(saved: Path) -> None:
    (saved / "tensors.safetensors").write_bytes(b"")


def no_manifest(saved: Path) -> None:
    (saved / "manifest.json").unlink()


def foreign(saved: Path) -> None:
    shutil.rmtree(saved)
    saved.mkdir()
    (saved / "pytorch_model.bin").write_bytes(b"something else")


def another_kind(saved: Path) -> None:
    shutil.rmtree(saved)
    write_artifact(saved, "snapshot", {"x": torch.zeros(2)}, {})


def not_safetensors(saved: Path) -> None:
    data = b"these are no tensors"
    (saved / "tensors.safetensors").write_bytes(data)
    manifest = json.loads((saved / "manifest.json").read_text())
    manifest["files"]["tensors"] |= {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (saved / "manifest.json").write_text(json.dumps(manifest))


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "truncated": (truncate, "damaged"),
    "a flipped bit": (flip, "checksum"),
    "empty": (empty, "damaged"),
    "no manifest": (no_manifest, "manifest.json is missing"),
    "missing file": (lambda saved: (saved / "meta.json").unlink(), "meta.json is missing"),
    "nothing there": (lambda saved: shutil.rmtree(saved), "no bundle is there"),
    "foreign": (foreign, "damaged"),
    "another kind": (another_kind, "snapshot"),
    "no tensors": (not_safetensors, "safetensors"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_bundle_is_one_line_that_names_it(saved: Path, damage: str) -> None:
    spoil, says = DAMAGES[damage]
    spoil(saved)
    with pytest.raises(InputError) as caught:
        load_bundle(str(saved))
    assert says in str(caught.value) and str(saved) in str(caught.value)
    assert "\n" not in str(caught.value)


def set_meta(key: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda tensors, meta: meta.update({key: value})


def drop_meta(key: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda tensors, meta: meta.pop(key)


def set_config(section: str, key: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda tensors, meta: meta["config"][section].update({key: value})


def set_tensor(key: str, value: torch.Tensor) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda tensors, meta: tensors.update({key: value})


def one_nan(tensors: dict[str, Any], meta: dict[str, Any]) -> None:
    tensors["project.weight"][0, 0] = float("nan")


FORGERIES: dict[str, tuple[Callable[[dict[str, Any], dict[str, Any]], None], str]] = {
    "NaN": (one_nan, "project.weight"),
    "infinite": (set_tensor("trust.bias", torch.full((1,), float("inf"))), "trust.bias"),
    "an unknown key": (set_config("model", "colour", "red"), "`colour`"),
    "an unknown section": (lambda tensors, meta: meta["config"].update(more={}), "[more]"),
    "a value of the wrong type": (set_config("model", "dim", "16"), "dim = '16'"),
    "a config that is no table": (set_meta("config", [1, 2]), "config"),
    "no config": (drop_meta("config"), "config"),
    "no relations": (drop_meta("relations"), "relations"),
    "relations that are no list": (set_meta("relations", 5), "lacks"),
    "too few relations": (set_meta("relations", ["Consult"]), "1 relation names"),
    "no version": (drop_meta("version"), "version"),
    "a count that is no number": (set_meta("per_entity", "many"), "lacks"),
    "a negative count": (set_meta("per_entity", -1), "per_entity"),
    "a missing tensor": (lambda tensors, meta: tensors.pop("project.bias"), "project.bias is missing"),
    "a strange tensor": (set_tensor("extra", torch.zeros(1)), "extra is unknown"),
    "a wrong shape": (set_tensor("project.bias", torch.zeros(5)), "project.bias has shape (5,)"),
    "another size in the config": (set_config("model", "dim", 32), "shape"),
    "no text of the relations": (lambda tensors, meta: tensors.pop("relation_text"), "relation_text"),
    "a flat text of the relations": (set_tensor("relation_text", torch.zeros(5)), "relation names"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_bundle_that_does_not_fit_itself_is_refused_in_one_line(saved: Path, forgery: str) -> None:
    change, says = FORGERIES[forgery]
    rewritten(saved, change)
    with pytest.raises(InputError) as caught:
        load_bundle(str(saved))
    assert says in str(caught.value) and str(saved) in str(caught.value)
    assert "\n" not in str(caught.value)


# -- writing ------------------------------------------------------------------------------------------------------


def test_a_model_with_nan_is_not_written_at_all(tmp_path: Path) -> None:
    model = small_model(small_config())
    with torch.no_grad():
        model.decoder.out.weight[0, 0] = float("nan")
    bad = Bundle(model, GRAPH.relations, (), "bad")
    with pytest.raises(AdatkgError, match=r"decoder\.out\.weight"):
        save_bundle(bad, str(tmp_path / "bundle"))
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_is_replaced_only_on_demand_and_never_by_one_that_is_refused(saved: Path) -> None:
    with pytest.raises(InputError, match="already"):
        save_bundle(bundle_of(), str(saved))
    model = small_model(small_config())
    with torch.no_grad():
        model.project.bias[0] = float("inf")
    with pytest.raises(AdatkgError):
        save_bundle(Bundle(model, GRAPH.relations, (), "bad"), str(saved), replace=True)
    assert load_bundle(str(saved)).version == "graph-1"
    save_bundle(Bundle(shared_model("gru"), GRAPH.relations, (), "graph-2"), str(saved), replace=True)
    assert load_bundle(str(saved)).version == "graph-2"
    assert [path.name for path in saved.parent.iterdir()] == ["bundle"]


def test_an_unusable_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device("auto") == "cpu"
    assert resolve_device("cpu") == "cpu"
    for name in ("cuda", "cuda:1", "toaster"):
        with pytest.raises(InputError, match=name):
            resolve_device(name)

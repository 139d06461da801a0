"""A bundle: everything that makes predictions apart from a graph's own past, whole and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from adatkg_core.clock import Clock, clock_from_dict
from adatkg_core.constants import MAX_JUMP, LatePolicy
from adatkg_core.engine import Engine, Snapshot
from adatkg_core.errors import InputError
from adatkg_core.model import AdaTKG
from adatkg_core.settings import Config, config_from_dict
from adatkg_core.storage.artifact import read_artifact, require_finite, write_artifact
from adatkg_core.storage.legacy import with_former_settings
from adatkg_core.storage.place import one_line
from adatkg_core.text import NameStructure, TextEncoder, choose_structure, load_encoder

KIND = "bundle"


@dataclass(frozen=True)
class Bundle:
    """A trained model with the names it knows and how it was measured."""

    model: AdaTKG
    relations: tuple[str, ...]
    entities: tuple[str, ...]
    version: str
    metrics: dict[str, Any] = field(default_factory=dict)
    clock: Clock | None = None  # of the graph's ticks, where it is known
    graph: str | None = None  # that it answers for; None for a bare bundle

    @property
    def names(self) -> NameStructure:
        """How the names of its graph tell of groups, as training found or was told; none in bundles of before."""
        return choose_structure(self.model.config.model.names, ())

    def engine(
        self,
        encoder: TextEncoder | None = None,
        entities: Sequence[str] = (),
        *,
        late: LatePolicy = "apply",
        max_jump: int = MAX_JUMP,
        snapshot: Snapshot | None = None,
    ) -> Engine:
        """An engine on the model's device, from a snapshot or fresh; a fresh one also has `entities` as candidates."""
        return Engine(
            self.model,
            self.relations,
            encoder or load_encoder(self.model.config.model.encoder),
            entities=(*self.entities, *entities),
            late=late,
            max_jump=max_jump,
            snapshot=snapshot,
        )


def save_bundle(bundle: Bundle, url: str, *, replace: bool = False) -> None:
    """Write a bundle so that a reader sees all of it or nothing; one with NaN is refused."""
    tensors = _parameters(bundle.model)
    require_finite(tensors, f"bundle {url}")
    meta = {
        "version": bundle.version,
        "config": bundle.model.config.as_dict(),
        "encoder": bundle.model.config.model.encoder,
        "relations": list(bundle.relations),
        "entities": list(bundle.entities),
        "per_entity": bundle.model.entities,
        "metrics": bundle.metrics,
        "clock": bundle.clock.as_dict() if bundle.clock else None,
        "graph": bundle.graph,
    }
    write_artifact(url, KIND, tensors, meta, replace=replace)


def load_bundle(url: str, device: str = "cpu") -> Bundle:
    """Read and check a bundle; whatever is wrong with it is one line that says so."""
    tensors, meta = read_artifact(url, KIND, device=device)
    require_finite(tensors, f"bundle {url}")
    try:
        config = config_from_dict(with_former_settings(meta["config"]), where=f"bundle {url}: config")
        relations, entities = tuple(meta["relations"]), tuple(meta["entities"])
        per_entity, version, metrics = int(meta["per_entity"]), str(meta["version"]), dict(meta["metrics"])
        clock = clock_from_dict(meta.get("clock"), where=f"bundle {url}: clock")
        graph = None if meta.get("graph") is None else str(meta["graph"])
        text = tensors["relation_text"]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"bundle {url}: its description lacks {error}; it was made by another program") from error
    for kind, names in (("relations", relations), ("entities", entities)):
        if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
            raise InputError(f"bundle {url}: its {kind} are no list of distinct names; train it again")
    if not 0 <= per_entity <= len(entities):
        raise InputError(f"bundle {url}: per_entity is {per_entity} for {len(entities)} entities; train it again")
    if text.dim() != 2 or text.shape[0] != len(relations):
        raise InputError(
            f"bundle {url}: {len(relations)} relation names for vectors {tuple(text.shape)}; train it again"
        )
    problem = _why_other_model(config, text, per_entity, tensors)
    if problem:
        raise InputError(f"bundle {url}: {problem}; its tensors are not those of its configuration, train it again")
    model = AdaTKG(config, text, per_entity).to(device)
    model.load_state_dict(tensors)
    return Bundle(model.eval(), relations, entities, version, metrics, clock, graph)


def _parameters(model: AdaTKG) -> dict[str, Tensor]:
    return {name: tensor.detach() for name, tensor in model.state_dict().items()}


def _why_other_model(config: Config, text: Tensor, per_entity: int, tensors: dict[str, Tensor]) -> str | None:
    """What tells the tensors from those of this configuration; found without memory for a model, which a
    configuration may make as large as it likes."""
    if config.model.layers > len(tensors):  # each has some
        return f"there are {len(tensors)} tensors for {config.model.layers} layers"
    try:
        with torch.device("meta"), _ShapesAlone():
            wanted = AdaTKG(config, text.to("meta"), per_entity).state_dict()
    except RuntimeError as error:
        return f"no model can be made of its configuration ({one_line(error):.200})"
    if strange := sorted(set(wanted) ^ set(tensors)):
        return f"tensor {strange[0]} is {'missing' if strange[0] in wanted else 'unknown'}"
    for name, tensor in wanted.items():
        if tensors[name].shape != tensor.shape:
            return f"tensor {name} has shape {tuple(tensors[name].shape)}, not {tuple(tensor.shape)}"
        if tensors[name].dtype != tensor.dtype:
            return f"tensor {name} is of {tensors[name].dtype}, not {tensor.dtype}"
    return None


class _ShapesAlone(TorchFunctionMode):
    """Numbers are neither drawn, scaled nor multiplied: without memory for them PyTorch would load its whole compiler
    to do it, which takes every process that reads a bundle longer than all the rest."""

    _KEEPS_SHAPE = (Tensor.clamp, Tensor.round, Tensor.mul, Tensor.__mul__, Tensor.div, Tensor.__truediv__)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is nn.init.normal_:
            return (*args, *(kwargs or {}).values())[0]
        if func is torch.randn:
            return torch.empty(*args, **(kwargs or {}))
        if func in self._KEEPS_SHAPE and not any(isinstance(other, Tensor) for other in args[1:]):
            return args[0]
        if func in (Tensor.matmul, Tensor.__matmul__):
            return args[0].new_empty((*args[0].shape[:-1], args[1].shape[-1]))
        if func is torch.cat:
            parts, dim = (*args, 0)[:2]
            sizes = [*parts[0].shape]
            sizes[dim] = sum(part.shape[dim] for part in parts)
            return parts[0].new_empty(sizes)
        return func(*args, **(kwargs or {}))


def resolve_device(name: str) -> str:
    """`auto` takes the GPU when there is one."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name.partition(":")[0] not in ("cpu", "cuda"):
        raise InputError(f"device {name}: unknown; take auto, cpu or cuda")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device {name}: no GPU is usable here; take cpu or auto")
    return name

"""What the absence of a setting means in a stored bundle: that it was made before there was a choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# A setting that comes later gets a line here, with what the model did before, not with its default.
BEFORE: dict[str, dict[str, Any]] = {
    "model": {"names": "none", "scaled": False, "token": "quarters", "decoder": "rectified", "max_entities": 0},
    "recall": {"evidence": False},
    "train": {"combine_from": 0.0},
}


def with_former_settings(config: Any) -> Any:
    """A stored configuration with what it leaves unsaid; what is no table is left for the reader to refuse."""
    if not isinstance(config, Mapping):
        return config
    filled = dict(config)
    for name, former in BEFORE.items():
        if isinstance(section := config.get(name, {}), Mapping):
            filled[name] = {**former, **section}
    return filled

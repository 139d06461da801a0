"""The state that a bundle trained from files starts from: what those files tell, taken in by the engine itself."""

from __future__ import annotations

from typing import Literal

import torch

from adatkg_core.datasets import Dataset, aligned
from adatkg_core.storage import Bundle, Saved
from adatkg_core.text import TextEncoder

Extent = Literal["valid", "all"]


def starting_state(bundle: Bundle, dataset: Dataset, encoder: TextEncoder, graph: str, extent: Extent) -> Saved:
    """The state after the facts up to the end of valid, which is all that training looked at, or after all of them."""
    facts = aligned(dataset, bundle.entities, bundle.relations).facts
    if extent == "valid":
        facts = facts[facts[:, 3] < dataset.split_bounds[1]]
    engine = bundle.engine(encoder)
    engine.observe_rows(torch.from_numpy(facts).to(engine.device))
    return Saved(engine.snapshot(), graph=graph, version=bundle.version, offset=0, known_through=engine.watermark)

"""What names tell: the vectors that a frozen language model makes of them, and the groups that they are written with.

The public names are imported when first used: looking for groups needs no language model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adatkg_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from adatkg_core.text.encoder import Loading, load_encoder, pinned_encoder
    from adatkg_core.text.encoder_protocol import TextEncoder
    from adatkg_core.text.entity_text import text_of
    from adatkg_core.text.name_structure import (
        GroupCount,
        NameStructure,
        choose_structure,
        count_groups,
        find_structure,
    )

_HOME = {
    "adatkg_core.text.encoder": ("Loading", "load_encoder", "pinned_encoder"),
    "adatkg_core.text.encoder_protocol": ("TextEncoder",),
    "adatkg_core.text.entity_text": ("text_of",),
    "adatkg_core.text.name_structure": (
        "GroupCount",
        "NameStructure",
        "choose_structure",
        "count_groups",
        "find_structure",
    ),
}

__getattr__ = lazy_names(__name__, _HOME)

__all__ = [
    "GroupCount",
    "Loading",
    "NameStructure",
    "TextEncoder",
    "choose_structure",
    "count_groups",
    "find_structure",
    "load_encoder",
    "pinned_encoder",
    "text_of",
]

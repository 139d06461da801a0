"""Numbers and names on which several parts agree."""

from __future__ import annotations

from typing import Literal

SLICES = (
    "all",
    "emerging",
    "emerging_subject_unseen",
    "emerging_object_unseen",
    "unknown",
    "unknown_subject_unseen",
    "unknown_object_unseen",
)
STRATA = (
    "exact_repeat",
    "pair_other_relation",
    "object_at_relation",
    "other_new_pair",
    "subject_unseen",
    "object_unseen",
)
LAST_TIME = 2**31 - 1  # ticks are kept in 32 bits
LatePolicy = Literal["apply", "refuse"]
NameKind = Literal["none", "brackets", "comma", "colon", "slash", "address"]  # how names tell of groups
MAX_JUMP = 1_000  # ticks that the watermark may move at once

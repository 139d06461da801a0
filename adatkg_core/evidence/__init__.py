"""Wider evidence for the recall head: what speaks for a candidate that the subject itself has not met.

Each family is a file: `observe` takes a commit into the bounded tables of the state, `read` finds what they say about
queries. Nothing here is learned. Sums are made of sums, products, quotients and looked-up decays only, whose rounding
is the same wherever in a batch an element stands, so that a batch cannot tip a choice.
"""

from adatkg_core.evidence.all_families import (
    FEATURES,
    Gathered,
    activity_features,
    alike_sums,
    compile_evidence,
    count_recurrence,
    gather_evidence,
    keep_far_end,
    observe_evidence,
    own_features,
)
from adatkg_core.evidence.own_sources import Neighbours, OwnSources
from adatkg_core.evidence.questions import Questions, shares_left
from adatkg_core.evidence.transitions import FEATURES as TRANSITION_FEATURES
from adatkg_core.evidence.transitions import follow, lift_of, totals_of

__all__ = [
    "FEATURES",
    "TRANSITION_FEATURES",
    "Gathered",
    "Neighbours",
    "OwnSources",
    "Questions",
    "activity_features",
    "alike_sums",
    "compile_evidence",
    "count_recurrence",
    "follow",
    "gather_evidence",
    "keep_far_end",
    "lift_of",
    "observe_evidence",
    "own_features",
    "shares_left",
    "totals_of",
]

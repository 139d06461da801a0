"""Measuring: by both protocols, in slices and strata, and whether what was measured could know of the future."""

from adatkg_core.evaluation.bundles import How, Watch, evaluate_bundle
from adatkg_core.evaluation.causality import CausalityCheck
from adatkg_core.evaluation.figures import GROUPS, Figures, Results, summarize
from adatkg_core.evaluation.log_answers import LoggedEvent, answer_log
from adatkg_core.evaluation.measuring import Asked, Candidates, measure
from adatkg_core.evaluation.published_answers import compare_published

__all__ = [
    "GROUPS",
    "Asked",
    "Candidates",
    "CausalityCheck",
    "Figures",
    "How",
    "LoggedEvent",
    "Results",
    "Watch",
    "answer_log",
    "compare_published",
    "evaluate_bundle",
    "measure",
    "summarize",
]

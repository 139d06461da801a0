"""The page of reasons for dead letters."""

from __future__ import annotations

from adatkg_core.messages import Reason
from docs.generator.markdown import document

INTRODUCTION = """
An event that cannot be processed goes to the topic `adatkg.deadletter` as it came, with a reason that can be counted
and a sentence that says what is wrong. The stream goes on. [Dead letters](../how-to/dead-letters.md) says how to mend
and retry them.
"""


def page() -> str:
    """Every reason with its meaning and what helps."""
    parts = [f"## {reason}\n\n{reason.meaning}\n\n{reason.remedy}" for reason in sorted(Reason)]
    return document("Reasons for dead letters", INTRODUCTION, *parts)

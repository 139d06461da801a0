"""`adatkg chaos`: the whole system under random faults, and a checker apart from it.

A `schedule` says what goes wrong when, `faults` does it to a `System` of real processes while a `Stream` sends and a
`Journal` notes; afterwards the `checker` reads topics, stores and journal, and believes nothing else.
"""

from adatkg.chaos.conductor import GRAPHS, Outcome, Plan, conduct
from adatkg.chaos.faults import KINDS

__all__ = ["GRAPHS", "KINDS", "Outcome", "Plan", "conduct"]

"""`adatkg demo`: the whole system on this machine, from nothing.

A `Plan` says what shall run, a `System` runs it, a `Watch` looks at it from outside, and what the watch sees goes to
the terminal or becomes one JSON object.
"""

from adatkg.demo.conductor import Audience, conduct
from adatkg.demo.display import Log, Terminal
from adatkg.demo.plan import DATASET, Plan, place

__all__ = ["DATASET", "Audience", "Log", "Plan", "Terminal", "conduct", "place"]

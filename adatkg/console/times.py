"""Times of a forecast as people read them: in the graph's calendar, as ticks where it has none or they are wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from streams.client import Prediction

TicksFlag = Annotated[bool, typer.Option("--ticks", help="Show times as the graph's ticks, not in its calendar.")]


def asked_about(forecast: Prediction, ticks: bool = False) -> str:
    """The time of the question; as it was asked where an old message does not say more."""
    tick = forecast.query["t"] if forecast.tick is None else forecast.tick
    return str(tick) if ticks or forecast.time is None else forecast.time


def rests_on(forecast: Prediction, ticks: bool = False) -> str:
    """The time before which the facts lie that the answer rests on."""
    return str(forecast.as_of) if ticks or forecast.as_of_time is None else forecast.as_of_time

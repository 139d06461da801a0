"""Columns of times: which form they have, what ticks they are, and what clocks of a zone show."""

from adatkg_core.datasets.time_columns.forms import (
    READABLE,
    ColumnForm,
    Form,
    column_form,
    offset_of,
    parse_granularity,
    read_time,
    seconds_of,
    to_ticks,
)
from adatkg_core.datasets.time_columns.local_times import lone_times, moments

__all__ = [
    "READABLE",
    "ColumnForm",
    "Form",
    "column_form",
    "lone_times",
    "moments",
    "offset_of",
    "parse_granularity",
    "read_time",
    "seconds_of",
    "to_ticks",
]

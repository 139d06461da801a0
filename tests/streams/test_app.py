"""What the worker asks of Faust, whatever Faust is doing at that moment."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from streams.app import _FaustFlow
from streams.kafka import Topics


@pytest.mark.parametrize(("heard", "known"), [(12, 12), (None, 7), (AssertionError("Partition is not assigned"), 7)])
def test_the_end_of_a_partition_is_what_faust_has_heard_else_what_was_seen_also_when_it_was_just_taken_away(
    heard: int | Exception | None, known: int
) -> None:
    def highwater(place: TP) -> int | None:
        assert place == TP(Topics().events, 3)
        if isinstance(heard, Exception):
            raise heard
        return heard

    app: Any = SimpleNamespace(consumer=SimpleNamespace(highwater=highwater))
    flow = _FaustFlow(app, Topics())
    watch: Any = SimpleNamespace(end=lambda partition: 7)
    flow.watch = watch
    assert flow.highwater(3) == known

"""What chaos sends."""

from __future__ import annotations

from collections import Counter
from itertools import islice, pairwise

import pytest

from adatkg.chaos.messages import Messages, garbage
from adatkg_core.events import Fact
from adatkg_core.messages import Question, Unusable, check_event, decode_event
from tests.support.small_graph import small_graph

FIRST = 5  # tick of the stream


def test_the_stream_is_a_pure_function_of_graph_and_seed() -> None:
    def sent(seed: int) -> list[bytes]:
        return [message.value for message in islice(Messages("g", small_graph(), FIRST, seed).live(), 500)]

    assert sent(1) == sent(1) != sent(2)


def test_the_past_is_told_before_the_stream_and_has_no_questions() -> None:
    past = list(Messages("g", small_graph(), FIRST, 1).past())
    times = [event.t for event in (decode_event(one.value, None) for one in past) if isinstance(event, Fact)]
    assert len(times) == len(past) == sum(small_graph().facts[:, 3] < FIRST) and max(times) < FIRST


def test_the_stream_has_no_end_and_all_of_it_can_be_used() -> None:
    live = list(islice(Messages("g", small_graph(), FIRST, 1).live(), 2_000))
    events = [decode_event(message.value, None) for message in live]
    assert len({message.id for message in live}) == len(live)
    assert Counter(message.kind for message in live).keys() == {"fact", "query", "tick"}
    assert all(
        event.id == message.id for event, message in zip(events, live, strict=True) if isinstance(event, Question)
    )
    times = [event.t for event in events if isinstance(event, Fact)]
    assert max(times) > small_graph().times[-1], "it begins again, later"
    assert all(later >= earlier - 1 for earlier, later in pairwise(times))


def test_no_garbage_can_be_used() -> None:
    for message in garbage("g", "mark"):
        if message.has_key:
            with pytest.raises(Unusable):
                check_event(message.value)

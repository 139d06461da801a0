"""Every place has its share of every batch, memory is bounded, and within a place nothing is left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.worker import Arrival, inboxes
from streams.worker.inboxes import BATCH_BYTES, OBJECT, Inboxes, Place
from tests.support.fake_worker import fact

FLOOD, SMALL, OTHER = Place(0, b"flood"), Place(0, b"small"), Place(1, b"other")


def at(place: Place, offsets: Iterable[int], size: int = 0) -> list[Arrival]:
    return [replace(fact(offset, place.partition, place.key or b""), value=b"x" * size) for offset in offsets]


def put(waiting: Inboxes, place: Place, offsets: Iterable[int], size: int = 0, all_here: bool = False) -> None:
    waiting.put(place, at(place, offsets, size), all_here=all_here)


def taken(waiting: Inboxes, most: int) -> dict[Place, list[int]]:
    return {place: offsets(some) for place, some in waiting.next_batch(most).items()}


def offsets(some: Sequence[Arrival]) -> list[int]:
    return [one.source.offset for one in some]


def test_a_flood_leaves_others_of_its_partition_and_of_others_their_share_of_the_next_batch() -> None:
    waiting = Inboxes()
    put(waiting, FLOOD, range(12))
    put(waiting, SMALL, range(100, 103))
    put(waiting, OTHER, range(2))
    assert taken(waiting, 6) == {FLOOD: [0, 1], SMALL: [100, 101], OTHER: [0, 1]}
    assert taken(waiting, 6) == {FLOOD: [2, 3, 4, 5, 6], SMALL: [102]}, "what one leaves others take"
    assert taken(waiting, 6) == {FLOOD: [7, 8, 9, 10, 11]} and not waiting.is_waiting


def test_of_more_places_than_a_batch_has_room_for_those_are_next_that_waited_longest() -> None:
    waiting = Inboxes()
    places = [Place(number % 3, b"%d" % number) for number in range(7)]
    for place in places:
        put(waiting, place, range(2))
    first, second = taken(waiting, 4), taken(waiting, 4)
    assert [*first, *second] == [*places, places[0]]


def test_a_batch_of_large_events_is_smaller_and_never_empty() -> None:
    waiting = Inboxes()
    put(waiting, FLOOD, range(4), BATCH_BYTES // 3)
    put(waiting, OTHER, range(4), 2 * BATCH_BYTES)
    assert taken(waiting, 4) == {FLOOD: [0], OTHER: [0]}
    sizes = []
    while batch := waiting.next_batch(4):
        sizes.append(sum(map(len, batch.values())))
    assert sum(sizes) == 6 and max(sizes) <= 2


def test_a_flood_takes_half_of_the_room_and_says_from_where_on_it_is_in_the_log_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inboxes, "ROOM", 20 * OBJECT)
    monkeypatch.setattr(inboxes, "LEAST", 0)
    waiting = Inboxes()
    put(waiting, FLOOD, range(30))
    put(waiting, SMALL, range(30, 34))
    put(waiting, FLOOD, range(34, 40))
    assert waiting.firsts() == {0: 0} and waiting.left_in_log() == {}, "there is no room for it yet"
    assert taken(waiting, 100) == {FLOOD: [*range(10)], SMALL: [30, 31, 32, 33]}
    assert waiting.first(FLOOD) == 10 and waiting.first(SMALL) is None and waiting.firsts() == {0: 10}
    ((place, inbox),) = waiting.left_in_log().items()
    waiting.refill(place, inbox, at(FLOOD, [*range(10, 30), 34]), 35, 40)
    assert taken(waiting, 100) == {FLOOD: [*range(10, 20)]} and waiting.first(FLOOD) == 20
    waiting.refill(place, inbox, at(FLOOD, [*range(20, 25)]), 25, 40)
    waiting.refill(place, inbox, at(FLOOD, [*range(20, 30), *range(34, 38)]), 40, 40)
    assert taken(waiting, 100) == {FLOOD: [*range(20, 30)]}, "what is here already is not added again"
    waiting.refill(place, inbox, at(FLOOD, range(34, 40)), 40, 40)
    assert taken(waiting, 100) == {FLOOD: [*range(34, 40)]} and waiting.first(FLOOD) is None


def test_who_must_be_here_is_whatever_the_room_and_is_called_crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inboxes, "ROOM", 20 * OBJECT)
    monkeypatch.setattr(inboxes, "LEAST", 3 * OBJECT)
    waiting = Inboxes()
    put(waiting, FLOOD, range(30), all_here=True)
    put(waiting, OTHER, range(5))
    assert waiting.crowded() == {FLOOD}
    assert len(taken(waiting, 100)[OTHER]) == 3, "each may have something here however much others have"


def test_what_was_dropped_is_not_filled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Inboxes()
    put(waiting, FLOOD, range(3))
    waiting.leave(FLOOD, 3)
    inbox = waiting.of(0)[FLOOD]
    waiting.keep_only({1})
    waiting.refill(FLOOD, inbox, at(FLOOD, range(3, 6)), 6, 6)
    assert not waiting.is_waiting and waiting.firsts() == {} and waiting.is_alone(FLOOD)


@settings(max_examples=60, deadline=None)
@given(
    keys=st.lists(st.sampled_from([b"a", b"a", b"a", b"b", b"c"]), max_size=120),
    steps=st.lists(st.sampled_from(["deliver", "batch", "read"]), max_size=200),
    alone=st.booleans(),
)
def test_whatever_comes_between_everything_is_taken_once_in_order(
    keys: list[bytes], steps: list[str], alone: bool
) -> None:
    log = [fact(offset, 0, key) for offset, key in enumerate(keys)]
    waiting, delivered, found = Inboxes(), 0, list[Arrival]()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(inboxes, "ROOM", 9 * (OBJECT + 100))
        patched.setattr(inboxes, "LEAST", 0)
        for step in [*steps, *(["deliver"] * len(log)), *(["batch", "read"] * 2 * (len(log) + 1))]:
            if step == "deliver":
                for one in log[delivered : delivered + 7]:
                    waiting.put(Place(0, one.key), [one], all_here=alone and one.key == b"c")
                delivered = min(delivered + 7, len(log))
            elif step == "batch":
                found += [one for some in waiting.next_batch(4).values() for one in some]
            else:
                for place, inbox in waiting.left_in_log().items():
                    start = inbox.left or 0
                    end = min(start + 5, delivered)
                    waiting.refill(
                        place, inbox, [one for one in log[start:end] if one.key == place.key], end, delivered
                    )
            firsts = waiting.firsts()
            below = firsts.get(0, delivered)
            assert {one.source.offset for one in found} >= set(range(below)), "committed, but not taken in"
    for key in set(keys):
        assert [one for one in found if one.key == key] == [one for one in log if one.key == key]

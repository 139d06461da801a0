"""Small tensor helpers, against what plain Python says."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from adatkg_core.state import distinct_places


@given(places=st.lists(st.integers(0, 19), max_size=40))
def test_places_are_numbered_as_a_sort_would_number_them(places: list[int]) -> None:
    distinct, number = distinct_places(torch.tensor(places, dtype=torch.int64), 20)
    assert distinct.tolist() == sorted(set(places))
    assert [int(number[place]) for place in places] == [sorted(set(places)).index(place) for place in places]

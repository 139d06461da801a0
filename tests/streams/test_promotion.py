"""Between a decision and its carrying out others may have decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from adatkg_core.errors import AdatkgError
from adatkg_core.messages import Announcement
from adatkg_core.storage import Bundle, ModelStore
from streams.promotion import require_unchanged
from tests.support.small_graph import shared_model, small_graph


def test_a_trainer_that_slept_after_its_lease_was_confirmed_does_not_undo_what_others_promoted(tmp_path: Path) -> None:
    store = ModelStore(str(tmp_path))
    for version in ("v1", "mine", "theirs"):
        store.put("g", Bundle(shared_model("default"), small_graph().relations, (), version), None)
    store.make_present("g", "v1")
    decided = Announcement("g", "mine", "present", "better", forced=False, verdict=None)
    require_unchanged(store, decided, against="v1")
    store.make_present("g", "theirs")
    with pytest.raises(AdatkgError, match="judged against v1, but theirs has become present since"):
        require_unchanged(store, decided, against="v1")
    store.make_present("g", "mine")
    require_unchanged(store, decided, against="v1")  # a kill left only the announcement undone

"""The engine: one graph's live state and the answers read from it, offline and online alike."""

from adatkg_core.engine.admission import object_to_fact, object_to_time
from adatkg_core.engine.commit import commit_facts
from adatkg_core.engine.engine import CHUNK, Engine, Observed
from adatkg_core.engine.entity_profile import EntityProfile, profile_entity
from adatkg_core.engine.snapshot import Snapshot

__all__ = [
    "CHUNK",
    "Engine",
    "EntityProfile",
    "Observed",
    "Snapshot",
    "commit_facts",
    "object_to_fact",
    "object_to_time",
    "profile_entity",
]

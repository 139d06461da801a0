"""The engine: one graph's live state and the answers read from it, offline and online alike."""

from adatkg_core.engine.admission import Admission, EntityLimit, Observed
from adatkg_core.engine.capture import EngineCapture
from adatkg_core.engine.commit import commit_facts
from adatkg_core.engine.engine import CHUNK, Engine
from adatkg_core.engine.entity_profile import EntityProfile, profile_entity
from adatkg_core.engine.increment import Increment
from adatkg_core.engine.snapshot import Snapshot

__all__ = [
    "CHUNK",
    "Admission",
    "Engine",
    "EngineCapture",
    "EntityLimit",
    "EntityProfile",
    "Increment",
    "Observed",
    "Snapshot",
    "commit_facts",
    "profile_entity",
]

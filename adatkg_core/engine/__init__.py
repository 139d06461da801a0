"""The engine: one graph's live state and the answers read from it, offline and online alike."""

from adatkg_core.engine.admission import Admission, EntityLimit, Observed
from adatkg_core.engine.capture import EngineCapture
from adatkg_core.engine.commit import commit_facts
from adatkg_core.engine.compilation import compile_engine
from adatkg_core.engine.engine import Engine
from adatkg_core.engine.entity_profile import EntityProfile, profile_entity
from adatkg_core.engine.increment import Increment
from adatkg_core.engine.ranked_lists import CHUNK
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
    "compile_engine",
    "profile_entity",
]

"""What outlives a process: bundles, snapshots and the model store, each whole or not there."""

from adatkg_core.storage.artifact import (
    artifact_exists,
    check_free,
    read_artifact,
    remove_artifact,
    safe_name,
    write_artifact,
)
from adatkg_core.storage.bundle import Bundle, load_bundle, resolve_device, save_bundle
from adatkg_core.storage.fitness import named_bundle, why_lacking, why_unfit
from adatkg_core.storage.json_file import read_document, write_document
from adatkg_core.storage.model_report import bundle_rows, describe_bundle, verdict_on
from adatkg_core.storage.model_store import ModelStore
from adatkg_core.storage.place import folder_for_copies
from adatkg_core.storage.snapshot import LastEvent, Place, Saved, SavedIncrement, SnapshotStore, Standing, read_snapshot

__all__ = [
    "Bundle",
    "LastEvent",
    "ModelStore",
    "Place",
    "Saved",
    "SavedIncrement",
    "SnapshotStore",
    "Standing",
    "artifact_exists",
    "bundle_rows",
    "check_free",
    "describe_bundle",
    "folder_for_copies",
    "load_bundle",
    "named_bundle",
    "read_artifact",
    "read_document",
    "read_snapshot",
    "remove_artifact",
    "resolve_device",
    "safe_name",
    "save_bundle",
    "verdict_on",
    "why_lacking",
    "why_unfit",
    "write_artifact",
    "write_document",
]

"""The layouts in which temporal knowledge graphs are published: which one a folder has, and what it says."""

from adatkg_core.datasets.layouts.detection import USUAL, Layout, detect
from adatkg_core.datasets.layouts.names import Names
from adatkg_core.datasets.layouts.parts import CLOCK_FILE, ENTITY_FILE, RELATION_FILE
from adatkg_core.datasets.layouts.reading import Reading

__all__ = ["CLOCK_FILE", "ENTITY_FILE", "RELATION_FILE", "USUAL", "Layout", "Names", "Reading", "detect"]

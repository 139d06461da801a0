"""Every tensor of a graph, on one device, and the names of its rows."""

from adatkg_core.state.catalog import Catalog
from adatkg_core.state.chains import Chains, append_to_chains, select_chains
from adatkg_core.state.graph_state import GraphState
from adatkg_core.state.interactions import both_sides
from adatkg_core.state.recurrence_tables import Slots
from adatkg_core.state.relations import Relations
from adatkg_core.state.tensor_ops import group_mean, grown

__all__ = [
    "Catalog",
    "Chains",
    "GraphState",
    "Relations",
    "Slots",
    "append_to_chains",
    "both_sides",
    "group_mean",
    "grown",
    "select_chains",
]

"""Every tensor of a graph, on one device, and the names of its rows."""

from adatkg_core.state.catalog import Catalog, NamesAt
from adatkg_core.state.chains import Chains, append_to_chains, select_chains
from adatkg_core.state.changed_rows import ChangedRows
from adatkg_core.state.devices import ordered_sums, to_device
from adatkg_core.state.graph_state import NAME_TENSORS, GraphState
from adatkg_core.state.grouping import HEAD, Grouping
from adatkg_core.state.interactions import both_sides
from adatkg_core.state.recurrence_tables import PagedTable, Slots
from adatkg_core.state.relations import Relations
from adatkg_core.state.state_capture import Overwritten, StateCapture
from adatkg_core.state.tensor_ops import distinct_places, group_mean, group_sums, grown, ragged, rank_in_group

__all__ = [
    "HEAD",
    "NAME_TENSORS",
    "Catalog",
    "Chains",
    "ChangedRows",
    "GraphState",
    "Grouping",
    "NamesAt",
    "Overwritten",
    "PagedTable",
    "Relations",
    "Slots",
    "StateCapture",
    "append_to_chains",
    "both_sides",
    "distinct_places",
    "group_mean",
    "group_sums",
    "grown",
    "ordered_sums",
    "ragged",
    "rank_in_group",
    "select_chains",
    "to_device",
]

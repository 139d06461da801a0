"""All families for one query after the other in compiled code: the same terms, for a state on a CPU.

`two_hops`, `name_groups` and `windows` define the terms over whole planes [B, n], which suits a GPU. Here a query costs
what its history holds and not what the graph holds. Sums run in the same order and round alike, so that both ways
choose the same candidates, bit for bit.
"""

from adatkg_core.evidence.compiled.activity import activity_features
from adatkg_core.evidence.compiled.alike import alike_sums
from adatkg_core.evidence.compiled.far_end import KeptFarEnd
from adatkg_core.evidence.compiled.gather import gather
from adatkg_core.evidence.compiled.memory import Cells, doubles, floats, narrow, wide
from adatkg_core.evidence.compiled.own_features import own_features
from adatkg_core.evidence.compiled.preparation import prepare
from adatkg_core.evidence.compiled.recurrence import count_recurrence

__all__ = [
    "Cells",
    "KeptFarEnd",
    "activity_features",
    "alike_sums",
    "count_recurrence",
    "doubles",
    "floats",
    "gather",
    "narrow",
    "own_features",
    "prepare",
    "wide",
]

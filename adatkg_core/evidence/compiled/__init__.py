"""All families for one query after the other in compiled code: the same terms, for a state on a CPU.

`two_hops`, `name_groups` and `windows` define the terms over whole planes [B, n], which suits a GPU. Here a query costs
what its history holds and not what the graph holds. Sums run in the same order and round alike, so that both ways
choose the same candidates, bit for bit.
"""

from adatkg_core.evidence.compiled.gather import gather, prepare

__all__ = ["gather", "prepare"]

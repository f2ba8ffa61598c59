"""The whole numbers that differ between neighbouring threads, as sums over the number of the thread.

x#1 = $x.first + $x.thread + 16   ->   thread + ($x.first + 16)
"""

from __future__ import annotations

from collections.abc import Mapping

from lanewise.analysis.index_sums import IndexSum, index_sum
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import reads, statements, writes


def lane_sums(
    body: ir.Block, varying: set[str], start: Mapping[str, IndexSum] = {}
) -> Mapping[str, IndexSum]:
    """The whole numbers that differ between lanes and are assigned once, as sums; `start` holds those of the statements before."""
    count: dict[str, int] = {}
    for s in statements(body):
        for n in writes(s):
            count[n] = count.get(n, 0) + 1
    sums = dict(start)
    for s in statements(body):
        if isinstance(s, ir.Assign) and s.name in varying and count[s.name] == 1 and s.value.type.is_integer:
            if all(count.get(n, 0) <= 1 for n in reads(s.value)):
                sums[s.name] = index_sum(s.value, sums)
    return sums

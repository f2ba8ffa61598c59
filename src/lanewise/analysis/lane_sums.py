"""The integers that differ between neighbouring threads, as sums over the number of the
thread.

x#1 = $x.first + $x.thread + 16   ->   thread + ($x.first + 16)
"""

from __future__ import annotations

from collections.abc import Mapping

from lanewise.analysis.index_sums import IndexSum, index_sum
from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK, own
from lanewise.ir.traverse import reads, statements, write_counts


def lane_sums(
    body: ir.Block, varying: set[str], start: Mapping[str, IndexSum] = {}
) -> dict[str, IndexSum]:
    """The integers that differ between lanes and are assigned once, as sums; `start` holds
    those of the statements before.
    """
    count = write_counts(body)
    sums = dict(start)
    for s in statements(body):
        if not isinstance(s, ir.Assign) or s.name not in varying or not s.value.type.is_integer:
            continue
        if count[s.name] == 1 and all(count.get(n, 0) <= 1 for n in reads(s.value)):
            sums[s.name] = index_sum(s.value, sums)
    return sums


# whether rows that loops of the role "late" write are stored past the caches, whole
UNBROKEN = own("unbroken")


def first_round(variable: str) -> str:
    """The round of the first lane, where lanes share the rounds of a loop."""
    return own(f"{variable.removeprefix(MARK)}.first.round")


def shared_loops(body: ir.Block, varying: set[str], thread: str, count: int) -> dict[str, IndexSum]:
    """The variables of loops whose rounds the lanes share, one by one: `for k in range(start +
    thread, stop, count)`.
    """
    loops: dict[str, IndexSum] = {}
    others: set[str] = set()
    for s in statements(body):
        if not isinstance(s, ir.For):
            continue
        start = index_sum(s.start, lane_sums(body, varying))
        rest = start.without([thread])
        steady = not any(varying & set(reads(e)) for e in (*rest.terms, s.stop, s.step))
        if start.coefficient(thread) == 1 and steady and s.step == ir.Literal(count, s.step.type):
            kind = s.start.type
            loops[s.variable] = IndexSum(
                0, {ir.Local(thread, kind): 1, ir.Local(first_round(s.variable), kind): 1}
            )
        else:
            others.add(s.variable)
    return {n: total for n, total in loops.items() if n not in others}

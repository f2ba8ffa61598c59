"""Take a reference pairwise kernel apart."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.analysis.both_ways import BothWays, both_ways
from lanewise.ir import nodes as ir
from lanewise.ir.names import is_own, own
from lanewise.passes.base import source_loops


@dataclass(frozen=True, slots=True)
class Reference:
    """What the new kernel is made of: indices, the function and its both-way form, sums, stores."""

    index: ir.Local
    source_index: ir.Local
    apply: ir.Apply
    target: str
    source: str
    sums: tuple[ir.Local, ...]  # in the order of the function's results
    stores: tuple[ir.StoreRecord, ...]
    both: BothWays


def take_apart(kernel: ir.Kernel) -> Reference | str:
    """The pieces of a reference kernel over pairs of one array, or why it has no reciprocity."""
    if not kernel.pattern.over_pairs:
        return "its elements are no pairs"
    loops = source_loops(kernel)
    if len(kernel.body) != 1 or not isinstance(kernel.body[0], ir.Parallel) or len(loops) != 1:
        return "its loops are shaped already"
    if not kernel.identical:
        return "its targets and its sources are two arrays"
    outer, (loop,) = kernel.body[0], loops
    applies = [s for s in loop.body if isinstance(s, ir.Apply)]
    if len(applies) != 1 or sum(isinstance(s, ir.Apply) for s in outer.body):
        return "it applies more than one function to a pair"
    (applied,) = applies
    if any(is_own(p.name) and p.name != own("same") for p in applied.function.parameters):
        return "its function takes values that were computed from one side"
    target, source = kernel.arrays[0].name, kernel.arrays[1].name
    both = both_ways(applied.function, target, source)
    if isinstance(both, str):
        return f"it is not known what the two directions of a pair share: {both}"
    added = {right: name for s in loop.body for right, name in _sum(s)}
    return Reference(
        ir.Local(outer.variable, outer.extent.type), ir.Local(loop.variable, loop.start.type), applied, target, source,
        tuple(added[r] for r in applied.results), tuple(s for s in outer.body if isinstance(s, ir.StoreRecord)), both,
    )  # fmt: skip


def _sum(s: ir.Statement) -> list[tuple[str, ir.Local]]:
    """The value and the sum of a statement `sum = sum + value`."""
    match s:
        case ir.Assign(name=name, value=ir.Binary(operator="+", right=ir.Local(name=right), type=kind)):
            return [(right, ir.Local(name, kind))]
        case _:
            return []

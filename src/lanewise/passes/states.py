"""Where the states of a result lie in memory when one kernel leaves them for another to merge.

A sum, a count and the extremes of integers are states themselves: the array of states looks
like that of the result. The others have their own array, with one field for each scalar of
the state.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK
from lanewise.ir.reductions import Accumulator
from lanewise.language.record import Leaf
from lanewise.layouts import SoA


def of_array(kernel: ir.Kernel, name: str) -> tuple[Accumulator, ...]:
    """The reductions whose results an array holds."""
    result = name.removeprefix(MARK)
    return tuple(
        a for a in kernel.reductions if a.value.name.removeprefix(MARK).partition(".")[0] == result
    )


def is_plain(reductions: tuple[Accumulator, ...]) -> bool:
    """Whether the result is the state: sums, and what reduces nothing itself."""
    return all(a.finish() == a.state for a in reductions)


def state_array(kernel: ir.Kernel, result: ir.ArrayArgument, name: str) -> ir.ArrayArgument:
    """An array for the states of a result, arranged as the result where these are the same."""
    reductions = of_array(kernel, result.name)
    if is_plain(reductions):
        return replace(result, name=name)
    leaves = tuple(
        Leaf(f"s{n}", x.type) for n, x in enumerate(x for r in reductions for x in r.state)
    )
    return replace(result, name=name, leaves=leaves, arrangement=SoA().arrange(leaves))

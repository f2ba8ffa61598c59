"""The element itself among the sources: which one it is, where targets and sources are parts of one
array.

    itself = (i * step + shift) // apart,  or -1 where no source is the target
The three numbers are uniform values of a call, so that one kernel serves all parts. It is computed
once a target: what a pair costs is one comparison, as where both are the same array.
"""

from __future__ import annotations

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import I64

STEP, SHIFT, APART = own("itself.step"), own("itself.shift"), own("itself.apart")
ITSELF = own("itself")
NO_SOURCE = -1


def itself_uniforms() -> tuple[ir.Parameter, ...]:
    """The numbers that say which source a target is."""
    return tuple(ir.Parameter(n, I64) for n in (STEP, SHIFT, APART))


def itself_values(step: int, shift: int, apart: int) -> dict[str, int]:
    """Them, by name: target i is source j where i * step + shift = j * apart."""
    return {STEP: step, SHIFT: shift, APART: apart}


def find_itself(i: ir.Expression, sources: ir.Local) -> tuple[ir.Block, ir.Local]:
    """Statements that find the source that target i is, and the local with its number."""
    step, shift, apart = (ir.Local(n, I64) for n in (STEP, SHIFT, APART))
    index, place = ir.Local(ITSELF, sources.type), ir.Local(own("itself.place"), I64)
    number = build.divide(place, apart)
    among = build.all_of(
        ir.Compare(">=", place, ir.Literal(0, I64)),
        build.equal(build.remainder(place, apart), 0),
        build.less(number, build.index_of(sources, I64)),
    )
    found = ir.Select(among, number, ir.Literal(NO_SOURCE, I64), I64)
    return (
        ir.Assign(place.name, build.add(build.multiply(build.index_of(i, I64), step), shift)),
        ir.Assign(index.name, build.index_of(found, index.type)),
    ), index

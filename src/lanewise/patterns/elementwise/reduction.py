"""The sum, minimum or maximum of what an elementwise function returns, without storing a value for every element.

Each of `lanes` workers reduces its share of the elements to one partial result; the few partial results meet on the host. On a GPU the
elements of a worker are `lanes` apart (coalesced), on a CPU they are neighbours. `lanes` depends on the count alone, so bits never change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from lanewise import types as t
from lanewise.frontend.function import Lowered
from lanewise.ir import build, folds
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, LANES, MARK, own, partial_of
from lanewise.ir.values import pairs, value_array
from lanewise.patterns.elementwise.build import ElementwiseArguments, build_elementwise
from lanewise.patterns.elementwise.pattern import ELEMENTS_PER_LANE, REDUCTION
from lanewise.patterns.results import result_arrays, total_type
from lanewise.types import Scalar, scalar_of

Operation = Literal["sum", "min", "max"]


def reduction_lanes(count: int) -> int:
    """How many partial results a reduction over `count` elements leaves."""
    return max(1, min(65_536, -(-count // ELEMENTS_PER_LANE)))


def reduced_type(kind: t.ValueType, operation: Operation) -> t.ValueType:
    """Sums run in 64 bits; minima and maxima keep their type."""
    scalar = scalar_of(kind)
    wide = scalar if operation != "sum" else total_type(scalar)
    return t.Vector(wide, kind.length) if isinstance(kind, t.Vector) else wide


def build_reduction(
    lowered: Lowered, arguments: ElementwiseArguments, index: Scalar, operation: Operation, *, strided: bool
) -> ir.Kernel:
    """The elementwise kernel with its parallel loop cut into lanes, and its results reduced instead of stored."""
    plain = build_elementwise(lowered, arguments, index)
    (loop,) = plain.body
    assert isinstance(loop, ir.Parallel)
    lane, lanes, count = (ir.Local(n, index) for n in (own("lane"), LANES, COUNT))
    results = dict(result_arrays(lowered))
    element = tuple(s for s in loop.body if not (isinstance(s, ir.StoreRecord) and s.array in results))
    starts: list[ir.Statement] = []
    gathered: list[ir.Statement] = []
    stores: list[ir.Statement] = []
    arrays = tuple(a for a in plain.arrays if a.name not in results)
    for name, kind in results.items():
        wide = reduced_type(kind, operation)
        scalar = scalar_of(wide)
        writes: list[tuple[str, ir.Expression]] = []
        for leaf, variable in pairs(name, kind):
            total = ir.Local(own(f"{operation}.{variable.removeprefix(MARK)}"), scalar)
            starts.append(ir.Assign(total.name, folds.neutral(_FOLDS[operation], scalar)))
            gathered.append(ir.Assign(total.name, _fold(operation, total, ir.Local(variable, scalar_of(kind)))))
            writes.append((leaf, total))
        arrays = (*arrays, value_array(partial_of(name), wide, written=True))
        stores.append(ir.StoreRecord(partial_of(name), lane, tuple(writes)))
    if strided:
        inner = ir.For(loop.variable, lane, count, lanes, (*element, *gathered))
        block: ir.Block = (*starts, inner, *stores)
    else:
        share = ir.Local(own("share"), index)
        first = build.multiply(lane, share)
        last = build.minimum(build.add(first, share), count)
        inner = ir.For(loop.variable, first, last, ir.Literal(1, index), (*element, *gathered))
        size = build.divide(build.subtract(build.add(count, lanes), 1), lanes)
        block = (ir.Assign(share.name, size), *starts, inner, *stores)
    counts = (ir.Parameter(LANES, index), *plain.counts)
    body = (ir.Parallel(lane.name, lanes, block),)
    return replace(plain, name=f"{plain.name}_{operation}", pattern=REDUCTION, arrays=arrays, counts=counts, body=body)


_FOLDS: dict[Operation, folds.Operation] = {"sum": "+", "min": "min", "max": "max"}


def _fold(operation: Operation, total: ir.Local, value: ir.Local) -> ir.Expression:
    wide: ir.Expression = value if value.type == total.type else ir.Cast(value, total.type)
    return folds.join(_FOLDS[operation], total, wide)

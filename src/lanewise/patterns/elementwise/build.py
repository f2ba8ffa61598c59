"""elementwise: every element by itself.

LoadRecord its records, apply the function, store what changed.

Elements have nothing to do with each other: there is a result for each, or a total over all. A
total is the sum, minimum or maximum of what the function returns, without storing a value for every
element.

Each of `lanes` workers reduces its share of the elements to one partial result; the few partial
results meet on the host. On a GPU the elements of a worker are `lanes` apart (coalesced), on a CPU
they are neighbours. `lanes` depends on the count alone, so bits never change.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from lanewise.frontend.function import Lowered
from lanewise.ir import build, folds
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, LANES, MARK, identifier, own, partial_of
from lanewise.ir.pattern import GRAIN_ELEMENTS, Pattern, Work
from lanewise.ir.values import pairs, record_array, uniform_leaves, value_array
from lanewise.language import types as t
from lanewise.language.array_types import ArrayType
from lanewise.language.record import Record
from lanewise.language.types import F64, I64, Scalar, computed, scalar_of
from lanewise.layouts import Layout
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.patterns.results import result_arrays
from lanewise.patterns.tables.arguments import Tables, numbers, table_arrays, table_lengths


@dataclass(frozen=True, slots=True)
class ElementwiseArguments:
    """What each parameter is in one call: a record array (with its layout), an array of values, a
    uniform argument, or a table.
    """

    records: dict[str, tuple[Record, Layout]]
    arrays: dict[str, t.ValueType]
    uniforms: dict[str, t.ValueType]
    tables: Tables = field(default_factory=dict[str, ArrayType])


def build_elementwise(
    lowered: Lowered, arguments: ElementwiseArguments, index: Scalar
) -> ir.Kernel:
    """The reference kernel: `parallel for $i in range($count): load; apply; store`."""
    f = lowered.function
    count, i = ir.Parameter(COUNT, index), ir.Local(own("i"), index)
    used = {p.name for p in f.parameters}
    changed = {p.name for p in f.parameters if p.mutable}
    arrays: list[ir.ArrayArgument] = []
    body: list[ir.Statement] = []
    stores: list[ir.Statement] = []
    for name, (record, layout) in arguments.records.items():
        leaves = [(x, f"{name}.{x.name}") for x in record.leaves]
        written = tuple((x.name, ir.Local(v, x.type)) for x, v in leaves if v in changed)
        arrays.append(record_array(name, record.leaves, layout, written=bool(written)))
        body.append(ir.LoadRecord(name, i, tuple((x.name, v) for x, v in leaves if v in used)))
        if written:
            stores.append(ir.StoreRecord(name, i, written))
    for name, kind in arguments.arrays.items():
        arrays.append(value_array(name, kind, written=False))
        body.append(
            ir.LoadRecord(name, i, tuple((leaf, v) for leaf, v in pairs(name, kind) if v in used))
        )
    arrays += table_arrays(arguments.tables, apart=True)
    index_of = numbers(lowered, dict.fromkeys(lowered.numbered, i))
    values = tuple(index_of.get(p.name, ir.Local(p.name, p.type)) for p in f.parameters)
    body.append(ir.Apply(f, values, tuple(own(r.name) for r in f.results)))
    for name, kind in result_arrays(lowered):
        arrays.append(value_array(name, kind, written=True))
        scalar = t.scalar_of(kind)
        written = tuple((leaf, ir.Local(v, scalar)) for leaf, v in pairs(name, kind))
        stores.append(ir.StoreRecord(name, i, written))
    uniforms = uniform_leaves(f, {**arguments.uniforms, **table_lengths(arguments.tables)})
    loads = tuple(s for s in body if not (isinstance(s, ir.LoadRecord) and not s.reads))
    loop = ir.Parallel(i.name, ir.Local(count.name, index), (*loads, *stores))
    return ir.Kernel(
        identifier(f.name),
        ELEMENTWISE,
        tuple(arrays),
        uniforms,
        (count,),
        (loop,),
        location=f.location,
    )


ELEMENTS_PER_LANE = 64  # of a total: elements whose values one thread adds

REDUCTION = Pattern("reduction", grain=lambda last_count: GRAIN_ELEMENTS // ELEMENTS_PER_LANE)


def reduction_work(elements: Work) -> Work:
    """The work of a reduction over what an elementwise kernel computes. Its threads run through
    many elements as it is: however many there are, none computes several side by side.
    """
    return replace(elements, pattern=REDUCTION, together=1)


Operation = Literal["sum", "min", "max"]


def reduction_lanes(count: int) -> int:
    """How many partial results a reduction over `count` elements leaves."""
    return max(1, min(65_536, -(-count // ELEMENTS_PER_LANE)))


def reduced_type(kind: t.ValueType, operation: Operation) -> t.ValueType:
    """Sums run in 64 bits; minima and maxima keep their type, of 32 bits at least."""
    scalar = computed(scalar_of(kind))
    wide = scalar if operation != "sum" else F64 if scalar.is_float else I64
    return t.Vector(wide, kind.length) if isinstance(kind, t.Vector) else wide


def build_reduction(
    lowered: Lowered,
    arguments: ElementwiseArguments,
    index: Scalar,
    operation: Operation,
    *,
    strided: bool,
) -> ir.Kernel:
    """The elementwise kernel with its parallel loop cut into lanes, and its results reduced instead
    of stored.
    """
    plain = build_elementwise(lowered, arguments, index)
    (loop,) = plain.body
    assert isinstance(loop, ir.Parallel)
    lane, lanes, count = (ir.Local(n, index) for n in (own("lane"), LANES, COUNT))
    results = dict(result_arrays(lowered))
    element = tuple(
        s for s in loop.body if not (isinstance(s, ir.StoreRecord) and s.array in results)
    )
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
            gathered.append(
                ir.Assign(total.name, _fold(operation, total, ir.Local(variable, scalar_of(kind))))
            )
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
    return replace(
        plain,
        name=f"{plain.name}_{operation}",
        pattern=REDUCTION,
        arrays=arrays,
        counts=counts,
        body=body,
    )


_FOLDS: dict[Operation, folds.Operation] = {"sum": "+", "min": "min", "max": "max"}


def _fold(operation: Operation, total: ir.Local, value: ir.Local) -> ir.Expression:
    wide = build.cast(value, total.type)
    if (
        operation != "sum" and total.type.is_float
    ):  # lw.min leaves open what becomes of a NaN; here it wins, on every device
        kept = ir.Compare("<=" if operation == "min" else ">=", total, wide)
        return ir.Select(
            ir.Logical("or", kept, ir.Compare("!=", total, total)), total, wide, total.type
        )
    return folds.join(_FOLDS[operation], total, wide)

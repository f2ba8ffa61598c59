"""elementwise: every element by itself. LoadRecord its records, apply the function, store what changed."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise import types as t
from lanewise.frontend.function import Lowered
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, identifier, own
from lanewise.ir.values import pairs, record_array, uniform_leaves, value_array
from lanewise.layouts import Layout
from lanewise.patterns.elementwise.pattern import ELEMENTWISE
from lanewise.patterns.results import result_arrays
from lanewise.record import Record
from lanewise.types import Scalar


@dataclass(frozen=True, slots=True)
class ElementwiseArguments:
    """What each parameter is in one call: a record array (with its layout), an array of values, or a uniform argument."""

    records: dict[str, tuple[Record, Layout]]
    arrays: dict[str, t.ValueType]
    uniforms: dict[str, t.ValueType]


def build_elementwise(lowered: Lowered, arguments: ElementwiseArguments, index: Scalar) -> ir.Kernel:
    """The reference kernel: `parallel for $i in range($count): load; apply; store`."""
    f = lowered.function
    count, i = ir.Parameter(COUNT, index), ir.Local(own("i"), index)
    used = {p.name for p in f.parameters}
    changed = {p.name for p in f.parameters if p.mutable}
    arrays: list[ir.ArrayArgument] = []
    body: list[ir.Statement] = []
    stores: list[ir.Statement] = []
    for name, (record, layout) in arguments.records.items():
        written = tuple(x for x in record.leaves if f"{name}.{x.name}" in changed)
        arrays.append(record_array(name, record.leaves, layout, written=bool(written)))
        body.append(
            ir.LoadRecord(
                name, i, tuple((x.name, f"{name}.{x.name}") for x in record.leaves if f"{name}.{x.name}" in used)
            )
        )
        if written:
            stores.append(
                ir.StoreRecord(name, i, tuple((x.name, ir.Local(f"{name}.{x.name}", x.type)) for x in written))
            )
    for name, kind in arguments.arrays.items():
        arrays.append(value_array(name, kind, written=False))
        body.append(ir.LoadRecord(name, i, tuple((leaf, v) for leaf, v in pairs(name, kind) if v in used)))
    body.append(
        ir.Apply(f, tuple(ir.Local(p.name, p.type) for p in f.parameters), tuple(own(r.name) for r in f.results))
    )
    for name, kind in result_arrays(lowered):
        arrays.append(value_array(name, kind, written=True))
        stores.append(
            ir.StoreRecord(name, i, tuple((leaf, ir.Local(v, t.scalar_of(kind))) for leaf, v in pairs(name, kind)))
        )
    uniforms = uniform_leaves(f, arguments.uniforms)
    loads = tuple(s for s in body if not (isinstance(s, ir.LoadRecord) and not s.reads))
    loop = ir.Parallel(i.name, ir.Local(count.name, index), (*loads, *stores))
    return ir.Kernel(identifier(f.name), ELEMENTWISE, tuple(arrays), uniforms, (count,), (loop,), location=f.location)

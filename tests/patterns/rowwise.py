"""A pattern in one file: a value for each row of a table of fixed width, which is the sum of a function over the row's columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lanewise.frontend.function import Lowered, Signature
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, identifier, own
from lanewise.ir.pattern import HostCode, Pattern
from lanewise.ir.values import pairs, uniform_leaves, value_array
from lanewise.language.types import Scalar, scalar_of
from lanewise.launch.arguments import Arguments, classify_arguments
from lanewise.launch.support import value_type
from lanewise.patterns.kernels import kernel_of
from lanewise.patterns.results import result_arrays, sum_name
from lanewise.patterns.skeleton import Skeleton
from lanewise.support.errors import ArgumentError

WIDTH = 5


def arguments(signature: Signature, given: Mapping[str, Any]) -> Arguments:
    """Tables are arrays of WIDTH columns; their rows lie one after the other."""
    flat = {n: x.reshape(-1) if getattr(x, "ndim", 0) == 2 and x.shape[1] == WIDTH else x for n, x in given.items()}
    return classify_arguments(signature, flat, arrays_allowed=True)


def counts(name: str, given: Arguments) -> Mapping[str, int]:
    """Rows."""
    lengths = {len(a) for a in given.arrays.values()}
    if len(lengths) != 1 or next(iter(lengths)) % WIDTH:
        raise ArgumentError(
            f"{name}: wanted tables of {WIDTH} columns and as many rows, found arrays of {sorted(lengths)} numbers"
        )
    return {COUNT: lengths.pop() // WIDTH}


def reference(lowered: Lowered, signature: Signature, given: Arguments, index: Scalar) -> ir.Kernel:
    """For each row: sums of zero; for each column: load, apply, add; store."""
    f = lowered.function
    count, i, k = ir.Parameter(COUNT, index), ir.Local(own("i"), index), ir.Local(own("column"), index)
    kinds = {n: value_type(signature.parameters[n]) for n in given.arrays}
    place = build.add(build.multiply(i, WIDTH), k)
    loads = tuple(ir.LoadRecord(n, place, pairs(n, kind)) for n, kind in kinds.items())
    values = [ir.Local(own(r.name), r.type) for r in f.results]
    sums = [ir.Local(sum_name(v.name), v.type) for v in values]
    apply = ir.Apply(f, tuple(ir.Local(p.name, p.type) for p in f.parameters), tuple(v.name for v in values))
    add = tuple(ir.Assign(s.name, ir.Binary("+", s, v, s.type)) for s, v in zip(sums, values, strict=True))
    columns = ir.For(
        k.name, ir.Literal(0, index), ir.Literal(WIDTH, index), ir.Literal(1, index), (*loads, apply, *add)
    )
    results = result_arrays(lowered)
    stores = tuple(
        ir.StoreRecord(n, i, tuple((leaf, ir.Local(sum_name(v), scalar_of(kind))) for leaf, v in pairs(n, kind)))
        for n, kind in results
    )
    zeros = tuple(ir.Assign(s.name, ir.Literal(0.0 if s.type.is_float else 0, s.type)) for s in sums)
    loop = ir.Parallel(i.name, ir.Local(COUNT, index), (*zeros, columns, *stores))
    arrays = [value_array(n, kind, written=False) for n, kind in kinds.items()]
    arrays += [value_array(n, kind, written=True) for n, kind in results]
    uniforms = uniform_leaves(f, {n: value_type(signature.parameters[n]) for n in given.uniforms})
    return ir.Kernel(identifier(f.name), ROWWISE, tuple(arrays), uniforms, (count,), (loop,), location=f.location)


ROWWISE = Pattern("rowwise", host=HostCode(inline=True, widest_stride=WIDTH))
rowwise = kernel_of(Skeleton(ROWWISE, reference, counts, arguments=arguments))  # the line that registers it


def reference(table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The sums of the squares of each row, in float64."""
    return (table.astype(np.float64) ** 2).sum(axis=1)

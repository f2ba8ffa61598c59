"""threadwise: for every index, the statements of the function, which read and write arrays.

parallel for y in range($y.extent): parallel for x in range($x.extent)
    s = 0
    for k in range($a.shape1): load a[y, k]: a_1; load b[k, x]: b_1; s = s + a_1 * b_1
    store c[y, x] = s
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lanewise.frontend.function import Lowered, Signature, lower_function
from lanewise.ir import nodes as ir
from lanewise.ir.names import identifier
from lanewise.ir.traverse import adds_in_order, statements
from lanewise.ir.values import value_array
from lanewise.language import types as t
from lanewise.language.types import Scalar
from lanewise.launch.arguments import Arguments
from lanewise.launch.support import value_type
from lanewise.passes.index_tests import OUTSIDE, Guards, guarded
from lanewise.patterns.own_values import with_own_values
from lanewise.patterns.results import total_type
from lanewise.patterns.tables.indices import with_bounded_indices
from lanewise.patterns.tables.names import extent_of, length_of
from lanewise.patterns.tables.returns import without_returns
from lanewise.patterns.threadwise.pattern import IN_ORDER, THREADWISE
from lanewise.patterns.threadwise.totals import RESULT, summed, with_value
from lanewise.patterns.words import exactly_summed, with_exact_sums


@dataclass(frozen=True, slots=True)
class ThreadwiseArguments:
    """The indices (the slowest first), the arrays (type of an element, number of dimensions) and
    the uniform arguments.

    index: the type of the indices. narrow: no array has more elements than 32 bits count.
    multiples: of how many elements the rows of an array begin at multiples. guards: the tests of
    indices; without any there is no array for what fails. summed: whether a result is summed over
    the index space, or left in its variable.
    """

    indices: tuple[str, ...]
    arrays: Mapping[str, tuple[Scalar, int]]
    uniforms: Mapping[str, t.ValueType]
    index: Scalar
    narrow: bool
    multiples: Mapping[str, int] = field(default_factory=dict[str, int])
    guards: Guards = ()
    summed: bool = True


def build_kernel(
    lowered: Lowered,
    signature: Signature,
    classified: Arguments,
    *,
    guards: Guards = (),
    summed: bool = True,
) -> ir.Kernel:
    """The reference kernel of a call; its indices are as wide as the call needs."""
    wide, narrow, *rest = classified.variant
    multiples: Any = rest[0] if rest else (1,) * len(signature.arrays)
    function = lower_function(signature, index=t.I64).function if wide else lowered.function
    sums = exactly_summed(signature, classified)
    arrays = {
        n: (t.I64 if n in sums else kind.element, kind.rank) for n, kind in signature.arrays.items()
    }
    uniforms = {n: value_type(signature.parameters[n]) for n in signature.parameters}
    arguments = ThreadwiseArguments(
        signature.indices, arrays, uniforms, t.I64 if wide else t.I32, narrow=bool(narrow),
        multiples=dict(zip(arrays, multiples, strict=True)), guards=guards, summed=summed,
    )  # fmt: skip
    kinds = {n: kind for n, (kind, _) in arrays.items()}
    return build_threadwise(
        replace(function, body=with_exact_sums(function.body, kinds)), arguments
    )


def one_thread(function: ir.Function) -> ir.Block:
    """The statements of a thread: no return, and a result in a variable.

    Raises `CompileError` for a return in a loop.
    """
    result = function.results[0].type if function.results else None
    body = function.body if result is None else with_value(function.body, result)
    return with_bounded_indices(without_returns(body))


def build_threadwise(function: ir.Function, arguments: ThreadwiseArguments) -> ir.Kernel:
    """The reference kernel: the function's body for each point of the index space.

    Raises `CompileError` for a return in a loop.
    """
    index = arguments.index
    result = function.results[0].type if function.results and arguments.summed else None
    body = one_thread(function)
    if arguments.guards:
        kinds = {n: kind for n, (kind, _) in arguments.arrays.items()}
        place = tuple(ir.Local(i, index) for i in arguments.indices)
        tested = guarded(body, arguments.guards, kinds, lambda array: index)
        body = (*tested, ir.StoreElement(OUTSIDE, place, ir.Local(OUTSIDE, t.I64)))
    written = {s.array for s in statements(body) if isinstance(s, ir.ElementWrite)}
    arrays: list[ir.ArrayArgument] = []
    counts = [ir.Parameter(extent_of(i), index) for i in arguments.indices]
    for name, (kind, rank) in arguments.arrays.items():
        shape = tuple(length_of(name, d) for d in range(rank))
        counts += [ir.Parameter(n, index) for n in shape]
        plain = value_array(name, kind, written=name in written)
        multiple = arguments.multiples.get(name, 1)
        arrays.append(replace(plain, shape=shape, narrow=arguments.narrow, multiple=multiple))
    if arguments.guards:
        extents = tuple(extent_of(i) for i in arguments.indices)
        arrays.append(replace(value_array(OUTSIDE, t.I64, written=True), shape=extents))
    used = {p.name for p in function.parameters}
    uniforms = tuple(
        ir.Parameter(leaf, t.scalar_of(kind))
        for name, kind in arguments.uniforms.items()
        for leaf in t.leaves(name, kind)
        if leaf in used
    )
    body = with_own_values(body, uniforms)
    if result is not None:
        body = summed(body, result, arguments.indices, index)
        arrays.append(
            replace(value_array(RESULT, total_type(result), written=True), shape=(1,), narrow=True)
        )
    else:
        for i in reversed(arguments.indices):
            body = (ir.Parallel(i, ir.Local(extent_of(i), index), body),)
    return ir.Kernel(
        identifier(function.name),
        IN_ORDER if adds_in_order(body) else THREADWISE,
        tuple(arrays),
        uniforms,
        tuple(counts),
        body,
        location=function.location,
    )

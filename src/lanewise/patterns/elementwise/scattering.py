"""elementwise functions that scatter to arrays besides their element.

def deposit(p: Particle, density: lw.Array1[lw.f32]): lw.scatter_add(density, p.cell, p.mass) ->
parallel for $i in range($count): load p[$i]; scatter sum density[p.cell], p.mass The function is no
function any more but the body of the loop, as in threadwise kernels: it touches its own memory.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

from lanewise.frontend.function import Lowered
from lanewise.ir import nodes as ir
from lanewise.ir.folds import neutral
from lanewise.ir.names import length_of, own
from lanewise.ir.pattern import Checked, HostCode, Pattern, Work, elementary_plan
from lanewise.ir.traverse import adds_in_order, flat_map, statements
from lanewise.ir.values import value_array
from lanewise.language.target import Machine, Target
from lanewise.language.types import I32, Scalar
from lanewise.passes import independent_loops
from lanewise.passes.base import refuse
from lanewise.patterns.elements import NARROW
from lanewise.patterns.elementwise.build import ElementwiseArguments, build_elementwise
from lanewise.patterns.own_values import with_own_values
from lanewise.patterns.sums_in_order import described, parts_of, unfit
from lanewise.patterns.tables.arguments import numbers
from lanewise.patterns.tables.indices import with_bounded_indices
from lanewise.patterns.tables.races import refuse_races
from lanewise.patterns.tables.returns import without_returns
from lanewise.patterns.words import with_exact_sums
from lanewise.planning.plan import CompletePlan, Plan
from lanewise.support.errors import CompileError

ELEMENT = own("i")


def _divide(
    kernel: ir.Kernel, target: Target, checked: Checked, fast_math: bool
) -> tuple[ir.Kernel, ...]:
    raise refuse("branch splitting", kernel, "an element would scatter once for each side")


SCATTERING = Pattern(
    "elementwise",
    one_record=True,
    inlined=True,
    host=HostCode(inline=True, widest_stride=NARROW),
    divide=_divide,
    whole=independent_loops.legal,
)


def _plan_in_order(machine: Machine, work: Work, requested: Plan) -> CompletePlan:
    return replace(elementary_plan(machine, work, requested), parts=parts_of(machine, work))


IN_ORDER = replace(
    SCATTERING, in_order=True, default_plan=_plan_in_order, describe=described, unfit=unfit
)
"""Of those that add floats one after the other on a CPU."""


@dataclass(frozen=True, slots=True)
class ScatteredArrays:
    """The arrays of a call: types of elements (of words, where floats are summed) and numbers of
    dimensions.

    scattered: those that are scattered to; the others are tables. index: the type of the lengths of
    the former. narrow: none has more elements than 32 bits count.
    """

    arrays: Mapping[str, tuple[Scalar, int]]
    scattered: Container[str]
    index: Scalar
    narrow: bool


def element_body(function: ir.Function) -> ir.Block:
    """The statements for one element, with its results in variables.

    Raises `CompileError` for a return in a loop.
    """
    results = [(own(r.name), r.type) for r in function.results]

    def visit(s: ir.Statement) -> ir.Block:
        if not isinstance(s, ir.Return):
            return (s,)
        stores = tuple(
            ir.Assign(n, v, s.location) for (n, _), v in zip(results, s.values, strict=True)
        )
        return (*stores, ir.Return((), s.location))

    several = sum(isinstance(s, ir.Return) for s in statements(function.body)) > 1
    begin = (
        tuple(ir.Assign(n, neutral("or" if k.kind == "b" else "+", k)) for n, k in results)
        if several
        else ()
    )
    return with_bounded_indices(without_returns((*begin, *flat_map(function.body, visit))))


def build_scattering(
    lowered: Lowered, arguments: ElementwiseArguments, shaped: ScatteredArrays, index: Scalar
) -> ir.Kernel:
    """The reference kernel. Raises `CompileError` for an array that is scattered to and touched in
    another way.

    arguments: those without an index. Reads have an index for each dimension, as scatters have.
    """
    refuse_same(lowered)
    assert lowered.indexed is not None
    plain = build_elementwise(replace(lowered, function=lowered.indexed), arguments, index)
    (loop,) = plain.body
    assert isinstance(loop, ir.Parallel)
    kinds = {n: kind for n, (kind, _) in shaped.arrays.items()}
    body = with_exact_sums(element_body(lowered.indexed), kinds)
    refuse_races((ELEMENT,), body)
    place = numbers(lowered, dict.fromkeys(lowered.numbered, ir.Local(ELEMENT, index)))
    body = (*(ir.Assign(n, e) for n, e in place.items()), *with_own_values(body, plain.uniforms))
    inside: list[ir.Statement] = []
    for s in loop.body:
        inside += body if isinstance(s, ir.Apply) else (s,)
    written = {s.array for s in statements(body) if isinstance(s, ir.ElementWrite)}
    arrays, counts = list(plain.arrays), list(plain.counts)
    for name, (kind, rank) in shaped.arrays.items():
        shape = tuple(length_of(name, d) for d in range(rank))
        counts += [
            ir.Parameter(n, shaped.index if name in shaped.scattered else I32) for n in shape
        ]
        arrays.append(
            replace(
                value_array(name, kind, written=name in written), shape=shape, narrow=shaped.narrow
            )
        )
    return replace(
        plain,
        pattern=IN_ORDER if adds_in_order(body) else SCATTERING,
        arrays=tuple(arrays),
        counts=tuple(counts),
        body=(replace(loop, body=tuple(inside)),),
    )


def refuse_same(lowered: Lowered) -> None:
    """Raise `CompileError` for what asks about pairs."""
    if lowered.uses_same:
        raise CompileError(
            "lw.same asks about the pairs of a pairwise function", lowered.function.location,
            found="an elementwise function", wanted="a comparison of values",
        )  # fmt: skip

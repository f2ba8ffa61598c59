"""pairwise: for every target, the sum of a function over all sources.

The pattern of sums over pairs: on a CPU sources in SIMD lanes, on a GPU tiles of them, or each pair computed once for both sides.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanewise import types as t
from lanewise.frontend.function import Lowered
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import count_of, identifier, own
from lanewise.ir.pattern import HostCode, Pattern
from lanewise.ir.values import pairs, record_array, uniform_leaves, value_array
from lanewise.layouts import Layout
from lanewise.patterns.pairwise.plans import default_plan
from lanewise.patterns.results import check_results, result_arrays, sum_name
from lanewise.record import Record
from lanewise.types import Scalar


@dataclass(frozen=True, slots=True)
class PairwiseArguments:
    """The two records (parameter name, record, layout), the uniforms, and whether both are the same array."""

    target: tuple[str, Record, Layout]
    source: tuple[str, Record, Layout]
    uniforms: dict[str, t.ValueType]
    identical: bool


def build_pairwise(lowered: Lowered, arguments: PairwiseArguments, index: Scalar) -> ir.Kernel:
    """The reference kernel: one target at a time, all sources in order. Raises `CompileError` for results that cannot be summed."""
    check_results(lowered)
    f = lowered.function
    i, j = ir.Local(own("i"), index), ir.Local(own("j"), index)
    target, load_target = _record(f, arguments.target, i)
    source, load_source = _record(f, arguments.source, j)
    target_count, source_count = (ir.Parameter(count_of(a.name), index) for a in (target, source))
    results = [ir.Local(own(r.name), r.type) for r in f.results]
    sums = {r.name: ir.Local(sum_name(r.name), r.type) for r in results}
    parameters: list[ir.Expression] = [ir.Local(p.name, p.type) for p in f.parameters]
    if lowered.uses_same:  # the last parameter
        parameters[-1] = build.equal(i, j) if arguments.identical else build.FALSE
    adds = tuple(ir.Assign(sums[r.name].name, ir.Binary("+", sums[r.name], r, r.type)) for r in results)
    body: ir.Block = (*load_source, ir.Apply(f, tuple(parameters), tuple(r.name for r in results)), *adds)
    zero, one = ir.Literal(0, index), ir.Literal(1, index)
    loop = ir.For(j.name, zero, ir.Local(source_count.name, index), one, body, role="sources")
    starts = tuple(ir.Assign(s.name, ir.Literal(0.0 if s.type.is_float else 0, s.type)) for s in sums.values())
    outputs = [value_array(name, kind, written=True) for name, kind in result_arrays(lowered)]
    stores = tuple(
        ir.StoreRecord(name, i, tuple((leaf, sums[v]) for leaf, v in pairs(name, kind)))
        for name, kind in result_arrays(lowered)
    )
    parallel = ir.Parallel(i.name, ir.Local(target_count.name, index), (*load_target, *starts, loop, *stores))
    uniforms = uniform_leaves(f, arguments.uniforms)
    return ir.Kernel(
        identifier(f.name),
        PAIRWISE,
        (target, source, *outputs),
        uniforms,
        (target_count, source_count),
        (parallel,),
        identical=arguments.identical,
        location=f.location,
    )


def _record(f: ir.Function, argument: tuple[str, Record, Layout], index: ir.Local) -> tuple[ir.ArrayArgument, ir.Block]:
    """The array of one of the two records, and the load of what the function uses of it, if anything."""
    name, record, layout = argument
    used = {p.name for p in f.parameters}
    reads = tuple((x.name, f"{name}.{x.name}") for x in record.leaves if f"{name}.{x.name}" in used)
    return record_array(name, record.leaves, layout, written=False), (
        ir.LoadRecord(name, index, reads),
    ) if reads else ()


GRAIN_WORK = 262_144  # element-source pairs worth handing to another thread: about 70 microseconds


def grain(sources: int) -> int:
    """Targets worth handing to another thread."""
    return max(1, GRAIN_WORK // sources)


PAIRWISE = Pattern("pairwise", over_pairs=True, host=HostCode(reassociate=True), default_plan=default_plan, grain=grain)

"""pairwise: for every target, the sum of a function over all sources."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise import types as t
from lanewise.frontend.function import Lowered
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.layouts import Layout
from lanewise.patterns.elementwise import result_arrays
from lanewise.patterns.values import pairs, record_array, value_array
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
    """The naive kernel: one target at a time, all sources in order."""
    f = lowered.function
    used = {p.name for p in f.parameters}
    arrays: list[ir.ArrayArgument] = []
    fetches: list[ir.Fetch] = []
    for (name, record, layout), variable in ((arguments.target, "i"), (arguments.source, "j")):
        arrays.append(record_array(name, record.leaves, layout, written=False))
        reads = tuple((x.name, f"{name}.{x.name}") for x in record.leaves if f"{name}.{x.name}" in used)
        fetches.append(ir.Fetch(name, ir.Local(variable, index), reads))
    target_count, source_count = (ir.Parameter(f"{a.name}.count", index) for a in arrays)
    sums = {r.name: ir.Local(f"sum.{r.name.removeprefix('result').lstrip('.') or 'value'}", r.type) for r in f.results}
    same = build.equal(ir.Local("i", index), ir.Local("j", index)) if arguments.identical else build.FALSE
    actual = tuple(same if p.name == "same" else ir.Local(p.name, p.type) for p in f.parameters)
    body: list[ir.Statement] = [fetches[1]] if fetches[1].reads else []
    body.append(ir.Apply(f, actual, tuple(r.name for r in f.results)))
    for r in f.results:
        total = sums[r.name]
        body.append(ir.Assign(total.name, ir.Binary("+", total, ir.Local(r.name, r.type), r.type)))
    loop = ir.For(
        "j", ir.Literal(0, index), ir.Local(source_count.name, index), ir.Literal(1, index), tuple(body), role="sources"
    )
    head: list[ir.Statement] = [fetches[0]] if fetches[0].reads else []
    head += [ir.Assign(s.name, ir.Literal(0.0 if s.type.is_float else 0, s.type)) for s in sums.values()]
    commits: list[ir.Statement] = []
    for name, kind in result_arrays(lowered):
        arrays.append(value_array(name, kind, written=True))
        commits.append(ir.Commit(name, ir.Local("i", index), tuple((leaf, sums[v]) for leaf, v in pairs(name, kind))))
    uniforms = tuple(
        ir.Parameter(leaf, t.scalar_of(kind)) for n, kind in arguments.uniforms.items() for leaf in t.leaves(n, kind) if leaf in used
    )
    parallel = ir.Parallel("i", ir.Local(target_count.name, index), (*head, loop, *commits))
    return ir.Kernel(
        f.name, "pairwise", tuple(arrays), uniforms, (target_count, source_count), (parallel,), location=f.location
    )

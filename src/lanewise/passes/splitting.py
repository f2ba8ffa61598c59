"""Divide the tiles of the sources over several blocks (parts), and add their sums in a second kernel, in order.

    for tile in range(a, b): ...; commit result[i]
->  for tile in range(max(a, first), min(b, last)): ...; commit partial[part * n + i]        then: result[i] = sum of partial[part * n + i]
It costs scratch memory of one result a target and part; it serves launches with so few targets that slices cannot fill the GPU.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import flat_map, statements
from lanewise.passes.base import refuse


def legal(kernel: ir.Kernel, parts: int) -> str | None:
    """Why the pass does not apply, or None."""
    if parts < 1:
        return f"{parts} parts"
    if not any(isinstance(s, ir.For) and s.role == "tiles" for s in statements(kernel.body)):
        return "its sources are not cut into tiles"
    return None


def apply(kernel: ir.Kernel, parts: int) -> tuple[ir.Kernel, ir.Kernel]:
    """The kernel that leaves partial sums in `partial.*` arrays, and the kernel that adds them."""
    if reason := legal(kernel, parts):
        raise refuse("splitting of sources", kernel, reason)
    written = [a for a in kernel.arrays if a.written and a.space == "global"]
    partial = {a.name: replace(a, name=f"partial.{a.name}") for a in written}
    count = kernel.counts[0]
    n = ir.Local(count.name, count.type)
    part = ir.Local("part", count.type)
    tiles = next(s for s in reversed(list(statements(kernel.body))) if isinstance(s, ir.For) and s.role == "tiles").stop
    per_part = build.ceil_divide(tiles, parts)
    first, last = ir.Local("first.tile", count.type), ir.Local("last.tile", count.type)
    bounds = (ir.Assign(first.name, build.multiply(part, per_part)), ir.Assign(last.name, build.add(first, per_part)))

    def visit(s: ir.Statement) -> ir.Block:
        match s:
            case ir.For(role="tiles"):
                return (replace(s, start=build.maximum(s.start, first), stop=build.minimum(s.stop, last)),)
            case ir.Commit() if s.array in partial:
                return (replace(s, array=partial[s.array].name, index=build.add(build.multiply(part, n), s.index)),)
            case ir.Parallel(variable="block"):
                return (ir.Parallel("part", ir.Literal(parts, count.type), (*bounds, s)),)
            case _:
                return (s,)

    arrays = tuple(partial.get(a.name, a) for a in kernel.arrays)
    split = replace(kernel, arrays=arrays, body=flat_map(kernel.body, visit))
    return split, _combine(kernel, written, partial, parts)


def _combine(kernel: ir.Kernel, written: list[ir.ArrayArgument], partial: dict[str, ir.ArrayArgument], parts: int) -> ir.Kernel:
    count = kernel.counts[0]
    n, i, part = (ir.Local(name, count.type) for name in (count.name, "i", "part"))
    body: list[ir.Statement] = []
    for a in written:
        names = {x.name: f"{a.name}.{x.name}" for x in a.leaves}
        body += [ir.Assign(names[x.name], ir.Literal(0.0 if x.type.is_float else 0, x.type)) for x in a.leaves]
        index = build.add(build.multiply(part, n), i)
        fetch = ir.Fetch(partial[a.name].name, index, tuple((x.name, f"part.{names[x.name]}") for x in a.leaves))
        adds = tuple(
            ir.Assign(names[x.name], ir.Binary("+", ir.Local(names[x.name], x.type), ir.Local(f"part.{names[x.name]}", x.type), x.type))
            for x in a.leaves
        )
        zero, one = ir.Literal(0, count.type), ir.Literal(1, count.type)
        body.append(ir.For("part", zero, ir.Literal(parts, count.type), one, (fetch, *adds)))
        body.append(ir.Commit(a.name, i, tuple((x.name, ir.Local(names[x.name], x.type)) for x in a.leaves)))
    arrays = (*(replace(p, written=False) for p in partial.values()), *written)
    return ir.Kernel(f"{kernel.name}_combine", "combine", arrays, (), (count,), (ir.Parallel("i", n, tuple(body)),), location=kernel.location)


def scratch_arrays(kernel: ir.Kernel) -> tuple[ir.ArrayArgument, ...]:
    """The arrays of partial sums, if the kernel was split; `parts` results for every target."""
    return tuple(a for a in kernel.arrays if a.name.startswith("partial.") and a.written)



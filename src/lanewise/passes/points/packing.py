"""Pack what all rows of a block read in a loop: side by side, in the order in which it is read.

    for k in range(n): load b[k, x]: v; ...   for many y   ->   for k in range(min(n, 2048)):
    $packed[k, lane] = b[k, x]
                                                              then for each y: for k in range(min(n,
                                                              2048)): load $packed[k, lane]: v; ...
                                                                               for k in range(min(n,
                                                                               2048), n): load b[k,
                                                                               x]: v; ...
Rows of a matrix that lie a power of two apart share few lines of a cache. Packed they stay there,
and are read one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lanewise.analysis.affine import Affine, AffineAccess, accesses
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import flat_map, reads, rewrite
from lanewise.ir.values import shared_values
from lanewise.passes.points import merging
from lanewise.passes.points.shape import Shape, first_of, thread_of

ROUND = own("packed.round")


@dataclass(frozen=True, slots=True)
class Operand:
    """A load of a loop that all rows share: the loop, and which of the indices is its variable."""

    load: ir.LoadElement
    loop: ir.For
    along: int


@dataclass(frozen=True, slots=True)
class Packed:
    """A kernel whose loops read packed elements, and the statements that pack them for a block."""

    kernel: ir.Kernel
    before: ir.Block


def nothing(kernel: ir.Kernel) -> Packed:
    """The kernel as it is."""
    return Packed(kernel, ())


def operands(kernel: ir.Kernel, shape: Shape, rounds: int) -> tuple[Operand, ...]:
    """The loads that are worth packing; none where rounds are no number of them."""
    loops, body = merging.nest(kernel)
    names = tuple(x.variable for x in loops)
    if len(names) < 2 or rounds < 1 or any(p > 1 for p in shape.points[:-2]):
        return ()
    loads = (_operand(kernel, a, names, body) for a in accesses(body, names))
    return tuple(o for o in loads if o is not None)


def _operand(
    kernel: ir.Kernel, a: AffineAccess, names: tuple[str, ...], body: ir.Block
) -> Operand | None:
    s = a.statement
    if (
        not isinstance(s, ir.LoadElement)
        or kernel.array(a.array).written
        or a.guards
        or len(a.loops) != 1
    ):
        return None
    loop = a.loops[0]
    statement = loop.statement
    if not loop.shared or not isinstance(statement, ir.For) or statement not in body:
        return None
    if statement.start != ir.Literal(0, statement.start.type) or statement.step != ir.Literal(
        1, statement.step.type
    ):
        return None
    if a.way(names[-2]) != "same" or a.indices[-1] != Affine(((names[-1], 1),)):
        return None
    along = [n for n, i in enumerate(a.indices) if i == Affine(((loop.variable, 1),))]
    others = [i for n, i in enumerate(a.indices[:-1]) if n not in along]
    steady = {*names[:-2], *(p.name for p in kernel.counts + kernel.uniforms)}
    if any(not steady.issuperset(reads(x)) for n, x in enumerate(s.indices[:-1]) if n not in along):
        return None
    if len(along) != 1 or any(
        i is None or loop.variable in i.variables or names[-1] in i.variables for i in others
    ):
        return None
    return Operand(s, statement, along[0])


def apply(kernel: ir.Kernel, shape: Shape, rounds: int) -> Packed:
    """The kernel with its loops over packed rounds, and over those that are too many to pack."""
    loops, body = merging.nest(kernel)
    last, kind = loops[-1], loops[-1].extent.type
    side = shape.side(len(loops) - 1)
    chosen = operands(kernel, shape, rounds)
    names: dict[ir.LoadElement, str] = {}
    before: list[ir.Statement] = []
    arrays: list[ir.ArrayArgument] = []
    for n, o in enumerate(chosen):
        if o.load in names:
            continue
        names[o.load] = name = own(f"packed.{n}")
        scalar = kernel.array(o.load.array).leaves[0].type
        arrays.append(shared_values(name, scalar, rounds, side))
        before.append(_filling(kernel, o, name, shape, rounds))
    before.append(ir.Barrier())
    inside = {o.loop: None for o in chosen}

    def split(s: ir.Statement) -> ir.Block:
        if not isinstance(s, ir.For) or s not in inside:
            return (s,)
        end = build.minimum(s.stop, rounds)
        place = build.subtract(
            ir.Local(last.variable, kind), ir.Local(first_of(last.variable), kind)
        )
        first = replace(
            s, stop=end, body=flat_map(s.body, lambda x: (_read(x, names, chosen, place),))
        )
        return first, replace(s, start=end)

    inner = flat_map(body, split)
    for loop in reversed(loops):
        inner = (replace(loop, body=inner),)
    return Packed(replace(kernel, body=inner, arrays=(*kernel.arrays, *arrays)), tuple(before))


def _read(
    s: ir.Statement,
    names: Mapping[ir.LoadElement, str],
    chosen: tuple[Operand, ...],
    place: ir.Expression,
) -> ir.Statement:
    if not isinstance(s, ir.LoadElement) or s not in names:
        return s
    along = next(o.along for o in chosen if o.load == s)
    return replace(s, array=names[s], indices=(s.indices[along], place))


def _filling(kernel: ir.Kernel, o: Operand, name: str, shape: Shape, rounds: int) -> ir.Statement:
    """Bring the packed rounds of a block; beyond the end of the last index they are zero."""
    loops, _ = merging.nest(kernel)
    last, kind = loops[-1].variable, loops[-1].extent.type
    first, lane = ir.Local(first_of(last), kind), ir.Local(thread_of(last), kind)
    count, side = shape.threads[-1], shape.side(len(loops) - 1)
    value = ir.Local(own("packed.value"), kernel.array(o.load.array).leaves[0].type)
    round_ = ir.Local(ROUND, o.loop.start.type)

    def body(*, tested: bool) -> ir.Block:
        done: list[ir.Statement] = []
        for p in range(shape.points[-1]):
            within = build.add(lane, p * count)
            at = build.add(first, within)
            indices = tuple(
                round_ if d == o.along else _begun(i, loops)
                for d, i in enumerate(o.load.indices[:-1])
            )
            load = replace(o.load, indices=(*indices, at), name=value.name)
            if tested:
                zero = ir.Assign(value.name, build.zero(value.type))
                done += [zero, ir.If(build.less(at, loops[-1].extent), (load,))]
            else:
                done.append(load)
            done.append(ir.StoreElement(name, (round_, within), value))
        return tuple(done)

    end = build.minimum(o.loop.stop, rounds)
    inside = ir.Compare("<=", build.add(first, side), loops[-1].extent)

    def rounds_of(block: ir.Block) -> ir.Block:
        return (ir.For(ROUND, o.loop.start, end, ir.Literal(1, o.loop.start.type), block),)

    return ir.If(inside, rounds_of(body(tested=False)), rounds_of(body(tested=True)))


def _begun(e: ir.Expression, loops: tuple[ir.Parallel, ...]) -> ir.Expression:
    """An index in the words of a block, whose slower indices have one value."""
    names = {x.variable for x in loops}
    return rewrite(
        e,
        lambda x: (
            replace(x, name=first_of(x.name)) if isinstance(x, ir.Local) and x.name in names else x
        ),
    )

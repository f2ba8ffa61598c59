"""Divide a thread's loop over several blocks (parts), and join what they gather in a second kernel,
in order.

    parallel for y: s = 0; for k in range(n): s += f(k); store r[y] = s
->  parallel for part: parallel for y: own = 0; for k in [part * chunk, (part + 1) * chunk): own +=
f(k); store partial[part, y] = own
    parallel for y: s = 0; for part: load partial[part, y]: v; s += v; store r[y] = s
Both kernels are reference kernels again: their points are mapped to threads, and their loops
shared, as those of any other. A loop over rows with a loop over columns in it is divided in both:
columns in pieces of `PIECE`, and rows turn by turn, as the parts of a GPU run side by side, or as
neighbours, which a thread of a CPU reads one after the other.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.analysis.affine import nest, nest_of
from lanewise.analysis.reductions import Shareable, is_steady
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.folds import join, neutral
from lanewise.ir.names import MARK, own, partial_of
from lanewise.ir.traverse import flat_map, rename, statements, written_in
from lanewise.ir.values import value_array
from lanewise.ir.verify import RANK
from lanewise.language.types import I64
from lanewise.passes import dead_code
from lanewise.passes.base import refuse
from lanewise.passes.loop_sharing import legal as legal_sharing
from lanewise.passes.shared_loops import nest_index, shareable_loops, with_inner

PART = own("part")
PIECE = 16_384  # rounds of an inner loop that are worth a part
WHOLE = 32  # rounds: parts begin at multiples


def legal(kernel: ir.Kernel, parts: int) -> str | None:
    """Why the pass does not apply, or None."""
    if parts < 1:
        return f"{parts} parts were requested"
    if reason := legal_sharing(kernel):
        return reason
    if len(nest(kernel)[0]) >= RANK:
        return (
            "each part leaves a value for every point, in an array of one dimension more, and "
            f"arrays have {RANK} at most"
        )
    _, body = nest_of(kernel)
    if len([s for s in body if isinstance(s, ir.For | ir.While)]) > 1:
        return "its loops follow one another, and each needs all that the one before it gathered"
    (shareable,) = shareable_loops(kernel).values()
    if shareable.stores:
        return "its loop writes elements: give them their own indices, and every part is a thread"
    if not (isinstance(shareable.loop.step, ir.Literal) and shareable.loop.step.value > 0):
        return "its loop does not count up by a literal step"
    if late := [f.name for f in shareable.folds if f.carried and "=" in f.operation]:
        return (
            f"{late[0]} carries along what belongs to the last of equal elements, and a part that "
            "found none looks like one that did"
        )
    return None


def apply(
    kernel: ir.Kernel, parts: int, *, neighbours: bool = False
) -> tuple[ir.Kernel, ir.Kernel]:
    """The kernel that leaves what each part gathered in `$partial.*` arrays, and the kernel that
    joins it.

    neighbours: whether the rows of a part follow each other.
    """
    if reason := legal(kernel, parts):
        raise refuse("splitting of loops", kernel, reason)
    ((at, shareable),) = shareable_loops(kernel).items()
    _, body = nest_of(kernel)
    index = nest_index(kernel)
    part = ir.Local(PART, index)
    points, _ = nest(kernel)
    place = tuple(ir.Local(p.variable, index) for p in points)
    shape = (
        parts,
        *(
            int(p.extent.value) if isinstance(p.extent, ir.Literal) else named(p.extent)
            for p in points
        ),
    )
    gathered = _gathered(shareable)
    arrays = tuple(
        replace(
            value_array(partial_of(f.name), f.type, written=True), shape=shape, narrow=index != I64
        )
        for f in gathered
    )
    mine = {f.name: own(f"{f.name.removeprefix(MARK)}.part") for f in gathered}
    folds = {f.name: neutral(f.operation, f.type) for f in shareable.folds}
    begin = tuple(ir.Assign(mine[f.name], folds.get(f.name, build.zero(f.type))) for f in gathered)
    stores = tuple(
        ir.StoreElement(a.name, (part, *place), ir.Local(mine[f.name], f.type))
        for a, f in zip(arrays, gathered, strict=True)
    )
    head, loop = _share(shareable, part, parts, neighbours=neighbours)
    # the second kernel stores
    before = flat_map(body[:at], lambda s: () if isinstance(s, ir.StoreElement) else (s,))
    first_body = nested((*before, *begin, *head, *rename(loop, mine), *stores), points)
    length: ir.Expression = ir.Literal(parts, index)
    for p in points:
        length = build.multiply(p.extent, length)
    first = replace(
        kernel, arrays=(*(replace(a, written=False) for a in kernel.arrays), *arrays),
        body=(ir.Parallel(PART, ir.Literal(parts, index), first_body),),
        scratch=tuple(ir.Scratch(a.name, length) for a in arrays),
    )  # fmt: skip
    return clean(first), clean(_second(kernel, shareable, arrays, at, parts))


def _second(
    kernel: ir.Kernel,
    shareable: Shareable,
    arrays: tuple[ir.ArrayArgument, ...],
    at: int,
    parts: int,
) -> ir.Kernel:
    """The kernel that joins the parts, and continues with what follows the loop."""
    _, body = nest_of(kernel)
    (points, _), index = nest(kernel), nest_index(kernel)
    place, part = tuple(ir.Local(p.variable, index) for p in points), ir.Local(PART, index)
    rounds: list[ir.Statement] = []
    left = iter(arrays)
    for f in shareable.folds:
        pieces = {
            x.name: ir.Local(own(f"{x.name.removeprefix(MARK)}.piece"), x.type)
            for x in (f.variable, *f.carried)
        }
        rounds += [ir.LoadElement(next(left).name, (part, *place), p.name) for p in pieces.values()]
        piece = pieces[f.name]
        update = joined(f.name, join(f.operation, f.variable, piece), piece)
        if isinstance(update, ir.If):
            taken = tuple(ir.Assign(x.name, pieces[x.name]) for x in f.carried)
            update = replace(update, then=(*update.then, *taken))
        rounds.append(update)
    zero, one = ir.Literal(0, index), ir.Literal(1, index)
    loop = ir.For(PART, zero, ir.Literal(parts, index), one, tuple(rounds))
    return replace(
        kernel,
        name=f"{kernel.name}_combine",
        arrays=(*(replace(a, written=False) for a in arrays), *kernel.arrays),
        body=nested((*body[:at], loop, *body[at + 1 :]), points),
    )


def _gathered(shareable: Shareable) -> tuple[ir.Local, ...]:
    """The variables that a loop gathers in, with what they carry along."""
    return tuple(x for f in shareable.folds for x in (f.variable, *f.carried))


def joined(name: str, value: ir.Expression, piece: ir.Local) -> ir.Statement:
    """An update that is seen as one again."""
    if isinstance(value, ir.Select):
        return ir.If(value.condition, (ir.Assign(name, piece),))
    return ir.Assign(name, value)


def clean(kernel: ir.Kernel) -> ir.Kernel:
    """Without what only the other kernel reads."""
    cleaned = dead_code.apply(kernel)
    touched = {
        s.array for s in statements(cleaned.body) if isinstance(s, ir.LoadElement | ir.StoreElement)
    }
    written = {s.array for s in statements(cleaned.body) if isinstance(s, ir.StoreElement)}
    arrays = tuple(
        replace(a, written=a.name in written) for a in cleaned.arrays if a.name in touched
    )
    return replace(cleaned, arrays=arrays)


def nested(body: ir.Block, points: tuple[ir.Parallel, ...]) -> ir.Block:
    """A body within parallel loops."""
    for p in reversed(points):
        body = (replace(p, body=body),)
    return body


def named(extent: ir.Expression) -> str:
    """The count that an extent is."""
    assert isinstance(extent, ir.Local)
    return extent.name


# ------------------------------------------------------------ shares


def _share(
    shareable: Shareable, part: ir.Local, parts: int, *, neighbours: bool
) -> tuple[ir.Block, ir.Block]:
    """What is computed once, and the nest with the rounds of one part."""
    loop, inner = shareable.loop, shareable.inner
    changed = frozenset(written_in(loop.body)) | {loop.variable}
    steady = all(is_steady(e, changed) for e in (inner.start, inner.stop, inner.step))
    counts_up = isinstance(inner.step, ir.Literal) and inner.step.value > 0
    if not shareable.is_nest:
        head, start, stop = _chunk(loop, part, ir.Literal(parts, part.type), "part")
        return head, (replace(loop, start=start, stop=stop),)
    if not (steady and counts_up):
        head, rows_of_part = _rows(loop, part, ir.Literal(parts, part.type), neighbours=neighbours)
        return head, (rows_of_part,)
    pieces, rows, row, piece = (
        ir.Local(own(n), part.type) for n in ("pieces", "rows", "row", "piece")
    )
    wide = build.divide(build.add(_wide(build.subtract(inner.stop, inner.start)), PIECE - 1), PIECE)
    several = build.minimum(build.maximum(wide, 1), parts)
    first = (
        ir.Assign(pieces.name, build.index_of(several, part.type)),
        ir.Assign(rows.name, build.divide(ir.Literal(parts, part.type), pieces)),
        ir.Assign(row.name, build.divide(part, pieces)),
        ir.Assign(piece.name, build.subtract(part, build.multiply(row, pieces))),
    )
    head, start, stop = _chunk(inner, piece, pieces, "piece")
    outer, rows_of_part = _rows(loop, row, rows, neighbours=neighbours)
    if not neighbours:  # rows that do not divide evenly leave parts without any
        none = ir.Select(build.less(row, rows), loop.stop, loop.start, loop.stop.type)
        rows_of_part = replace(rows_of_part, stop=none)
    nest = with_inner(rows_of_part, inner, (replace(inner, start=start, stop=stop),))
    return (*first, *head, *outer), nest


def _rows(
    loop: ir.For, number: ir.Expression, count: ir.Expression, *, neighbours: bool
) -> tuple[ir.Block, ir.For]:
    """What is computed once, and the rounds of one part of a loop over rows: neighbours, or every
    `count`-th one.
    """
    if not neighbours:
        return (), _turns(loop, number, count)
    head, start, stop = _chunk(loop, number, count, "rows", 1)
    return head, replace(loop, start=start, stop=stop)


def _turns(loop: ir.For, number: ir.Expression, count: ir.Expression) -> ir.For:
    """Every `count`-th round, from one on."""
    kind = loop.start.type
    start = build.add(loop.start, build.multiply(build.index_of(number, kind), loop.step))
    return replace(loop, start=start, step=build.multiply(build.index_of(count, kind), loop.step))


def _chunk(
    loop: ir.For, number: ir.Expression, count: ir.Expression, name: str, multiple: int = WHOLE
) -> tuple[ir.Block, ir.Expression, ir.Expression]:
    """Neighbouring rounds: where those of one part begin and end. Places are computed in 64 bits:
    chunks reach beyond the end.

    multiple: of which their numbers are, but for the last part.
    """
    assert isinstance(loop.step, ir.Literal)
    step, kind = int(loop.step.value), loop.start.type
    start, stop = _wide(loop.start), _wide(loop.stop)
    chunk, first = ir.Local(own(f"{name}.rounds"), I64), ir.Local(own(f"{name}.first"), I64)
    rounds = build.divide(
        build.add(build.subtract(stop, start), multiple * step - 1), multiple * step
    )
    each = build.divide(build.subtract(build.add(rounds, _wide(count)), 1), _wide(count))
    head = (
        ir.Assign(chunk.name, build.multiply(each, multiple * step)),
        ir.Assign(first.name, build.add(start, build.multiply(_wide(number), chunk))),
    )
    # The end as a multiple: a begin stays one, and fits its type.
    up = build.multiply(
        build.divide(build.add(stop, multiple * step - 1), multiple * step), multiple * step
    )
    begin = (
        build.index_of(build.minimum(build.minimum(first, up), 2**31 - multiple * step), kind)
        if kind != I64
        else first
    )
    end = build.index_of(build.minimum(build.add(first, chunk), stop), kind)
    # A part without rounds ends where it begins, also where that was moved.
    return head, begin, ir.Select(build.less(first, stop), end, begin, kind)


def _wide(e: ir.Expression) -> ir.Expression:
    return build.index_of(e, I64)

"""Make an index of threads of the loop that writes: its rounds are separate points.

parallel for y: for j in range(n):                parallel for y: parallel for j in range(n):
    s = 0                                             s = 0
    for k in range(m): s = s + q[y, k] * b[j, k]  ->  for k in range(m): s = s + q[y, k] * b[j, k]
    store c[y, j] = s                                 store c[y, j] = s
Points of a thread, tiles and neighbours are then chosen along it as along any other index. Nothing
changes in a round, so no bit does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lanewise.analysis.affine import AffineAccess, accesses, nest
from lanewise.analysis.dependence import NONE, assigned_often, dependence
from lanewise.analysis.reductions import folds_of
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import expressions, reads, rewrite, statements, subexpressions

MOST = 3  # indices
CHEAP = frozenset({"min", "max", "abs", "fma", "clamp", "floor", "ceil", "trunc", "round"})
"""Functions that are worth computing again for each round."""


@dataclass(frozen=True, slots=True)
class _Writing:
    """What becomes an index. start, extent: of its rounds, by counts and uniforms alone."""

    before: ir.Block
    loop: ir.For
    start: ir.Expression
    extent: ir.Expression
    position: int


def legal(kernel: ir.Kernel) -> str | None:
    """Why the pass does not apply, or None."""
    found = _writing(kernel)
    return found if isinstance(found, str) else None


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with one more index; the same object where the pass does not apply."""
    found = _writing(kernel)
    if isinstance(found, str):
        return kernel
    loops, _ = nest(kernel)
    loop, start = found.loop, found.start
    kind = start.type
    body, variable = (*found.before, *loop.body), loop.variable
    if start != ir.Literal(0, kind):
        variable = own(f"{loop.variable}.round")
        place = build.add(start, ir.Local(variable, kind))
        body = (ir.Assign(loop.variable, place, loop.location), *body)
    around = list(loops)
    around.insert(found.position, ir.Parallel(variable, found.extent, ()))
    for index in reversed(around):
        body = (replace(index, body=body),)
    return replace(kernel, body=body)


def _writing(kernel: ir.Kernel) -> _Writing | str:
    loops, body = nest(kernel)
    indices = tuple(x.variable for x in loops)
    if not 1 <= len(indices) < MOST:
        return f"it has {len(indices)} indices, and blocks have at most {MOST} dimensions"
    places = [n for n, s in enumerate(body) if any(map(_writes, statements((s,))))]
    if len(places) != 1 or not isinstance(loop := body[places[0]], ir.For):
        return "what it writes is not written by one loop over a range"
    before, after = body[: places[0]], body[places[0] + 1 :]
    if reason := _kept(before, loop, after):
        return reason
    found = accesses(body, indices)
    written = {a.array for a in found if a.is_store}
    if any(a.is_scatter or (a.array in written and not a.is_store) for a in found):
        return "it reads what it writes"
    names = (*indices, loop.variable)
    stores = [a for a in found if a.is_store]
    if not all(a.keeps_apart(names) for a in stores):
        return "two rounds, or two threads, may write one element"
    often = assigned_often(body)
    values = {s.name: s.value for s in before if isinstance(s, ir.Assign) and s.name not in often}
    start, stop = (_with_values(e, values) for e in (loop.start, loop.stop))
    known = {p.name for p in (*kernel.counts, *kernel.uniforms)}
    hangs = dependence(body, indices).expressions((loop.start, loop.stop))
    if hangs != NONE or not {n for e in (start, stop) for n in reads(e)} <= known:
        return f"how often the loop over {loop.variable} runs is not known before threads do"
    if start.type != loops[0].extent.type:
        return f"{loop.variable} is counted in {start.type}, and indices in {loops[0].extent.type}"
    zero = ir.Literal(0, start.type)
    extent = stop if start == zero else build.subtract(stop, start)
    if not isinstance(extent, ir.Local) or extent.name not in {c.name for c in kernel.counts}:
        extent = build.maximum(zero, extent)  # counts are never below zero
    return _Writing(before, loop, start, extent, _position(stores, indices, loop.variable))


def _writes(s: ir.Statement) -> bool:
    return isinstance(s, ir.ElementWrite)


def _kept(before: ir.Block, loop: ir.For, after: ir.Block) -> str | None:
    """Why rounds cannot stand alone, or None."""
    if after:
        return f"it continues after the loop over {loop.variable}"
    if loop.step != ir.Literal(1, loop.start.type):
        return f"the loop over {loop.variable} does not go round by round"
    if any(isinstance(s, ir.Continue | ir.Draw) for s in statements((*before, *loop.body))):
        return "its rounds jump, or draw random numbers in their order"
    folds = folds_of(loop, after)
    if isinstance(folds, str):
        return folds
    if folds:
        return f"{folds[0].name} gathers values from its rounds"
    for s in statements(before):
        if not isinstance(s, ir.Assign | ir.LoadElement):
            return "its rounds are prepared by more than some values"
        for e in expressions(s):
            calls = (x for x in subexpressions(e) if isinstance(x, ir.Call))
            if any(x.intrinsic not in CHEAP for x in calls):
                return "what is computed before its rounds is worth keeping"
    return None


def _with_values(e: ir.Expression, values: dict[str, ir.Expression]) -> ir.Expression:
    """An expression, with what its variables were given before."""
    for _ in values:
        new = rewrite(e, lambda x: values.get(x.name, x) if isinstance(x, ir.Local) else x)
        if new == e:
            break
        e = new
    return e


def _position(stores: list[AffineAccess], indices: tuple[str, ...], variable: str) -> int:
    """Of the new index among the others: as its place among the dimensions of what is written, but
    last where neighbouring rounds write neighbouring elements, and not where threads do.
    """
    last = sum(a.way(indices[-1]) == "next" for a in stores)
    new = sum(a.way(variable) == "next" for a in stores)
    if new >= last:
        return len(indices)
    own, *others = (_dimension(stores[0], name) for name in (variable, *indices[:-1]))
    return sum(d <= own for d in others)


def _dimension(access: AffineAccess, name: str) -> int:
    """The first dimension of an access that an index moves."""
    return next(
        (n for n, i in enumerate(access.indices) if i is not None and i.coefficient(name) != 0), 0
    )

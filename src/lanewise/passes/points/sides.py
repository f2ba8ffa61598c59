"""Give each side of the branch of a threadwise kernel its own kernel (Carrillo, Siegel and Li,
2009, figure 2).

    parallel for i: load mask[i]: m; if m == 0: <then> else: <otherwise>
->  parallel for i: load mask[i]: m; if m == 0: <then>          and
    parallel for i: load mask[i]: m; if not m == 0: <otherwise>
Both kernels look for themselves which side a point is on. So what the condition reads may not be
written by the kernel, and may compute nothing that two compilations round in two ways. Everything
else of a thread runs on its own side: each point belongs to one kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lanewise.analysis.affine import nest, nest_of
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.traverse import (
    expressions,
    loads,
    scatters,
    statements,
    stores,
    writes,
    written_in,
)
from lanewise.passes import dead_code
from lanewise.passes.base import refuse
from lanewise.passes.outputs import inexact, sliced

NAME = "branch splitting"


@dataclass(frozen=True, slots=True)
class _Divided:
    """What a thread does before its branch, the branch, and what follows."""

    before: ir.Block
    branch: ir.If
    after: ir.Block


def legal(kernel: ir.Kernel, *, fast_math: bool = False) -> str | None:
    """Why the pass does not apply, or None."""
    found = _find(kernel)
    if isinstance(found, str):
        return found
    written = {n for s in statements(kernel.body) for n in stores(s)}
    decided = _condition(found)
    read = {n for s in statements(decided) for n in loads(s)}
    if both := sorted(read & written):
        return (
            f"its condition reads {both[0]}, which the kernel writes: the second kernel would find "
            "other values"
        )
    blocks = (decided, *(f.body for f in functions(decided)))
    computed = [e for b in blocks for s in statements(b) for e in expressions(s)]
    if reason := inexact([found.branch.condition, *computed], fast_math=fast_math):
        return f"its condition {reason}, which two kernels may round in two ways"
    if any(not _writes(_side(found, side)) for side in (True, False)):
        return "one side of its branch does nothing, which needs no kernel"
    return None


def apply(kernel: ir.Kernel, *, fast_math: bool = False) -> tuple[ir.Kernel, ir.Kernel]:
    """The kernels of the two sides; raises `PlanError` for kernels without such a branch."""
    if reason := legal(kernel, fast_math=fast_math):
        raise refuse(NAME, kernel, reason)
    found = _find(kernel)
    assert isinstance(found, _Divided)
    return _kernel(kernel, found, True), _kernel(kernel, found, False)


def _find(kernel: ir.Kernel) -> _Divided | str:
    """The branch, or why there is none to split."""
    points, body = nest(kernel)
    if any(isinstance(p.extent, ir.Literal) for p in points):
        return "its points are summed: both kernels would have to add to one result"
    if scatters(body):
        return "its threads scatter, and each array is joined once"
    places = [n for n, s in enumerate(body) if isinstance(s, ir.If)]
    if not places:
        return "its threads have no separate branch outside of loops"
    if len(places) > 1:
        return (
            f"its threads have {len(places)} branches one after the other, which would make "
            f"{2 ** len(places)} kernels"
        )
    branch = body[places[0]]
    assert isinstance(branch, ir.If)
    return _Divided(body[: places[0]], branch, body[places[0] + 1 :])


def _condition(found: _Divided) -> ir.Block:
    """The statements that the condition needs."""
    test = ir.If(found.branch.condition, (ir.Return(()),))
    *kept, _ = sliced((*found.before, test), set(), lambda s: isinstance(s, ir.Return))
    return tuple(kept)


def _side(found: _Divided, side: bool) -> ir.Block:
    """All that a point of a side does, without what only the other side needs."""
    chosen = found.branch.then if side else found.branch.otherwise
    body = (*found.before, *chosen, *found.after)
    return sliced(body, set(), _is_written)


def _is_written(s: ir.Statement) -> bool:
    return isinstance(s, ir.ElementWrite)


def _writes(block: ir.Block) -> bool:
    return any(map(_is_written, statements(block)))


def _kernel(kernel: ir.Kernel, found: _Divided, side: bool) -> ir.Kernel:
    """The kernel of the points for which the condition is `side`."""
    decided, body = _condition(found), _side(found, side)
    early = written_in(decided)
    assigned = [n for s in statements(found.before) for n in writes(s)]
    if all(assigned.count(n) == 1 for n in early):  # their values are there already
        body = tuple(s for s in body if not any(s is d for d in decided))
    condition = found.branch.condition
    holds = condition if side else ir.Unary("not", condition, condition.type)
    points, _ = nest_of(kernel)
    inner: ir.Block = (*decided, ir.If(holds, body, location=found.branch.location))
    loops, _ = nest(kernel)
    for loop in reversed(loops):
        inner = (replace(loop, body=inner),)
    assert points
    whole = dead_code.apply(
        replace(kernel, name=f"{kernel.name}_{'if' if side else 'else'}", body=inner)
    )
    touched = {n for s in statements(whole.body) for n in (*loads(s), *stores(s))}
    written = {n for s in statements(whole.body) for n in stores(s)}
    arrays = tuple(replace(a, written=a.name in written) for a in whole.arrays if a.name in touched)
    return replace(whole, arrays=arrays)

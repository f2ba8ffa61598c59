"""Fetch a bulk site's populations before it is known to be one.

    fetch $marks; $special = ..; if $special: A  else: fetch f[n - e]; ..
->  fetch f[clamp(n - e)]; ..; fetch $marks; $special = ..; if $special: A
The mark and the populations arrive together; without it every site waits for memory twice. Special sites fetch again, by their word. The
places of bulk neighbours are clamped to the array, since a special site may lie at its end.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, own
from lanewise.passes.base import refuse

SPECIAL = own("special")


def legal(kernel: ir.Kernel) -> str | None:
    """Why the pass does not apply, or None."""
    if kernel.pattern != "sitewise":
        return "it has no sites that are special"
    if kernel.grid is not None:
        return "its elements are already mapped to threads"
    if _branch(kernel) is None:
        return "its sites fetch nothing from other sites before they know what they are"
    return None


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """Move the fetches of the bulk before the first statement of a site."""
    if reason := legal(kernel):
        raise refuse("prefetching", kernel, reason)
    branch = _branch(kernel)
    assert branch is not None
    (loop,) = kernel.body
    assert isinstance(loop, ir.Parallel)
    count = next(c for c in kernel.counts if c.name == COUNT)
    last = build.subtract(ir.Local(count.name, count.type), 1)
    early = tuple(_clamped(s, last) for s in branch.otherwise)
    declared = {s.name for s in early if isinstance(s, ir.Assign)}
    rest = (
        replace(s, otherwise=()) if s is branch else s
        for s in loop.body
        if not (isinstance(s, ir.Assign) and s.name in declared)  # the zeros that the branch would have replaced
    )
    return replace(kernel, body=(replace(loop, body=(*early, *rest)),))


def _branch(kernel: ir.Kernel) -> ir.If | None:
    """The branch between special and bulk sites whose bulk side fetches."""
    (loop,) = kernel.body
    if not isinstance(loop, ir.Parallel):
        return None
    for s in loop.body:
        if isinstance(s, ir.If) and isinstance(s.condition, ir.Local) and s.condition.name == SPECIAL:
            return s if any(isinstance(x, ir.Fetch) for x in s.otherwise) else None
    return None


def _clamped(s: ir.Statement, last: ir.Expression) -> ir.Statement:
    if isinstance(s, ir.Fetch) and not isinstance(s.index, ir.Local):
        return replace(s, index=build.minimum(build.maximum(s.index, 0), last))
    return s

"""Let a thread of a GPU compute several elements, so that more of them are on their way from memory
at the same time.

    parallel for i: load a[i]: x; apply; store r[i]
->  parallel for group: at#0 = group // 32 * 128 + group % 32; at#1 = at#0 + 32; ...; i#0 =
min(at#0, count - 1); ...
        load a[i#0]: x#0; load a[i#1]: x#1; ...; apply#0; apply#1; ...; if at#0 < count: store
        r[i#0]; ...
The elements of a warp are neighbours: of a thread they are 32 apart, and every access of the warp
is as coalesced as before. Elements beyond the end take the place of the last one, and store
nothing.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.names import COUNT, numbered, own
from lanewise.ir.traverse import rename
from lanewise.language.target import WARP
from lanewise.passes.base import refuse
from lanewise.passes.thread_merging import varying_names

MOST = 8  # elements of a thread
# that an element reads: with more, enough is on its way (bench/results/gpu_tables.md)
FEW_BYTES = 12
FEW_STATEMENTS = 24  # of a function whose registers several elements may have


def legal(kernel: ir.Kernel, targets: int) -> str | None:
    """Why the pass does not apply, or None."""
    if targets < 1 or targets > MOST or targets & (targets - 1):
        return f"a thread computes 1, 2, 4 or {MOST} elements; {targets} were requested"
    if (
        len(kernel.body) != 1
        or not isinstance(kernel.body[0], ir.Parallel)
        or kernel.grid is not None
    ):
        return "its elements are already mapped to threads"
    if not all(
        isinstance(s, ir.LoadRecord | ir.Apply | ir.StoreRecord) for s in kernel.body[0].body
    ):
        return (
            "it does more with its elements than to load them, to apply its function, and to store"
        )
    return None


def apply(kernel: ir.Kernel, targets: int) -> ir.Kernel:
    """`targets` elements per thread; 1 leaves the kernel unchanged."""
    if reason := legal(kernel, targets):
        raise refuse("thread merging", kernel, reason)
    loop = kernel.body[0]
    assert isinstance(loop, ir.Parallel)
    if targets == 1:
        return kernel
    index = loop.extent.type
    group, at = ir.Local(own("group"), index), own("at")
    first = build.add(
        build.multiply(build.divide(group, WARP), WARP * targets), build.remainder(group, WARP)
    )
    varying, last = varying_names(loop), build.subtract(loop.extent, 1)
    body: list[ir.Statement] = [ir.Assign(at, first)]
    for r in range(targets):
        place = ir.Local(numbered(at, r), index)
        body.append(ir.Assign(place.name, build.add(ir.Local(at, index), WARP * r)))
        body.append(ir.Assign(numbered(loop.variable, r), build.minimum(place, last)))
    for s in loop.body:
        for r in range(targets):
            (copy,) = rename((s,), {n: numbered(n, r) for n in varying})
            inside = build.less(ir.Local(numbered(at, r), index), loop.extent)
            body.append(ir.If(inside, (copy,)) if isinstance(s, ir.StoreRecord) else copy)
    groups = build.multiply(build.ceil_divide(loop.extent, WARP * targets), WARP)
    return replace(kernel, body=(ir.Parallel(group.name, groups, tuple(body)),))


def suited(kernel: ir.Kernel) -> int:
    """How many elements each thread should have if there are very many: those of little work that
    read few bytes.

    Records that are updated where they lie have one: in memory that is read and written alike more
    did not help (the same results).
    """
    if legal(kernel, 4) is not None or COUNT not in {c.name for c in kernel.counts}:
        return 1
    loads = [s for s in kernel.body[0].body if isinstance(s, ir.LoadRecord)]  # type: ignore[attr-defined]
    if {s.array for s in loads} & {a.name for a in kernel.arrays if a.written}:
        return 1
    types = {(a.name, leaf.name): leaf.type for a in kernel.arrays for leaf in a.leaves}
    nbytes = sum(types[s.array, leaf].size for s in loads for leaf, _ in s.reads)
    straight = all(
        len(f.body) <= FEW_STATEMENTS and not any(isinstance(s, ir.For | ir.While) for s in f.body)
        for f in functions(kernel.body)
    )
    return 4 if loads and nbytes <= FEW_BYTES and straight else 1

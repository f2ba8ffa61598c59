"""Let several threads of a block share the rounds of a thread's loops: slices.

    s = 0; for k in range(n): s += f(k)         ->  own = 0; for k in range(slice, n, slices): own
    += f(k) store r[y] = s                                  own = the sum of own of all slices; s =
    0 + own; if slice == 0: store r[y] = s
`row`: neighbouring threads take neighbouring rounds; their sums meet by shuffles within a warp, and
in shared memory between warps.
`column`: neighbouring threads are neighbouring points, a warp has one slice; sums meet in shared
memory. Either way in an order that depends on the plan alone. Threads beyond the end compute the
last point again and store nothing, so that all threads meet. What stands between the loops every
slice computes, and the first one stores. Rounds that read what was gathered so far go together
(running_rounds.py).
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.analysis.affine import nest_of
from lanewise.analysis.reductions import Shareable, alike, indices_in
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import scatters, statements
from lanewise.passes import kept_values
from lanewise.passes.base import refuse
from lanewise.passes.shared_loops import Sharing, best_way, examined_loops, rows_of, shareable_loops
from lanewise.passes.sharing_threads import ThreadPlaces, ThreadWriter
from lanewise.passes.wide_rounds import MOST


def legal(kernel: ir.Kernel, *, running: bool = False) -> str | None:
    """Why the pass does not apply, or None. running: as on a GPU, where it also applies to loops
    that read what was gathered so far.
    """
    if kernel.grid is not None:
        return "its points are already mapped to threads"
    _, body = nest_of(kernel)
    if scatters(body):
        return "it scatters: several threads that share a point would do so several times"
    examined = examined_loops(kernel, running=running)
    loops = {n: x for n, x in examined.items() if isinstance(x, Shareable)}
    if any(x.halves for x in loops.values()) and best_way(kernel, running=True) != "row":
        return "it reads running values along columns, of which each has a thread"
    if not loops:
        if examined:
            return f"its rounds cannot be shared: {next(iter(examined.values()))}"
        if any(isinstance(s, ir.For) for s in statements(body)):
            return "its loops stand in a branch or in a loop that threads may run differently"
        return "it has no loop whose rounds several threads could share"
    return _order(body, loops)


def _order(body: ir.Block, loops: dict[int, Shareable]) -> str | None:
    """Why a thread might read what another one writes; or None."""
    for array in {s.array for s in statements(body) if isinstance(s, ir.StoreElement)}:
        shared = [
            (s, x.loop)
            for x in loops.values()
            for s in statements(x.loop.body)
            if isinstance(s, ir.LoadElement | ir.StoreElement) and s.array == array
        ]
        others = [
            (s, n < max(loops))
            for n, top in enumerate(body)
            if n not in loops
            for s in statements((top,))
            if isinstance(s, ir.LoadElement | ir.StoreElement) and s.array == array
        ]
        if shared and len(shared) + len(others) > 1:
            _, first = shared[0]
            places = {indices_in(s, loop, first) for s, loop in shared}
            if others or len(places) > 1 or not all(alike(loop, first) for _, loop in shared):
                return (
                    f"{array} is written in a loop and touched elsewhere: threads that share "
                    "rounds would have to wait for each other"
                )
        stored = False
        for s, _ in others:
            if stored and isinstance(s, ir.LoadElement):
                return (
                    f"{array} is read after it was written: threads that share a point would have "
                    "to wait for each other"
                )
            stored = stored or isinstance(s, ir.StoreElement)
        if any(before and isinstance(s, ir.StoreElement) for s, before in others) and any(
            isinstance(s, ir.LoadElement) for s, _ in others
        ):  # all slices read it, each in its own time
            return (
                f"{array} is read and written before a loop: threads that share a point would have "
                "to wait for each other"
            )
    return None


def _keeping(kernel: ir.Kernel, sharing: Sharing, loops: dict[int, Shareable]) -> str | None:
    """Why rows or values cannot be kept in shared memory, or None."""
    if (sharing.values or sharing.keep) and any(x.halves for x in loops.values()):
        return "it reads running values, and its rows are read once"
    if sharing.values:
        return values_problem(kernel, sharing)
    if not sharing.keep:
        return None
    if sharing.way != "row":
        return "neighbouring threads are neighbouring points, and no thread reads a row"
    if sharing.keep < 0 or sharing.keep % (sharing.slices * MOST):
        return (
            f"{sharing.keep} elements are no multiple of {MOST} for each of {sharing.slices} slices"
        )
    if not rows_of(kernel, loops):
        return "no two of its loops over one range, from 0 on, read the same row"
    return None


def values_problem(kernel: ir.Kernel, sharing: Sharing) -> str | None:
    """Why values that several loops compute cannot be kept for so many rounds, or None."""
    if sharing.keep or sharing.way != "row":
        return (
            "values are kept where neighbouring threads take neighbouring rounds, and in the place "
            "of rows"
        )
    if sharing.values < 0 or sharing.values % sharing.slices:
        return f"{sharing.values} rounds are not as many for each of {sharing.slices} slices"
    loops = shareable_loops(kernel)
    if not kept_values.values_of(kernel, nest_of(kernel)[1], loops):
        return kept_values.NOTHING
    return None


def _is_rewritten(body: ir.Block, last: int) -> bool:
    """Whether something is read before the last shared loop and written behind it."""
    read = {s.array for s in statements(body[:last]) if isinstance(s, ir.LoadElement)}
    return any(
        isinstance(s, ir.StoreElement) and s.array in read for s in statements(body[last + 1 :])
    )


def apply(
    kernel: ir.Kernel,
    sharing: Sharing,
    *,
    min_blocks: int = 0,
    parts: int = 1,
    running: bool = False,
) -> ir.Kernel:
    """Blocks of `lanes` points, each with `slices` threads; raises `PlanError` where no loop can be
    shared.
    """
    if reason := legal(kernel, running=running):
        raise refuse("slicing", kernel, reason)
    loops = shareable_loops(kernel, running=running)
    if reason := _keeping(kernel, sharing, loops):
        raise refuse("keeping of rows", kernel, reason)
    _, body = nest_of(kernel)
    place = ThreadPlaces(kernel, sharing)
    head, total = place.of_thread()
    writer = ThreadWriter(kernel, sharing, place.is_partial, loops)
    done: list[ir.Statement] = []
    last = max(loops)
    for n, s in enumerate(body):
        done += writer.shared(loops[n], n) if n in loops else writer.alone((s,), ends=n > last)
        if n == last and sharing.slices > 1 and not loops[n].folds and _is_rewritten(body, last):
            done.append(ir.Barrier())  # all have read what the first slice writes now
    return replace(
        kernel,
        body=(*head, *done),
        arrays=(*kernel.arrays, *writer.arrays),
        grid=ir.Grid(total, 1, sharing.threads, parts, min_blocks),
    )

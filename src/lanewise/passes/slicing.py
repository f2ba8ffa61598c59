"""Let several groups of threads of a block (slices) share the targets and divide the sources.

    parallel for lane: for tile: for k in range(T): sum += ...
->  parallel for thread: lane, slice = ...; for tile: for k in [slice * T / W, (slice + 1) * T / W):
sum += ...
    then slice 0 adds the sums of all slices, in their order, through shared memory.
Slice s has other sources than the slices before it, but not the ones behind them: states are merged
by their reduction's own rule, which is associative and commutative (for sums up to rounding, which
the fixed order repeats). This keeps a GPU busy when there are few targets, without scratch memory
and without atomics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import copy_of, original, own
from lanewise.ir.reductions import SUM, Accumulator, accumulators_of
from lanewise.ir.traverse import flat_map, statements, used_in, writes
from lanewise.language.record import Leaf
from lanewise.language.types import Scalar
from lanewise.layouts import SoA
from lanewise.passes.base import chosen, find_parallel, is_source_loop, refuse, source_loops

LANE, THREAD, SLICE, FROM, SUMS = (own(n) for n in ("lane", "thread", "slice", "from", "sums"))


def legal(kernel: ir.Kernel, slices: int, tile: int) -> str | None:
    """Why the pass does not apply, or None."""
    if find_parallel(kernel, LANE) is None:
        return "its targets are not mapped to the lanes of a block"
    if not source_loops(kernel) or tile < 1:
        return "its sources are not cut into tiles"
    if slices < 1 or tile % slices:
        return f"{slices} slices do not divide a tile of {tile} sources"
    return None


def apply(kernel: ir.Kernel, slices: int, tile: int) -> ir.Kernel:
    """Divide every tile among `slices` groups of threads; raises `PlanError` when that is not
    possible.
    """
    if reason := legal(kernel, slices, tile):
        raise refuse("slicing", kernel, reason)
    return _sliced(kernel, slices, _end_of_tiles, lambda s, piece: _share(s, piece, tile // slices))


def apply_to_lists(kernel: ir.Kernel, slices: int) -> ir.Kernel:
    """The same for loops over lists of any length: slice s takes their items s, s + slices, s + 2
    slices, ...
    """
    if find_parallel(kernel, LANE) is None:
        raise refuse("slicing", kernel, legal(kernel, slices, slices) or "")

    def end(block: ir.Block) -> int:
        return 1 + max(n for n, s in enumerate(block) if is_source_loop(s))

    def share(s: ir.For, piece: ir.Local) -> ir.For:
        return replace(s, start=build.add(s.start, piece), step=ir.Literal(slices, piece.type))

    return _sliced(kernel, slices, end, share)


def _sliced(
    kernel: ir.Kernel,
    slices: int,
    end_of: Callable[[ir.Block], int],
    share: Callable[[ir.For, ir.Local], ir.For],
) -> ir.Kernel:
    """end_of: the place after the loops that are shared. share: what a slice has of one."""
    loop = find_parallel(kernel, LANE)
    assert loop is not None
    assert isinstance(loop.extent, ir.Literal)
    lanes, index = int(loop.extent.value), loop.extent.type
    thread, piece = ir.Local(THREAD, index), ir.Local(SLICE, index)
    head = (
        ir.Assign(LANE, build.remainder(thread, lanes)),
        ir.Assign(SLICE, build.divide(thread, lanes)),
    )
    targets = _states_by_target(kernel, loop.body, end_of(loop.body))
    leaves = tuple(Leaf(f"s{n}", x.type) for n, x in enumerate(targets[0].state))
    shared = ir.ArrayArgument(
        SUMS, leaves, SoA().arrange(leaves), written=True, space="shared", length=lanes * slices
    )

    def shared_out(s: ir.Statement) -> ir.Block:
        assert isinstance(s, ir.For)
        return (share(s, piece),)

    body = flat_map(loop.body, chosen(is_source_loop, shared_out))
    end = end_of(body)
    meet = tuple(
        s for target in targets for s in _meet(target, leaves, thread, piece, lanes, slices)
    )
    tail = ir.If(build.equal(piece, 0), body[end:])
    threads = ir.Parallel(
        THREAD, ir.Literal(lanes * slices, index), (*head, *body[:end], *meet, tail)
    )
    new_body = flat_map(
        kernel.body,
        chosen(lambda s: isinstance(s, ir.Parallel) and s.variable == LANE, lambda s: (threads,)),
    )
    return replace(kernel, body=new_body, arrays=(*kernel.arrays, shared))


def _share(s: ir.For, piece: ir.Expression, width: int) -> ir.For:
    """The part of one slice in a loop over the sources of a tile."""
    start = build.multiply(piece, width)
    stop = build.add(start, width)
    return replace(
        s, start=start, stop=stop if isinstance(s.stop, ir.Literal) else build.minimum(stop, s.stop)
    )


def _end_of_tiles(block: ir.Block) -> int:
    """The place of the first statement after the loops over tiles."""
    return 1 + max(n for n, s in enumerate(block) if isinstance(s, ir.For) and s.role == "tiles")


@dataclass(frozen=True, slots=True)
class _Target:
    """What the slices have of one target of the thread, and how two slices become one."""

    state: tuple[ir.Local, ...]
    merge: Callable[[tuple[ir.Local, ...]], ir.Block]


def _states_by_target(kernel: ir.Kernel, block: ir.Block, end: int) -> list[_Target]:
    """The states of the kernel's reductions, or the sums of a kernel that names none, apart for
    each target of the thread.
    """
    reductions = accumulators_of(kernel)
    if not reductions:
        return [_sums(s) for s in _sums_by_target(block, end)]
    assigned = dict.fromkeys(n for s in statements(block) for n in writes(s))
    copies = dict.fromkeys(
        copy_of(n) for n in assigned if original(n) == reductions[0].state[0].name
    )
    return [_states([a.copy(int(c)) if c else a for a in reductions]) for c in copies]


def _states(reductions: list[Accumulator]) -> _Target:
    def merge(others: tuple[ir.Local, ...]) -> ir.Block:
        body, first = list[ir.Statement](), 0
        for a in reductions:
            last = first + len(a.state)
            body += a.merge(others[first:last])
            first = last
        return tuple(body)

    return _Target(tuple(x for a in reductions for x in a.state), merge)


def _sums(sums: dict[str, Scalar]) -> _Target:
    state = tuple(ir.Local(n, kind) for n, kind in sums.items())

    def merge(others: tuple[ir.Local, ...]) -> ir.Block:
        return tuple(
            s for x, other in zip(state, others, strict=True) for s in SUM.merge((x,), (other,))
        )

    return _Target(state, merge)


def _sums_by_target(block: ir.Block, end: int) -> list[dict[str, Scalar]]:
    """The variables that the loops before `end` change and the statements after it read, apart for
    each target of the thread.
    """
    changed = {
        n
        for s in statements(block[:end])
        if isinstance(s, ir.For)
        for x in statements(s.body)
        for n in writes(x)
    }
    after = used_in(block[end:])
    kinds = {s.name: s.value.type for s in statements(block) if isinstance(s, ir.Assign)}
    groups: dict[str, dict[str, Scalar]] = {}
    for name, kind in kinds.items():
        if name in changed & after:
            groups.setdefault(copy_of(name), {})[name] = kind
    return list(groups.values())


def _meet(
    target: _Target,
    leaves: tuple[Leaf, ...],
    thread: ir.Local,
    piece: ir.Local,
    lanes: int,
    slices: int,
) -> ir.Block:
    """Slice 0 merges the states of the other slices for one target of the thread.

    All targets go through the same shared array.
    """
    others = tuple(ir.Local(own(f"other.{leaf.name}"), leaf.type) for leaf in leaves)
    give = ir.StoreRecord(
        SUMS, thread, tuple((leaf.name, x) for leaf, x in zip(leaves, target.state, strict=True))
    )
    take = ir.LoadRecord(
        SUMS,
        ir.Local(FROM, thread.type),
        tuple((leaf.name, o.name) for leaf, o in zip(leaves, others, strict=True)),
    )
    first = build.add(thread, lanes)
    last = ir.Literal(lanes * slices, thread.type)
    step = ir.Literal(lanes, thread.type)
    loop = ir.For(FROM, first, last, step, (take, *target.merge(others)), role="slices")
    return (give, ir.Barrier(), ir.If(build.equal(piece, 0), (loop,)), ir.Barrier())

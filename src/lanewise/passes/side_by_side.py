"""On a CPU: neighbouring targets side by side in SIMD registers, so that a source is loaded once
for all of them.

    parallel for i: t = load target[i]; state = identity
        for j: s = load source[j]; state = take(state, f(t, s))
        store result[i] = state
->  parallel for block: first = block * W; lanes = min(W, n - first); t: f32[W]; states: f32[W]
        for lane in range(lanes): i = first + lane; load target[i] into t[lane]; states[lane] =
        identity for j: s = load source[j]
            for lane in range(lanes): states[lane] = take(states[lane], f(t[lane], s))
        for lane in range(lanes): i = first + lane; store result[i] = states[lane]
Each target takes its sources in the same order as before: what it gives has the same bits. It
serves reductions that compilers may not regroup, which keep sources out of the lanes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK, own
from lanewise.ir.reductions import accumulators_of
from lanewise.ir.traverse import blocks, expressions, reads, statements, used_in, writes
from lanewise.language.types import LocalArray, Scalar
from lanewise.passes.base import is_source_loop, refuse

BLOCK, FIRST, LANES, LANE = (own(n) for n in ("block", "first", "lanes", "lane"))
MOST = 4096  # targets of a loop: their states stay in the first cache


def legal(kernel: ir.Kernel, width: int) -> str | None:
    """Why the pass does not apply, or None."""
    if not 1 <= width <= MOST:
        return f"wanted 1 to {MOST} targets side by side, found {width}"
    if (
        len(kernel.body) != 1
        or not isinstance(kernel.body[0], ir.Parallel)
        or kernel.body[0].variable != own("i")
    ):
        return "its targets are merged already"
    loops = [s for s in kernel.body[0].body if isinstance(s, ir.For)]
    if len(loops) != 1 or not is_source_loop(loops[0]):
        return "it has more than one loop over all sources"
    if kernel.body[0].variable in {n for e in (loops[0].start, loops[0].stop) for n in reads(e)}:
        return "each target has other sources"
    return None


def apply(kernel: ir.Kernel, width: int) -> ir.Kernel:
    """`width` targets in a loop; raises `PlanError` for a kernel whose loop over sources is cut
    up.
    """
    if reason := legal(kernel, width):
        raise refuse("targets side by side", kernel, reason)
    (outer,) = kernel.body
    assert isinstance(outer, ir.Parallel)
    at = next(n for n, s in enumerate(outer.body) if is_source_loop(s))
    head, loop, tail = outer.body[:at], outer.body[at], outer.body[at + 1 :]
    assert isinstance(loop, ir.For)
    states = {x.name for a in accumulators_of(kernel) for x in a.state}
    varying = _varying(outer, states)
    index = outer.extent.type
    block, first, lanes, lane, i = (
        ir.Local(n, index) for n in (BLOCK, FIRST, LANES, LANE, outer.variable)
    )
    kinds = _kinds(kernel, outer.body)
    later = {
        n
        for s in (*statements(loop.body), *statements(tail))
        for e in expressions(s)
        for n in reads(e)
    } | states
    kept = {
        n: ir.Local(n, kinds[n])
        for s in head
        if _touches(s, varying)
        for n in writes(s)
        if n in later and n in kinds
    }
    names = {n: own(f"lanes.{n.removeprefix(MARK)}") for n in kept}

    each_lane = partial(over_lanes, i.name, first, lane, lanes)

    def take_out(body: ir.Block) -> ir.Block:
        read = used_in(body)
        return tuple(
            ir.Assign(n, ir.Element(names[n], lane, x.type))
            for n, x in kept.items()
            if n in read or n in states
        )

    def put_back(changed: set[str]) -> ir.Block:
        return tuple(ir.SetElement(names[n], lane, x) for n, x in kept.items() if n in changed)

    of_all = tuple(s for s in head if not _touches(s, varying))
    of_target = tuple(s for s in head if _touches(s, varying))
    shared = tuple(s for s in loop.body if not _touches(s, varying))
    each = tuple(s for s in loop.body if _touches(s, varying))
    body = (
        ir.Assign(FIRST, build.multiply(block, width)),
        ir.Assign(LANES, build.minimum(width, build.subtract(outer.extent, first))),
        *(ir.DeclareArray(names[n], LocalArray(x.type, width)) for n, x in kept.items()),
        *of_all,
        each_lane((*of_target, *put_back(set(kept)))),
        replace(loop, body=(*shared, each_lane((*take_out(each), *each, *put_back(states))))),
        each_lane((*take_out(tail), *tail)),
    )  # fmt: skip
    return replace(kernel, body=(ir.Parallel(BLOCK, build.ceil_divide(outer.extent, width), body),))


def over_lanes(
    place: str, first: ir.Expression, lane: ir.Local, lanes: ir.Expression, body: ir.Block
) -> ir.For:
    """A loop over lanes. place: the variable that stands for the element of a lane; first: that of
    the first one.
    """
    zero, one = ir.Literal(0, lane.type), ir.Literal(1, lane.type)
    within = (ir.Assign(place, build.add(first, lane)), *body)
    return ir.For(lane.name, zero, lanes, one, within, role="slices")


def _varying(outer: ir.Parallel, states: set[str]) -> set[str]:
    """The variables that depend on the target, the states among them."""
    varying = {outer.variable, *states}
    while True:
        before = len(varying)
        for s in statements(outer.body):
            if not isinstance(s, ir.For) and _touches(s, varying):
                varying |= {n for b in blocks(s) for x in statements(b) for n in writes(x)} | set(
                    writes(s)
                )
        if len(varying) == before:
            return varying


def _touches(s: ir.Statement, varying: set[str]) -> bool:
    names = {
        n
        for x in (s, *(y for b in blocks(s) for y in statements(b)))
        for e in expressions(x)
        for n in reads(e)
    }
    return bool((names | set(writes(s))) & varying)


def _kinds(kernel: ir.Kernel, body: ir.Block) -> dict[str, Scalar]:
    """The types of the variables that statements assign."""
    kinds: dict[str, Scalar] = {}
    for s in statements(body):
        match s:
            case ir.Assign():
                kinds[s.name] = s.value.type
            case ir.LoadRecord():
                types = {x.name: x.type for x in kernel.array(s.array).leaves}
                kinds |= {name: types[leaf] for leaf, name in s.reads}
            case ir.Apply():
                kinds |= {n: r.type for n, r in zip(s.results, s.function.results, strict=True)}
            case _:
                pass
    return kinds

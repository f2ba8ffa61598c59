"""Loops that scatter, in strips: what is computed for many elements first, then where it goes.

    for i in range(begin, end): b = f(i); scatter add bins[b], 1
->  for i.strip in range(begin, end, 256):
      for i in range(i.strip, i.strip + min(end - i.strip, 256)):
        b = f(i); b.kept[i - i.strip] = b
      for i in range(i.strip, i.strip + min(end - i.strip, 256)):
        b = b.kept[i - i.strip]; scatter add bins[b], 1
LLVM takes no several rounds at once of a loop that scatters, and computes f one number after the
other. Elements are scattered in the order in which they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lanewise.emit.declarations import kinds_of
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import extent_of, own
from lanewise.ir.traverse import (
    children,
    ends_early,
    expressions,
    loads,
    statements,
    stores,
    subexpressions,
    used_in,
)
from lanewise.language.types import LocalArray, Scalar
from lanewise.runtime.mathematics.library import FUNCTIONS

STRIP = 256  # elements, whose values stay in the first cache
LONG = 64  # operations that are worth a store and a load for each element


def in_strips(loop: ir.For, buffers: Mapping[str, Scalar]) -> ir.For | None:
    """A loop over points in strips, or the innermost one that is all that it does; None for one
    without scatters, and for one that has little to compute before. buffers: the types of their
    elements.
    """
    match loop.body:
        case (*before, ir.For() as inner) if inner.stop == _extent_of(inner):
            made = in_strips(inner, buffers)
            return None if made is None else replace(loop, body=(*before, made))
        case body:
            at = next((n for n, s in enumerate(body) if _scatters(s)), 0)
            head, tail = body[:at], body[at:]
            fits = loop.step == ir.Literal(1, loop.step.type) and _are_apart(head, tail)
            return _divided(loop, head, tail, buffers) if fits else None


def _are_apart(head: ir.Block, tail: ir.Block) -> bool:
    """Whether what a point computes is long, and needs nothing that others scatter."""
    changed = {b for s in statements(tail) for b in stores(s)}
    arrays = {s.name for s in statements(head) if isinstance(s, ir.DeclareArray)}
    return (
        _operations(head) >= LONG
        and not ends_early((*head, *tail))
        and not any(stores(s) or changed.intersection(loads(s)) for s in statements(head))
        and arrays.isdisjoint(used_in(tail))
    )


def _divided(loop: ir.For, head: ir.Block, tail: ir.Block, buffers: Mapping[str, Scalar]) -> ir.For:
    kinds = kinds_of(head, dict(buffers))
    kinds |= {s.variable: s.start.type for s in statements(head) if isinstance(s, ir.For)}
    read = used_in(tail)
    kept = {n: kind for n, kind in kinds.items() if n in read and isinstance(kind, Scalar)}
    rooms = {n: own(f"{n}.kept") for n in kept}
    kind = loop.start.type
    first = ir.Local(own(f"{loop.variable}.strip"), kind)
    place = build.subtract(ir.Local(loop.variable, kind), first)
    # a sum with the start could wrap
    length = build.minimum(build.subtract(loop.stop, first), STRIP)

    def each(*inner: ir.Statement) -> ir.For:
        return replace(loop, start=first, stop=build.add(first, length), body=inner)

    body = (
        *(ir.DeclareArray(rooms[n], LocalArray(k, STRIP)) for n, k in kept.items()),
        each(*head, *(ir.SetElement(rooms[n], place, ir.Local(n, k)) for n, k in kept.items())),
        each(*(ir.Assign(n, ir.Element(rooms[n], place, k)) for n, k in kept.items()), *tail),
    )
    return replace(loop, variable=first.name, step=ir.Literal(STRIP, kind), body=body)


def _extent_of(loop: ir.For) -> ir.Expression:
    """How many points there are along an index that is a loop."""
    return ir.Local(extent_of(loop.variable), loop.stop.type)


def _scatters(s: ir.Statement) -> bool:
    return any(isinstance(x, ir.Scatter) for x in statements((s,)))


def _operations(block: ir.Block) -> int:
    """How many operations a block is written with; functions of mathematics are long ones."""
    total = 0
    for s in statements(block):
        if isinstance(s, ir.Apply):
            total += _operations(s.function.body)
        for e in expressions(s):
            for x in subexpressions(e):
                long = isinstance(x, ir.Call) and x.intrinsic in FUNCTIONS
                total += LONG if long else bool(children(x))
    return total

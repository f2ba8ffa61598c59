"""Edges by remainders: elements beyond one end of a row are those at the other one.

    load a[(y + 1) % h, (x - 1) % w]: u
->  in blocks in the inside: load a[y + 1, x - 1]: u
    in the others: $wrapped = x - 1 - ($x.first - 1) // w * w
      if 0 <= $wrapped and $wrapped < w: load a[(y + 1) % h, $wrapped]: u
      else: load a[(y + 1) % h, (x - 1) % w]: u    one lane after the other
A block is in the inside where no remainder changes anything, which is tested once for all of its
points. One with a name that is nothing but an index of loads is first put where it is read:
    left = (x - 1) % w; load a[y, left]: u
->  load a[y, (x - 1) % w]: u
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeGuard

from lanewise.analysis.affine import nest
from lanewise.analysis.index_sums import IndexSum, index_sum, single_definitions
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import (
    flat_map,
    read_counts,
    reads,
    rewrite,
    rewrite_statement,
    statements,
    write_counts,
    writes,
    written_in,
)
from lanewise.passes.points.guards import LARGE, STEEPEST
from lanewise.passes.points.shape import Shape, first_of

Ranges = Mapping[str, tuple[int, int]]  # the smallest and the largest values of variables
SMALL = LARGE // 4  # constants and short loops, next to which other terms have room in 32 bits


@dataclass(frozen=True, slots=True)
class Remainder:
    """`sum % by` as an index. turns: how many times `by` is in what is written, and not in
    `sum`.
    """

    written: ir.Binary
    by: ir.Expression
    sum: IndexSum
    turns: int

    @property
    def plain(self) -> ir.Expression:
        """What it is where it changes nothing."""
        whole = build.multiply(self.by, self.turns)
        return build.subtract(self.written.left, whole) if self.turns else self.written.left


def in_place(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with its remainders as indices; the same one where some are more than that."""
    loops, body = nest(kernel)
    if not any(_is_named(s) for s in statements(body)):
        return kernel
    written, read = write_counts(body), read_counts(body)

    def placed(block: ir.Block) -> ir.Block:
        done: tuple[ir.Statement, ...] = ()
        while block:
            s, block = block[0], block[1:]
            if (
                _is_named(s)
                and written[s.name] == 1
                and written_in(block).isdisjoint(reads(s.value))
                and sum(_is(e, s.name) for e in _whole_uses(block)) == read[s.name]
            ):
                block = _put(block, s)
            else:
                done = (*done, rewrite_statement(s, lambda e: e, placed))
        return done

    put = placed(body)
    if put == body:
        return kernel
    for loop in reversed(loops):
        put = (replace(loop, body=put),)
    made = replace(kernel, body=put)
    return made if wraps(made) else kernel


def _is_named(s: ir.Statement) -> TypeGuard[ir.Assign]:
    return isinstance(s, ir.Assign) and isinstance(s.value, ir.Binary) and s.value.operator == "%"


def _whole_uses(block: ir.Block) -> Iterator[ir.Expression]:
    """What is an index of a load as it is, or has another name."""
    yield from _indices(block)
    yield from (s.value for s in statements(block) if isinstance(s, ir.Assign))


def _is(e: ir.Expression, name: str) -> bool:
    return isinstance(e, ir.Local) and e.name == name


def _put(block: ir.Block, named: ir.Assign) -> ir.Block:
    def change(s: ir.Statement) -> ir.Block:
        match s:
            case ir.LoadElement():
                indices = (named.value if _is(i, named.name) else i for i in s.indices)
                return (replace(s, indices=tuple(indices)),)
            case ir.Assign() if _is(s.value, named.name):
                return (replace(s, value=named.value),)
            case _:
                return (s,)

    return flat_map(block, change)


def inside(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel of points in the inside; the same one where it has no such indices."""
    found = _remainders(kernel)
    if not found:
        return kernel
    loops, body = nest(kernel)
    for loop in reversed(loops):
        body = (replace(loop, body=_inside(body, found)),)
        found = {}
    return replace(kernel, body=body)


def wraps(kernel: ir.Kernel) -> bool:
    """Whether elements beyond an end are those at the other one."""
    return bool(_remainders(kernel))


def divided(
    kernel: ir.Kernel, shape: Shape
) -> tuple[ir.Block, tuple[ir.Expression, ...], ir.Block]:
    """The body of points in the inside, when a block has only such, and the body of others."""
    found, (loops, body) = _remainders(kernel), nest(kernel)
    kind = loops[0].extent.type
    tests: dict[ir.Expression, None] = {}
    sides = {x.variable: shape.side(d) for d, x in enumerate(loops)}
    ranges = _ranges(body)
    for r in found.values():
        low, high = (e.expression(kind) for e in _ends(r.sum, sides, ranges))
        tests[ir.Compare("<=", ir.Literal(0, kind), low)] = None
        tests[build.less(high, build.index_of(r.by, kind))] = None
        tests |= dict.fromkeys(_fits(r, set(sides), ranges))
    edges = _Edges([x.variable for x in loops], found, ranges).block(body)
    return _inside(body, found), tuple(tests), edges


def _inside(body: ir.Block, found: Mapping[ir.Expression, Remainder]) -> ir.Block:
    def plain(e: ir.Expression) -> ir.Expression:
        return found[e].plain if isinstance(e, ir.Binary) and e in found else e

    def change(s: ir.Statement) -> ir.Block:
        if not isinstance(s, ir.LoadElement):
            return (s,)
        return (replace(s, indices=tuple(rewrite(i, plain) for i in s.indices)),)

    return flat_map(body, change)


class _Edges:
    """The loads of blocks at an edge."""

    def __init__(
        self, names: list[str], found: Mapping[ir.Expression, Remainder], ranges: Ranges
    ) -> None:
        self.last, self.names, self.found, self.ranges = names[-1], set(names), found, ranges
        self.count = 0

    def block(self, body: ir.Block) -> ir.Block:
        return flat_map(body, self.statement)

    def statement(self, s: ir.Statement) -> ir.Block:
        if not isinstance(s, ir.LoadElement) or (r := self.found.get(s.indices[-1])) is None:
            return (s,)
        if r.sum.coefficient(self.last) != 1:
            return (s,)
        self.count += 1
        kind, left = r.written.type, r.plain
        name = own(f"wrapped.{self.count}")
        begin, place = ir.Local(f"{name}.begin", kind), ir.Local(name, kind)
        first = rewrite(left, self._first)
        turns = ir.Binary("*", ir.Binary("//", first, r.by, kind), r.by, kind)
        zero = ir.Literal(0, kind)
        within = ir.Compare("<=", zero, place), ir.Compare("<", place, r.by)
        there = build.all_of(*_fits(r, self.names, self.ranges), *within)
        near = replace(s, indices=(*s.indices[:-1], place))
        return (
            ir.Assign(begin.name, turns),
            ir.Assign(name, ir.Binary("-", left, begin, kind)),
            ir.If(there, (near,), (s,)),
        )

    def _first(self, e: ir.Expression) -> ir.Expression:
        is_last = isinstance(e, ir.Local) and e.name == self.last
        return ir.Local(first_of(self.last), e.type) if is_last else e


def _remainders(kernel: ir.Kernel) -> dict[ir.Expression, Remainder]:
    """Those that are whole indices of loads, by what is written; none where one of them is of more
    than indices, short loops and what all threads share.
    """
    loops, body = nest(kernel)
    names = {x.variable for x in loops}
    shared = {p.name for p in kernel.counts + kernel.uniforms if p.type.is_integer}
    definitions, ranges = single_definitions(body), _ranges(body)
    found: dict[ir.Expression, Remainder] = {}
    for e in _indices(body):
        if not isinstance(e, ir.Binary) or e.operator != "%" or e.type != loops[0].extent.type:
            continue
        total = index_sum(e.left, definitions)
        if names.isdisjoint(x.name for x in total.terms if isinstance(x, ir.Local)):
            continue
        divisor = index_sum(e.right, definitions)
        by = divisor.expression(e.type)
        turns = total.terms.get(by, 0)
        rest = IndexSum(total.constant, {x: c for x, c in total.terms.items() if x != by})
        known = all(
            isinstance(x, ir.Local)
            and x.type == e.type
            and (x.name in names or x.name in ranges or x.name in shared)
            for x in rest.terms
        )
        steps = (
            c * max(map(abs, ranges.get(x.name, (1,))))
            for x, c in rest.terms.items()
            if isinstance(x, ir.Local)
        )
        small = sum(map(abs, (rest.constant, turns, *steps))) < SMALL
        small = small and all(abs(rest.coefficient(name)) < STEEPEST for name in names)
        if not known or not small or not shared.issuperset(reads(by)):
            return {}
        if isinstance(by, ir.Literal) and by.value <= 0:
            return {}
        found[e] = Remainder(e, by, rest, turns)
    return found


def _fits(r: Remainder, names: set[str], short: Ranges) -> tuple[ir.Expression, ...]:
    """When the sum does not wrap in a block: what it is made of is small. names: of the indices.
    short: loops, which are.
    """
    by = ((r.by, r.turns),) if r.turns and not isinstance(r.by, ir.Literal) else ()
    terms = [
        (e, c)
        for e, c in (*r.sum.terms.items(), *by)
        if isinstance(e, ir.Local) and e.name not in short
    ]
    most = LARGE // max(1, sum(abs(c) for _, c in terms))
    tests = list[ir.Expression]()
    for e, _ in terms:
        value = replace(e, name=first_of(e.name)) if e.name in names else e
        tests.append(build.less(value, most))
        tests.append(ir.Compare("<", ir.Literal(-most, e.type), value))
    return tuple(tests)


def _indices(body: ir.Block) -> Iterator[ir.Expression]:
    return (i for s in statements(body) if isinstance(s, ir.LoadElement) for i in s.indices)


def _ranges(body: ir.Block) -> dict[str, tuple[int, int]]:
    """The smallest and the largest values of the variables of loops over literals."""
    found: dict[str, tuple[int, int]] = {}
    others: set[str] = set()
    for s in statements(body):
        match s:
            case ir.For(start=ir.Literal(start), stop=ir.Literal(stop), step=ir.Literal(step)) if (
                values := range(int(start), int(stop), int(step))
            ):
                every = (*found.get(s.variable, ()), values[0], values[-1])
                found[s.variable] = min(every), max(every)
            case _:
                others.update(writes(s))
    return {n: ends for n, ends in found.items() if n not in others}


def _ends(total: IndexSum, sides: Mapping[str, int], ranges: Ranges) -> tuple[IndexSum, IndexSum]:
    """The lowest and the highest value of a sum in a block."""
    low, high = IndexSum(total.constant), IndexSum(total.constant)
    for e, c in total.terms.items():
        assert isinstance(e, ir.Local)
        if e.name in sides:
            begin = IndexSum(0, {replace(e, name=first_of(e.name)): c})
            reach = c * (sides[e.name] - 1)
            low = low.plus(begin).plus(IndexSum(min(0, reach)))
            high = high.plus(begin).plus(IndexSum(max(0, reach)))
        elif e.name in ranges:
            ends = [c * n for n in ranges[e.name]]
            low, high = low.plus(IndexSum(min(ends))), high.plus(IndexSum(max(ends)))
        else:
            low, high = low.plus(IndexSum(0, {e: c})), high.plus(IndexSum(0, {e: c}))
    return low, high

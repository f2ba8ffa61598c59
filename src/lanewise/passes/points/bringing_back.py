"""Indices that are brought back from beyond an edge, by clamps and remainders: in the inside of
the space nothing brings them back.

    load a[clamp(y - 1, 0, h - 1), (x + 1) % w]: u
->  in blocks with 0 <= $y.first - 1 and ... and $x.first + 128 < w: load a[y - 1, x + 1]: u
So what neighbours read is known there, and is read once, in wide accesses. In the others a
remainder is computed once, and divides where one turn more or less does not bring it back:

    load a[y, (x + 1 + w) % w]: u
->  $back.0.near = x + 1 < 0 ? ... : w <= x + 1 ? x + 1 - w : x + 1
    $back.0 = 0 <= $back.0.near and $back.0.near < w ? $back.0.near : (x + 1 + w) % w
    load a[y, $back.0]: u
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from lanewise.analysis.affine import nest
from lanewise.analysis.index_sums import IndexSum, index_sum, single_definitions
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import expressions, flat_map, rewrite, statements, subexpressions
from lanewise.passes.points.guards import LARGE, STEEPEST
from lanewise.passes.points.shape import Shape, first_of

LOWEST = 16  # the largest constant that is taken for the lower edge of something
Terms = frozenset[tuple[ir.Expression, int]]
_Key = tuple[ir.Expression, int, Terms]  # of a remainder: by what, and the sum


def inside(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel of points in the inside; the same one where no index is brought back."""
    loops, body = nest(kernel)
    plain = flat_map(body, _BroughtBack(kernel).change)
    if plain is body:
        return kernel
    for loop in reversed(loops):
        plain = (replace(loop, body=plain),)
    return replace(kernel, body=plain)


def divided(
    kernel: ir.Kernel, shape: Shape
) -> tuple[tuple[ir.Expression, ...], ir.Block, ir.Block]:
    """When a block has only points in the inside, what these compute, and what others compute:
    remainders, which are long, where they change something.
    """
    loops, body = nest(kernel)
    edges = _BroughtBack(kernel)
    plain = flat_map(body, edges.change)
    signed = {p.name for p in kernel.uniforms}
    tests = _InsideTests({x.variable: shape.side(d) for d, x in enumerate(loops)}, signed)
    for returned in edges.met.values():
        tests.small(returned.whole)
        for low, high in returned.apart:
            tests.least(low, high)
    others = flat_map(body, edges.nearly)
    named = (s for block in edges.named.values() for s in block)
    return tests.conditions(loops[0].extent), plain, (*named, *others)


@dataclass(frozen=True, slots=True)
class _PlainIndex:
    """What an expression is in the inside. whole: what is brought back. apart: sums that differ
    by 0 or more there, the smaller one first.
    """

    plain: ir.Expression
    whole: IndexSum
    apart: tuple[tuple[IndexSum, IndexSum], ...]


class _BroughtBack:
    """The expressions that bring an index back."""

    def __init__(self, kernel: ir.Kernel) -> None:
        loops, body = nest(kernel)
        self.kind = loops[0].extent.type
        self.names = {x.variable for x in loops}
        parameters = kernel.counts + kernel.uniforms
        self.shared = {p.name for p in parameters if p.type == self.kind}
        self.definitions = single_definitions(body)
        self.met: dict[ir.Expression, _PlainIndex] = {}
        self.named: dict[_Key, tuple[ir.Assign, ir.Assign]] = {}  # remainders
        self.turning = {self._turning(e) for e in _remainders(body) if self._is_beyond(e)}

    def change(self, s: ir.Statement) -> ir.Block:
        """A statement without them."""
        return self._rewritten(s, self._plain)

    def nearly(self, s: ir.Statement) -> ir.Block:
        """A statement that reads remainders by the names that `named` gives them."""
        return self._rewritten(s, self._named)

    def _rewritten(
        self, s: ir.Statement, new: Callable[[ir.Expression], ir.Expression]
    ) -> ir.Block:
        match s:
            case ir.Assign() if s.value.type == self.kind:
                value = rewrite(s.value, new)
                return (s,) if value is s.value else (replace(s, value=value),)
            case ir.LoadElement() | ir.StoreElement():
                indices = tuple(rewrite(i, new) for i in s.indices)
                same = all(a is b for a, b in zip(indices, s.indices, strict=True))
                return (s,) if same else (replace(s, indices=indices),)
            case _:
                return (s,)

    def _plain(self, e: ir.Expression) -> ir.Expression:
        found = self.met.get(e) or self._returned(e)
        if found is None:
            return e
        self.met[e] = found
        return found.plain

    def _named(self, e: ir.Expression) -> ir.Expression:
        if not isinstance(e, ir.Binary) or (found := self.met.get(e)) is None:
            return e
        if found.whole.terms.get(e.right, 0) not in (0, 1):
            return e  # of several turns no test tells whether they have wrapped
        key = e.right, found.whole.constant, found.whole.key()
        if key not in self.named:
            self.named[key] = _near(own(f"back.{len(self.named)}"), e, found)
        _, last = self.named[key]
        return ir.Local(last.name, self.kind)

    def _returned(self, e: ir.Expression) -> _PlainIndex | None:
        if e.type != self.kind:
            return None
        match e:
            case ir.Call(intrinsic="clamp", arguments=(index, low, high)):
                return self._between(index, low, high)
            case ir.Call(intrinsic="max", arguments=(one, other)):
                return self._between(one, other, None) or self._between(other, one, None)
            case ir.Call(intrinsic="min", arguments=(one, other)):
                return self._between(one, None, other) or self._between(other, None, one)
            case ir.Binary(operator="%"):
                return self._within(e)
            case _:
                return None

    def _between(
        self, index: ir.Expression, low: ir.Expression | None, high: ir.Expression | None
    ) -> _PlainIndex | None:
        total, apart = self._sum(index), list[tuple[IndexSum, IndexSum]]()
        if total is None or not self._moves(total):
            return None
        if low is not None:
            edge = self._sum(low)
            if edge is None or edge.terms or edge.constant > LOWEST:
                return None
            apart.append((edge, total))
        if high is not None:
            edge = self._sum(high)
            if edge is None or self._moves(edge) or list(edge.terms.values()) != [1]:
                return None
            apart.append((total, edge))
        return _PlainIndex(index, total, tuple(apart))

    def _within(self, e: ir.Binary) -> _PlainIndex | None:
        """Of `sum % length`, where others of its kind go beyond an end: `x % length` alone repeats
        a short row.
        """
        turning = self._turning(e)
        if turning is None or turning not in self.turning:
            return None
        total = index_sum(e.left, self.definitions)
        rest = _without(total, e.right)
        end = IndexSum(-1, {e.right: 1})
        return _PlainIndex(rest.expression(self.kind), total, ((IndexSum(), rest), (rest, end)))

    def _turning(self, e: ir.Binary) -> tuple[ir.Expression, Terms] | None:
        """The length of a remainder and the terms of its sum, where it may go beyond an end."""
        total = self._sum(e.left)
        if total is None or not self._moves(total) or not isinstance(e.right, ir.Local):
            return None
        if e.right.name not in self.shared:
            return None
        return e.right, _without(total, e.right).key()

    def _is_beyond(self, e: ir.Binary) -> bool:
        """Whether it is of neighbours, or has whole turns added."""
        total = index_sum(e.left, self.definitions)
        return total.constant != 0 or e.right in total.terms

    def _moves(self, total: IndexSum) -> bool:
        return any(isinstance(x, ir.Local) and x.name in self.names for x in total.terms)

    def _sum(self, e: ir.Expression) -> IndexSum | None:
        """An expression as a small sum of indices and of what all threads share."""
        total = index_sum(e, self.definitions)
        known = all(
            isinstance(x, ir.Local)
            and x.type == self.kind
            and (x.name in self.names or x.name in self.shared)
            for x in total.terms
        )
        small = abs(total.constant) + sum(map(abs, total.terms.values())) < LARGE // 4
        flat = all(abs(total.coefficient(name)) < STEEPEST for name in self.names)
        return total if known and small and flat else None


def _near(name: str, e: ir.Binary, found: _PlainIndex) -> tuple[ir.Assign, ir.Assign]:
    """A remainder under a name: no division finds it where it is at most one turn away."""
    kind, by, zero = e.type, e.right, ir.Literal(0, e.type)
    place, left = (rewrite(x, _wrapping) for x in (found.plain, found.whole.expression(kind)))
    near = ir.Local(f"{name}.near", kind)
    more, less = (ir.Binary(operator, place, by, kind) for operator in ("+", "-"))
    high = ir.Select(ir.Compare("<=", by, place), less, place, kind)
    tests = (
        ir.Compare("<=", zero, near),
        ir.Compare("<", near, by),
        ir.Compare("<=", place, left),  # which has wrapped otherwise
    )
    far = ir.Binary("%", left, by, kind)
    return (
        ir.Assign(near.name, ir.Select(ir.Compare("<", place, zero), more, high, kind)),
        ir.Assign(name, ir.Select(build.all_of(*tests), near, far, kind)),
    )


def _wrapping(e: ir.Expression) -> ir.Expression:
    """What a user wrote, who may mean that it wraps."""
    return replace(e, bounded=False) if isinstance(e, ir.Binary) else e


def _without(total: IndexSum, length: ir.Expression) -> IndexSum:
    """A sum without whole turns."""
    return IndexSum(total.constant, {x: c for x, c in total.terms.items() if x != length})


def _remainders(body: ir.Block) -> Iterator[ir.Binary]:
    every = (x for s in statements(body) for e in expressions(s) for x in subexpressions(e))
    return (x for x in every if isinstance(x, ir.Binary) and x.operator == "%")


@dataclass(slots=True)
class _InsideTests:
    """Which sums differ by 0 or more in a block, by the tightest of them. sides: points of a block
    along each index. signed: what may be negative.
    """

    sides: dict[str, int]
    signed: set[str]
    smallest: dict[Terms, IndexSum] = field(default_factory=dict[Terms, IndexSum])
    terms: dict[ir.Local, int] = field(default_factory=dict[ir.Local, int])

    def least(self, low: IndexSum, high: IndexSum) -> None:
        """The first sum is at most the second one for all points of a block."""
        total = self._lowest(high.plus(low, -1))
        self.small(total)
        known = self.smallest.setdefault(total.key(), total)
        if total.constant < known.constant:
            self.smallest[total.key()] = total

    def small(self, total: IndexSum) -> None:
        """What a sum is made of is so small that the sum does not wrap."""
        many = sum(map(abs, total.terms.values()))
        for x in total.terms:
            assert isinstance(x, ir.Local)
            name = replace(x, name=first_of(x.name)) if x.name in self.sides else x
            self.terms[name] = max(self.terms.get(name, 0), many)

    def _lowest(self, total: IndexSum) -> IndexSum:
        """The lowest value of a sum in a block."""
        low = IndexSum(total.constant)
        for x, c in total.terms.items():
            assert isinstance(x, ir.Local)
            if x.name in self.sides:
                begin = IndexSum(0, {replace(x, name=first_of(x.name)): c})
                low = low.plus(begin).plus(IndexSum(min(0, c * (self.sides[x.name] - 1))))
            else:
                low = low.plus(IndexSum(0, {x: c}))
        return low

    def conditions(self, extent: ir.Expression) -> tuple[ir.Expression, ...]:
        """Of a block; with them that no sum leaves its type, where it would wrap."""
        zero = ir.Literal(0, extent.type)
        tests = list[ir.Expression]()
        for x, many in self.terms.items():
            most = LARGE // 2 // max(1, many)
            tests.append(build.less(x, most))
            if x.name in self.signed:
                tests.append(ir.Compare("<", ir.Literal(-most, x.type), x))
        tests += [
            ir.Compare("<=", zero, total.expression(extent.type))
            for total in self.smallest.values()
        ]
        return tuple(tests)

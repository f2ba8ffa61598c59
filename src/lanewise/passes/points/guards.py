"""Conditions that hold for all points of a block are tested once for the block.

    if 0 < y and y < h - 1: ...   ->   in blocks with 0 < $y.first and $y.first + 15 < h - 1: ...
    without a test
The tests of edges that a user writes for each thread then cost nothing in the inside, and what
stands under them is read and computed as if it stood alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from lanewise.analysis.index_sums import IndexSum, index_sum, single_definitions
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import reads, rewrite_statement, statements, write_counts
from lanewise.language.types import Scalar
from lanewise.passes.points.shape import Shape, first_of

NEGATED: dict[ir.CompareOperator, ir.CompareOperator] = {
    "==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
}  # fmt: skip


LARGE = 2**30  # from which on sums with an index may not fit into 32 bits
MARGIN = 2**15  # what may be added to any index or length of a call, and to its negative
STEEPEST = 2**12  # times an index: sums of all points of a block, which is shorter, are not large


def decided(
    body: ir.Block,
    loops: tuple[ir.Parallel, ...],
    shape: Shape,
    counts: set[str],
    uniforms: AbstractSet[str] = frozenset(),
) -> tuple[tuple[ir.Expression, ...], ir.Block]:
    """Conditions of a block, and the body without the branches that they decide. counts, uniforms:
    the names of what all threads share; uniforms may have any value.
    """
    return _Guards(body, loops, shape, counts, uniforms).result()


@dataclass(slots=True)
class _Range:
    """The smallest and the largest value of a sum in a block, and conditions under which no point's
    sum wraps.
    """

    low: ir.Expression
    high: ir.Expression
    fits: tuple[ir.Expression, ...] = ()


class _Guards:
    def __init__(
        self,
        body: ir.Block,
        loops: tuple[ir.Parallel, ...],
        shape: Shape,
        counts: set[str],
        uniforms: AbstractSet[str],
    ) -> None:
        self.body, self.loops, self.shape = body, loops, shape
        self.shared, self.uniforms = counts | uniforms, uniforms
        self.kind: Scalar = loops[0].extent.type
        self.sums = single_definitions(body)
        self.truths = truths(body)
        self.conditions: list[ir.Expression] = []

    def result(self) -> tuple[tuple[ir.Expression, ...], ir.Block]:
        body = self._block(self.body)
        return tightest(self.conditions), body

    def _block(self, block: ir.Block) -> ir.Block:
        done: list[ir.Statement] = []
        for s in block:
            if isinstance(s, ir.If) and self._differs(s.condition):
                larger = len(list(statements(s.then))) >= len(list(statements(s.otherwise)))
                test = self._always(s.condition, larger)
                if test is not None:
                    self.conditions.append(test)
                    done += self._block(s.then if larger else s.otherwise)
                    continue
                done.append(s)
                continue
            done.append(
                rewrite_statement(s, lambda e: e, self._block)
                if isinstance(s, ir.If | ir.For)
                else s
            )
        return tuple(done)

    def _differs(self, e: ir.Expression) -> bool:
        """Whether a condition is about indices, or about variables that are sums of them."""
        names = {x.variable for x in self.loops}
        for name in reads(self._resolved(e)):
            terms = self.sums[name].terms if name in self.sums else ()
            if name in names or any(names & set(reads(x)) for x in terms):
                return True
        return False

    def _resolved(self, e: ir.Expression) -> ir.Expression:
        """A condition, for a variable that stands for one."""
        while isinstance(e, ir.Local) and e.name in self.truths:
            e = self.truths[e.name]
        return e

    def _always(self, e: ir.Expression, truth: bool) -> ir.Expression | None:
        """When a condition has this value for all points of a block; None where that is not
        known.
        """
        match e := self._resolved(e):
            case ir.Unary(operator="not"):
                return self._always(e.operand, not truth)
            case ir.Logical():
                sides = [self._always(x, truth) for x in (e.left, e.right)]
                both = (e.operator == "and") == truth
                one, other = sides
                if one is None or other is None:
                    return None if both else one or other
                return ir.Logical("and" if both else "or", one, other)
            case ir.Compare() if e.left.type.is_integer:
                return self._compared(e.operator if truth else NEGATED[e.operator], e.left, e.right)
            case _:
                return None

    def _compared(
        self, operator: ir.CompareOperator, left: ir.Expression, right: ir.Expression
    ) -> ir.Expression | None:
        if left.type.kind != "i" or left.type.size > self.kind.size:
            return None
        sides = [self._range(index_sum(x, self.sums)) for x in (left, right)]
        one, other = sides
        if one is None or other is None:
            return None
        return build.all_of(*one.fits, *other.fits, _between(operator, one, other))

    def _range(self, total: IndexSum) -> _Range | None:
        """Of a sum of indices and of what all threads share; None of one that may leave the type of
        indices, where it wraps.
        """
        if any(abs(c) >= LARGE for c in (total.constant, *total.terms.values())):
            return None
        variables = {x.variable: d for d, x in enumerate(self.loops)}
        rest, low, high = IndexSum(total.constant), total.constant, total.constant
        for e, c in total.terms.items():
            if isinstance(e, ir.Local) and e.name in variables:
                d = variables[e.name]
                rest = rest.plus(IndexSum(0, {ir.Local(first_of(e.name), self.kind): c}))
                reach = c * (self.shape.side(d) - 1)
                low, high = low + min(0, reach), high + max(0, reach)
            elif set(reads(e)) <= self.shared:
                rest = rest.plus(IndexSum(0, {e: c}))
            else:
                return None
        if max(-low, high) >= LARGE:
            return None
        plain = list(total.terms.values()) == [1] and not total.constant
        fits = () if plain else fitting(rest, max(-low, high), self.kind, self.uniforms)
        low, high = low - rest.constant, high - rest.constant
        whole = rest.expression(self.kind)
        return _Range(build.subtract(whole, -low) if low else whole, build.add(whole, high), fits)


def fitting(
    total: IndexSum, reach: int, kind: Scalar, uniforms: AbstractSet[str]
) -> tuple[ir.Expression, ...]:
    """That a sum wraps for no point of a block. total: for the block's first point. reach: the
    largest magnitude of what else is added, below `LARGE`. uniforms: the names of what may have
    any value; other terms are indices and counts, which are 0 or more and leave `MARGIN` below
    the limit of their type.
    """
    terms = [build.index_of(e, kind) for e in total.terms]
    if any(uniforms & set(reads(e)) for e in total.terms):
        most = LARGE // 2 // sum(map(abs, total.terms.values()))
        below = [build.less(e, most) for e in terms]
        return (*below, *(ir.Compare("<", ir.Literal(-most, kind), e) for e in terms))
    sides = [sum(abs(c) for c in total.terms.values() if (c > 0) == up) for up in (True, False)]
    if max(sides) <= 1 and reach < MARGIN:
        return ()
    most = 2 ** (8 * kind.size - 2) // max(1, *sides)
    return tuple(build.less(e, most) for e in terms)


def _between(operator: ir.CompareOperator, one: _Range, other: _Range) -> ir.Expression:
    """When all values of one range compare so with all of another."""
    match operator:
        case "<" | "<=":
            return ir.Compare(operator, one.high, other.low)
        case ">" | ">=":
            return ir.Compare(operator, one.low, other.high)
        case "==":
            return ir.Logical(
                "and",
                ir.Compare("==", one.low, other.high),
                ir.Compare("==", one.high, other.low),
            )
        case "!=":
            return ir.Logical(
                "or", ir.Compare("<", one.high, other.low), ir.Compare(">", one.low, other.high)
            )


def tightest(conditions: list[ir.Expression]) -> tuple[ir.Expression, ...]:
    """Conditions that all hold, without those that follow from others: of sums that differ by
    constants one alone.
    """
    every = tuple(dict.fromkeys(conditions))
    apart = [x for c in every for x in _conjuncts(c)]
    kept: dict[object, tuple[int, ir.Expression]] = {}
    for e in apart:
        key, room = _room(e)
        if key not in kept or room < kept[key][0]:
            kept[key] = room, e
    return tuple(e for _, e in kept.values()) if len(kept) < len(apart) else every


def _conjuncts(e: ir.Expression) -> Iterator[ir.Expression]:
    if isinstance(e, ir.Logical) and e.operator == "and":
        yield from _conjuncts(e.left)
        yield from _conjuncts(e.right)
    else:
        yield e


def _room(e: ir.Expression) -> tuple[object, int]:
    """The terms of a sum that a condition says is 0 or more, and its constant; other conditions
    are alike where they are equal.
    """
    if not isinstance(e, ir.Compare) or not e.left.type.is_integer or e.operator in ("==", "!="):
        return e, 0
    left, right = index_sum(e.left), index_sum(e.right)
    low, high = (left, right) if e.operator in ("<", "<=") else (right, left)
    room = high.plus(low, -1)
    return (e.left.type, room.key()), room.constant - (e.operator in ("<", ">"))


def truths(body: ir.Block) -> Mapping[str, ir.Expression]:
    """Booleans that are assigned once, from what does not change."""
    count = write_counts(body)
    return {
        s.name: s.value
        for s in statements(body)
        if isinstance(s, ir.Assign) and s.value.type.kind == "b" and count[s.name] == 1
        and all(count.get(n, 0) <= 1 for n in reads(s.value))
    }  # fmt: skip

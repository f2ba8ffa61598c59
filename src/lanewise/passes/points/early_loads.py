"""Loads before the tests that they stand under: blocks at an edge read all their neighbours at
once, as those in the inside do.

    if 0 < x and x < w - 1: load a[x - 1]: u; load a[x + 1]: v; store c[x] = u + v
->  $test.1 = 0 < x; $test.2 = x < w - 1
    load a[x - 1] early: u; load a[x + 1] early: v
    if $test.1 and $test.2: store c[x] = u + v
A point that fails the test loads a value that nothing reads, at a place that may be beyond a row
and in the next one. That it lies within the array is tested once for a block, at the lowest and at
the highest indices of its points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from lanewise.analysis.index_sums import IndexSum, index_sum, single_definitions
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import blocks, expressions, reads, statements, writes
from lanewise.language.types import BOOL
from lanewise.passes.points import guards
from lanewise.passes.points.shape import Shape, first_of

STEEP = 2  # variables of a sum, each as often as its coefficient says
Ends = tuple[IndexSum, ...]


def apply(
    kernel: ir.Kernel, body: ir.Block, loops: tuple[ir.Parallel, ...], shape: Shape
) -> tuple[tuple[ir.Expression, ...], ir.Block] | None:
    """When the loads of a block may be made early, and the body in which they are; None where they
    cannot be, or stand under no test.
    """
    written = {a.name for a in kernel.arrays if a.written}
    moved = [
        s for s in statements(body) if isinstance(s, ir.If) for b in blocks(s) for s in _loads(b)
    ]
    if not moved or any(s.array in written for s in moved) or not _is_plain(body):
        return None
    shared = {p.name for p in kernel.counts + kernel.uniforms if p.type.is_integer}
    definitions = single_definitions(body)
    tests: dict[ir.Expression, None] = {}
    for array, sums in _groups(moved, definitions):
        ends = _ends(sums, loops, shape, shared)
        if ends is None:
            return None
        tests |= dict.fromkeys(_fits(kernel, *ends))
        tests |= dict.fromkeys(_within(kernel, kernel.array(array), *ends))
    return tuple(tests), _Early(guards.truths(body)).block(body, ())


def _loads(body: ir.Block) -> Iterator[ir.LoadElement]:
    return (s for s in statements(body) if isinstance(s, ir.LoadElement))


def _is_plain(body: ir.Block) -> bool:
    """Whether there are but loads, values, stores and branches, and what a branch gives a value is
    read in it alone.
    """
    every = list(statements(body))
    if not all(
        isinstance(s, ir.LoadElement | ir.StoreElement | ir.Assign | ir.If) or _is_short(s)
        for s in every
    ):
        return False
    for branch in (b for s in every if isinstance(s, ir.If) for b in blocks(s)):
        inside = list(statements(branch))
        written = {n for s in inside for n in writes(s)}
        within = {id(s) for s in inside}
        others = [s for s in every if id(s) not in within]
        if written & {
            n for s in others for n in (*writes(s), *(n for e in expressions(s) for n in reads(e)))
        }:
            return False
    return True


def _is_short(s: ir.Statement) -> bool:
    """Whether a function may be applied to any values: no loops, which may continue, and no arrays
    of the function, whose ends are not tested.
    """
    return isinstance(s, ir.Apply) and all(
        isinstance(x, ir.Assign | ir.If) or _is_short(x) for x in statements(s.function.body)
    )


def _groups(
    loads: list[ir.LoadElement], definitions: dict[str, IndexSum]
) -> list[tuple[str, list[Ends]]]:
    """The indices of loads as sums; those that differ by constants together."""
    groups: dict[tuple[object, ...], tuple[str, list[Ends]]] = {}
    for s in loads:
        sums = tuple(index_sum(i, definitions) for i in s.indices)
        groups.setdefault((s.array, *(a.key() for a in sums)), (s.array, []))[1].append(sums)
    return list(groups.values())


def _ends(
    sums: list[Ends], loops: tuple[ir.Parallel, ...], shape: Shape, shared: set[str]
) -> tuple[Ends, Ends] | None:
    """The lowest and the highest indices in a block; None for what is no sum of indices and of what
    all threads share.
    """
    sides = {loop.variable: shape.side(d) for d, loop in enumerate(loops)}
    kind = loops[0].extent.type
    low, high = list[IndexSum](), list[IndexSum]()
    for same in zip(*sums, strict=True):
        terms: dict[ir.Expression, int] = {}
        least, most = min(a.constant for a in same), max(a.constant for a in same)
        steepness = sum(abs(c) for c in same[0].terms.values())
        for e, c in same[0].terms.items():
            if (
                not isinstance(e, ir.Local)
                or steepness > STEEP
                or e.name not in {*sides, *shared}
                or e.type != kind
            ):
                return None
            terms[replace(e, name=first_of(e.name)) if e.name in sides else e] = c
            reach = c * (sides.get(e.name, 1) - 1)
            least, most = least + min(0, reach), most + max(0, reach)
        if max(-least, most) >= guards.LARGE:
            return None
        low.append(IndexSum(least, terms))
        high.append(IndexSum(most, terms))
    return tuple(low), tuple(high)


def _fits(kernel: ir.Kernel, low: Ends, high: Ends) -> list[ir.Expression]:
    """Tests that no index wraps between the lowest and the highest one, from one side of an array
    to the other.
    """
    kind, uniforms = kernel.counts[0].type, {p.name for p in kernel.uniforms}
    tests: list[ir.Expression] = []
    for least, most in zip(low, high, strict=True):
        if least != most:
            reach = max(-least.constant, most.constant)
            tests += guards.fitting(IndexSum(0, least.terms), reach, kind, uniforms)
    return tests


def _within(
    kernel: ir.Kernel, array: ir.ArrayArgument, low: Ends, high: Ends
) -> list[ir.Expression]:
    """Tests that places lie in an array.

    They are inside of all dimensions but the last, and of the first by one more, so that a row
    before and a row behind belong to the array; beyond the ends of the last dimension they are by a
    row at most.
    """
    kind = kernel.counts[0].type
    kinds = {p.name: p.type for p in kernel.counts + kernel.uniforms}
    tests: list[ir.Expression] = []
    for d, (least, most, length) in enumerate(zip(low, high, array.shape, strict=True)):
        n = ir.Literal(length, kind) if isinstance(length, int) else ir.Local(length, kinds[length])
        first, last = least.expression(kind), most.expression(kind)
        if d == len(low) - 1 and d > 0:
            tests.append(build.less(ir.Literal(-1, kind), build.add(first, n)))
            tests.append(build.less(build.subtract(last, n), n))
            continue
        margin = 1 if d == 0 and len(low) > 1 else 0
        tests.append(build.less(ir.Literal(margin - 1, kind), first))
        tests.append(build.less(last, build.subtract(n, margin)))
    return tests


@dataclass(slots=True)
class _Early:
    """Takes branches apart: everything but stores runs without its test."""

    definitions: Mapping[str, ir.Expression]  # of booleans
    tests: int = 0

    def block(self, block: ir.Block, tests: tuple[ir.Expression, ...]) -> ir.Block:
        return tuple(new for s in block for new in self._statement(s, tests))

    def _statement(self, s: ir.Statement, tests: tuple[ir.Expression, ...]) -> ir.Block:
        match s:
            case ir.If():
                done: list[ir.Statement] = []
                for branch, truth in ((s.then, True), (s.otherwise, False)):
                    if branch:
                        named = self._named(self._conjuncts(s.condition, truth), done)
                        done += self.block(branch, (*tests, *named))
                return tuple(done)
            case ir.StoreElement() if tests:
                every = tests[0]
                for test in tests[1:]:
                    every = ir.Logical("and", every, test)
                return (ir.If(every, (s,)),)
            case ir.LoadElement() if tests:
                return (replace(s, early=True),)
            case _:
                return (s,)

    def _conjuncts(self, e: ir.Expression, truth: bool) -> tuple[ir.Expression, ...]:
        """What has to hold for a condition to have this value: each for itself, and so for the
        indices that it is about.
        """
        match e:
            case ir.Local() if e.name in self.definitions:
                return self._conjuncts(self.definitions[e.name], truth)
            case ir.Unary(operator="not"):
                return self._conjuncts(e.operand, not truth)
            case ir.Logical() if (e.operator == "and") == truth:
                return (*self._conjuncts(e.left, truth), *self._conjuncts(e.right, truth))
            case ir.Compare() if not truth and e.left.type.is_integer:
                return (replace(e, operator=guards.NEGATED[e.operator]),)
            case _:
                return (e if truth else ir.Unary("not", e, BOOL),)

    def _named(
        self, conjuncts: tuple[ir.Expression, ...], done: list[ir.Statement]
    ) -> list[ir.Expression]:
        """Variables of these conditions."""
        names: list[ir.Expression] = []
        for e in conjuncts:
            self.tests += 1
            name = own(f"test.{self.tests}")
            done.append(ir.Assign(name, e))
            names.append(ir.Local(name, BOOL))
        return names

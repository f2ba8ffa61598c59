"""Extremes that carry values along: the place of the largest element, and what else belongs to it.

    for k in range(n): if a[y, k] > most: most = a[y, k]; where = k
Threads that share the rounds keep the round with each value: of equal ones the first round has
it, or with `>=` the last one, as it has in a loop that runs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.folds import Fold, Operation
from lanewise.ir.traverse import reads, statements, used_by, writes

_STRAIGHT: dict[str, Operation] = {"<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TURNED: dict[str, Operation] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

Meaning = Callable[[ir.Expression], object]


def compared(
    condition: ir.Expression,
) -> Iterator[tuple[str, Operation, ir.Expression]]:
    """Each variable that a comparison is of, how a value has to compare to take its place, and that
    value: `e > x` is (x, ">", e), and so is `x < e`.
    """
    match condition:
        case ir.Compare(operator, left, right) if operator in _STRAIGHT:
            if isinstance(right, ir.Local):
                yield right.name, _STRAIGHT[operator], left
            if isinstance(left, ir.Local):
                yield left.name, _TURNED[operator], right
        case _:
            pass


def carrying(loop: ir.For, meaning: Meaning) -> tuple[Fold, ...]:
    """The extremes of a loop that carry values along. meaning: what an expression stands for, where
    two loads of one element are one value.
    """
    if not isinstance(loop.step, ir.Literal) or loop.step.value <= 0:
        return ()
    found = (_extreme(s, loop, meaning) for s in loop.body if isinstance(s, ir.If))
    return tuple(f for f in found if f is not None)


def _extreme(s: ir.If, loop: ir.For, meaning: Meaning) -> Fold | None:
    """`if e > x: x = e; w = ...`, where nothing else in the loop reads or writes x and w."""
    if (test := _test(s)) is None or s.otherwise:
        return None
    name, operation, value = test
    taken = [x for x in s.then if isinstance(x, ir.Assign) and x.name == name]
    if len(taken) != 1 or not all(isinstance(x, ir.Assign | ir.LoadElement) for x in s.then):
        return None
    if meaning(taken[0].value) != meaning(value):
        return None
    inside = {n for x in s.then for n in writes(x)}
    others = [x for x in statements(loop.body) if x is not s and not any(x is y for y in s.then)]
    outside = {n for x in others for n in (*writes(x), *used_by(x))}
    carried = [x for x in s.then if isinstance(x, ir.Assign) and x is not taken[0]]
    own = {x.name for x in carried}
    if name in outside or own & outside or len(own) != len(carried):
        return None
    if any(({name} | own) & used_by(x) for x in s.then) or (inside - own - {name}) & outside:
        return None
    if list(reads(s.condition)).count(name) != 1 or own & set(reads(s.condition)):
        return None
    kinds = tuple(ir.Local(x.name, x.value.type) for x in carried)
    return Fold(name, taken[0].value.type, operation, kinds) if kinds else None


def _test(s: ir.If) -> tuple[str, Operation, ir.Expression] | None:
    """The comparison of a branch, where what it compares is written there."""
    written = {n for x in s.then for n in writes(x)}
    return next((t for t in compared(s.condition) if t[0] in written), None)


def with_rounds(loop: ir.For, folds: dict[str, str]) -> ir.For:
    """A loop that also keeps the round of its extremes. folds: the name of the variable that holds
    it, for each of them.
    """

    def kept(s: ir.Statement) -> ir.Statement:
        if not isinstance(s, ir.If) or (test := _test(s)) is None or test[0] not in folds:
            return s
        name, _, value = test
        number = ir.Assign(folds[name], ir.Local(loop.variable, loop.start.type))
        then = [
            replace(x, value=value) if isinstance(x, ir.Assign) and x.name == name else x
            for x in s.then
        ]
        return replace(s, then=(*_needed(then), number))

    return replace(loop, body=tuple(map(kept, loop.body)))


def _needed(block: list[ir.Statement]) -> ir.Block:
    """The assignments of a block, and the loads that these or other loads need."""
    done, needed = list[ir.Statement](), set[str]()
    for x in reversed(block):
        if not isinstance(x, ir.LoadElement) or x.name in needed:
            needed |= used_by(x)
            done.insert(0, x)
    return tuple(done)

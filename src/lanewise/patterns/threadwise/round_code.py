"""How many instructions a term takes, which decides how many of them a thread may write out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lanewise.analysis.operation_costs import operation_cost
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import expressions, statements, subexpressions
from lanewise.planning.plan import Plan

INSTRUCTION_BYTES = 16
# Of the rounds of a tile, beyond which instructions come late: products of 8 x 8 points in tiles of
# 16 rounds take 16 KB as sums of products, 32 KB as minima of sums (1 to 4 % slower than in tiles
# of 8), 48 and 64 KB as extremes of products or differences by a test (13 to 23 %), on an NVIDIA
# H200.
MOST_CODE = 24 * 1024
# The same, beyond which they come from the GPU's memory: of log-sum-exps 8 x 8 points in tiles of 8
# take 320 KB and 2.5 times as long as 4 x 4 points in tiles of 16, which take 160 KB.
FAR_TOO_MUCH_CODE = 192 * 1024


def slots_of_a_round(body: ir.Block) -> float:
    """Arithmetic instructions of floats in a round of the longest innermost loop; equal values
    count once.
    """
    inner = (s.body for s in statements(body) if isinstance(s, ir.For) and _is_innermost(s))
    return max(map(slots_of, inner), default=0.0)


def slots_of(body: ir.Block) -> float:
    """Arithmetic instructions of floats in a body, as often as they stand there; equal values count
    once.
    """
    met = dict.fromkeys(_values(body))
    fused = {p for e in met for p in _taken(e)}
    own = sum(sum(_cost(e).values()) for e in met if e not in fused)
    return own + sum(
        1
        for s in statements(body)
        if isinstance(s, ir.If)
        for t in (*s.then, *s.otherwise)
        if isinstance(t, ir.Assign) and t.value.type.is_float
    )


def is_much_code(plan: Plan, slots: float) -> bool:
    """Whether the rounds of a tile, written out for all points of a thread, do not fit the
    instruction cache next to a scheduler.
    """
    return _code(plan, slots) > MOST_CODE


def is_far_too_much_code(plan: Plan, slots: float) -> bool:
    """Whether they do not fit any instruction cache."""
    return _code(plan, slots) > FAR_TOO_MUCH_CODE


def _code(plan: Plan, slots: float) -> float:
    points = (plan.targets or 1) * (plan.rows or 1) * (plan.layers or 1)
    return points * (plan.tile or 1) * slots * INSTRUCTION_BYTES


def _is_innermost(loop: ir.For) -> bool:
    return not any(isinstance(s, ir.For | ir.While) for s in statements(loop.body))


def _values(body: ir.Block) -> Iterator[ir.Expression]:
    for s in statements(body):
        yield from _all(expressions(s))


def _all(several: Iterable[ir.Expression]) -> Iterator[ir.Expression]:
    for e in several:
        yield from subexpressions(e)


def _taken(e: ir.Expression) -> tuple[ir.Expression, ...]:
    """The product that a sum takes in, as one fused instruction."""
    if not (isinstance(e, ir.Binary) and e.operator in ("+", "-") and e.type.is_float):
        return ()
    products = (x for x in (e.left, e.right) if isinstance(x, ir.Binary) and x.operator == "*")
    return tuple(products)[:1]


def _cost(e: ir.Expression) -> dict[str, float]:
    match e:
        case ir.Compare() if e.left.type.is_float:
            return dict(operation_cost(e.operator, e.type, (e.left.type, e.right.type)))
        case ir.Binary() if e.type.is_float:
            return dict(operation_cost(e.operator, e.type, (e.left.type, e.right.type)))
        case ir.Call() if e.type.is_float:
            kinds = tuple(a.type for a in e.arguments)
            return dict(operation_cost(e.intrinsic, e.type, kinds))
        case _:
            return {}

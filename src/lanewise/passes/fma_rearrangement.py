"""Reorder sums of products so that each product joins the running sum in one fused multiply-add.

    d.x * d.x + d.y * d.y + d.z * d.z + e        one multiplication, two fused multiply-adds, one
    addition
->  d.x * d.x + (d.y * d.y + (d.z * d.z + e))    three fused multiply-adds The compilers contract `a
* b + c` (that is how the user's arithmetic is defined), so the order of the additions is all it
takes. The sum starts with the addends that are no products. Variables that are read once are looked
through. This changes rounding, as any other order of the same additions does: results differ in the
last places.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.analysis.definitions import definitions
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions, map_functions
from lanewise.ir.traverse import rewrite, rewrite_statement
from lanewise.passes import dead_code
from lanewise.passes.base import refuse
from lanewise.support.errors import Location

Term = tuple[bool, ir.Expression]  # whether it is subtracted, and what


def saved(kernel: ir.Kernel) -> int:
    """How many instructions one application of each function of the kernel needs less."""
    bodies = [*functions(kernel.body)]
    if kernel.pattern.inlined:
        bodies.append(ir.Function(kernel.name, (), (), kernel.body))
    return sum(_Rearrangement(f).run()[1] for f in bodies)


def legal(kernel: ir.Kernel) -> str | None:
    """Why the pass does not apply, or None."""
    return (
        None
        if saved(kernel)
        else "every product in its sums already joins one in a fused multiply-add"
    )


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """Rearrange every function; raises `PlanError` when nothing is gained."""
    if reason := legal(kernel):
        raise refuse("FMA rearrangement", kernel, reason)
    return dead_code.apply(map_functions(kernel, lambda f: _Rearrangement(f).run()[0]))


class _Rearrangement:
    def __init__(self, function: ir.Function) -> None:
        self.function, self.definitions = function, definitions(function)
        self.new: dict[str, ir.Expression] = {}  # definitions whose own sums are rearranged already
        self.saved = 0

    def run(self) -> tuple[ir.Function, int]:
        """The function, and the instructions saved."""
        return replace(self.function, body=self._block(self.function.body)), self.saved

    def _block(self, block: ir.Block) -> ir.Block:
        done: list[ir.Statement] = []
        for s in block:
            new = rewrite_statement(s, lambda e: rewrite(e, self._node), self._block)
            if isinstance(new, ir.Assign) and self.definitions.used_once(new.name) is not None:
                self.new[new.name] = new.value
            done.append(new)
        return tuple(done)

    def _node(self, e: ir.Expression) -> ir.Expression:
        """A sum whose parts are rearranged already."""
        if not _is_sum(e):
            return e
        terms = self._terms(e, negative=False)
        products = sum(_is_product(x) for _, x in terms)
        gain = self._instructions(e) - (products + max(len(terms) - products - 1, 0))
        if gain <= 0:
            return e
        self.saved += gain
        return _chain(terms, e)

    def _seen(self, e: ir.Expression) -> ir.Expression:
        """What a name stands for, when it is a sum or a product that nothing else reads."""
        value = self.new.get(e.name) if isinstance(e, ir.Local) else None
        return value if value is not None and (_is_sum(value) or _is_product(value)) else e

    def _terms(self, e: ir.Expression, *, negative: bool) -> list[Term]:
        match self._seen(e):
            case ir.Binary(operator="+" | "-") as x if _is_sum(x):
                right = negative != (x.operator == "-")
                return self._terms(x.left, negative=negative) + self._terms(x.right, negative=right)
            case ir.Unary(operator="-", operand=operand):
                return self._terms(operand, negative=not negative)
            case other:
                return [(negative, other)]

    def _instructions(self, e: ir.Expression) -> int:
        """Additions, multiplications and fused multiply-adds of a sum as it is contracted; not
        those within its terms.
        """
        x = self._seen(e)
        while isinstance(x, ir.Unary) and x.operator == "-":
            x = self._seen(x.operand)
        if not isinstance(x, ir.Binary) or not _is_sum(x):
            return int(_is_product(x))
        parts = [self._instructions(x.left), self._instructions(x.right)]
        fused = any(_is_product(_without_sign(self._seen(side))) for side in (x.left, x.right))
        return 1 + sum(parts) - fused


def _chain(terms: list[Term], old: ir.Expression) -> ir.Expression:
    """The addends that are no products, those with a plus sign first, then every product, the last
    one innermost.
    """
    others = sorted((t for t in terms if not _is_product(t[1])), key=lambda t: t[0])
    products = [t for t in terms if _is_product(t[1])][::-1]
    (negative, total), *rest = others + products
    if negative and rest and not rest[0][0]:
        total = _sum("-", rest.pop(0)[1], total, old.location)
    elif negative:  # a sign is part of the instruction that takes the value
        total = ir.Unary("-", total, old.type, old.location)
    for subtracted, x in rest:
        first, second = (x, total) if _is_product(x) and not subtracted else (total, x)
        total = _sum("-" if subtracted else "+", first, second, old.location)
    return total


def _sum(
    operator: ir.BinaryOperator, left: ir.Expression, right: ir.Expression, location: Location
) -> ir.Binary:
    return ir.Binary(operator, left, right, left.type, location)


def _without_sign(e: ir.Expression) -> ir.Expression:
    return _without_sign(e.operand) if isinstance(e, ir.Unary) and e.operator == "-" else e


def _is_sum(e: ir.Expression) -> bool:
    return isinstance(e, ir.Binary) and e.operator in ("+", "-") and e.type.is_float


def _is_product(e: ir.Expression) -> bool:
    return isinstance(e, ir.Binary) and e.operator == "*" and e.type.is_float

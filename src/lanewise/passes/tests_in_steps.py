"""A test that is made in steps becomes one, where what the second side of `and` or `or` computes is
cheap.

    t = 0 <= p and p < h; if t: q = x - 1; t = 0 <= q and q < w
->  q = x - 1; t = 0 <= p and p < h and 0 <= q and q < w
So what the test is about is known, and nothing stands in a branch but what the user put there.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import (
    read_counts,
    rewrite_statement,
    subexpressions,
    write_counts,
    writes,
)
from lanewise.language.types import BOOL

_CHEAP = ("+", "-", "*")


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with such tests in one expression; the same object where it has none."""
    body = kernel.body
    while True:  # the steps of a step come first
        together = _Steps(body).block(body)
        if together is body:
            return kernel if body is kernel.body else replace(kernel, body=body)
        body = together


class _Steps:
    def __init__(self, body: ir.Block) -> None:
        self.written, self.read = write_counts(body), read_counts(body)

    def block(self, block: ir.Block) -> ir.Block:
        done, changed = list[ir.Statement](), False
        for old in block:
            s = rewrite_statement(old, lambda e: e, self.block)
            joined = self._joined(done[-1], s) if done else None
            changed = changed or s is not old or joined is not None
            done[len(done) - (joined is not None) :] = joined or (s,)
        return tuple(done) if changed else block

    def _joined(self, first: ir.Statement, s: ir.Statement) -> ir.Block | None:
        """A test and its second step together."""
        if not (isinstance(first, ir.Assign) and first.value.type == BOOL):
            return None
        if not isinstance(s, ir.If) or s.otherwise or not s.then:
            return None
        match s.condition:
            case ir.Local(name=first.name):
                operator = "and"
            case ir.Unary(operator="not", operand=ir.Local(name=first.name)):
                operator = "or"
            case _:
                return None
        *before, last = s.then
        if not (isinstance(last, ir.Assign) and last.name == first.name):
            return None
        if not all(isinstance(x, ir.Assign) and _is_cheap(x.value) for x in s.then):
            return None
        names = [n for x in before for n in writes(x)]
        inside = read_counts(s.then)
        own = all(self.written[n] == 1 and self.read[n] == inside[n] for n in names)
        if not own or first.name in inside:
            return None
        return (*before, replace(last, value=ir.Logical(operator, first.value, last.value)))


def _is_cheap(e: ir.Expression) -> bool:
    return all(
        isinstance(x, ir.Local | ir.Literal | ir.Compare | ir.Logical)
        or (isinstance(x, ir.Unary) and x.operator in ("not", "-"))
        or (isinstance(x, ir.Binary) and x.operator in _CHEAP)
        for x in subexpressions(e)
    )

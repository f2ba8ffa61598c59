"""Whether an integer surely is a multiple of another one: sums, products and choices of such
numbers are.
"""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.names import length_of
from lanewise.ir.traverse import statements, writes

Definitions = dict[str, ir.Expression]


def definitions(block: ir.Block) -> Definitions:
    """What the variables stand for that one assignment gives their value."""
    often = [n for s in statements(block) for n in writes(s)]
    return {
        s.name: s.value
        for s in statements(block)
        if isinstance(s, ir.Assign) and often.count(s.name) == 1
    }


def lengths(kernel: ir.Kernel, number: int) -> frozenset[str]:
    """The lengths of rows that are multiples of a number."""
    return frozenset(
        length_of(a.name, len(a.shape) - 1)
        for a in kernel.arrays
        if a.shape and a.multiple % number == 0
    )


def starts_of_panels(kernel: ir.Kernel, number: int) -> frozenset[str]:
    """The first rounds of panels that are multiples of a number: where the loop begins at one, and
    the panels have so many rounds.
    """
    sure = frozenset[str]()
    for s in kernel.series:  # those within others begin where these do
        if s.step % number == 0 and is_multiple(s.start, number, sure, {}):
            sure |= {s.first}
    return sure


def is_multiple(e: ir.Expression, number: int, sure: frozenset[str], meant: Definitions) -> bool:
    """Whether an expression is a multiple of a number; `sure` names variables that are."""
    match e:
        case ir.Literal(value=value):
            return int(value) % number == 0
        case ir.Local(name=name):
            return name in sure or (name in meant and is_multiple(meant[name], number, sure, meant))
        case ir.Cast(operand=operand) if e.type.is_integer and operand.type.is_integer:
            return is_multiple(operand, number, sure, meant)
        case ir.Binary(operator="*", left=left, right=right):
            return any(is_multiple(x, number, sure, meant) for x in (left, right))
        case ir.Binary(operator="+" | "-", left=left, right=right):
            return all(is_multiple(x, number, sure, meant) for x in (left, right))
        case ir.Call(intrinsic="min" | "max", arguments=arguments):
            return all(is_multiple(x, number, sure, meant) for x in arguments)
        case ir.Select(if_true=one, if_false=other):
            return all(is_multiple(x, number, sure, meant) for x in (one, other))
        case _:
            return False

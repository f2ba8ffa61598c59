"""The pair of an element with itself: a proof that its term is zero, from the function alone.

    d = source.position - target.position       0 inv = rsqrt(dot(d, d) + softening2)
    rsqrt(softening2) source.mass * inv**3 * d                    0, if softening2 > 0 and
    rsqrt(softening2)**3 is finite
The function is numbered with the fields of the source put equal to those of the target, and
simplified (`simplification`). A proof about uniforms is a set of conditions, which are checked
where their values are bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.analysis.simplification import SHOWN, Condition, Simplification
from lanewise.analysis.value_numbering import NotNumbered, Value, ValueTable, number_function
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import evaluate
from lanewise.ir.names import own, owner
from lanewise.ir.printer import print_expression
from lanewise.ir.traverse import subexpressions
from lanewise.language.types import BOOL, F64


@dataclass(frozen=True, slots=True)
class Proof:
    """The self term is zero whenever all conditions hold."""

    conditions: tuple[Condition, ...] = ()


def zero_self_term(
    function: ir.Function, target: str, source: str, *, same: bool = False
) -> Proof | str:
    """Prove that a pair function is zero for a source with the fields of the target, or say which
    result is not.

    `target` and `source` are the names of its record parameters, which must be of one record class.
    `same` is what `lw.same` answers in it: False proves that the test for the pair is not needed.
    """
    table = ValueTable()
    arguments: dict[str, Value] = {}
    for p in function.parameters:
        if p.name == own("same"):
            arguments[p.name] = Value(table.add("literal", (), BOOL, same))
        else:
            name = target + p.name[len(source) :] if owner(p.name) == source else p.name
            arguments[p.name] = table.leaf(name, p.type)
    try:
        results = number_function(table, function, arguments)
    except NotNumbered as reason:
        return str(reason)
    simple = Simplification(table, target)
    conditions: dict[Condition, None] = {}
    for p, result in zip(function.results, results, strict=True):
        value = simple.values[result.number]
        if not simple.is_zero(value):
            sign = "-" if value.negative != result.negative else ""
            blocked = simple.blocked[result.number]
            return (
                f"{p.name} is "
                f"{sign}{simple.shown(value.number)}{f', and {blocked}' if blocked else ''}"
            )
        conditions |= simple.conditions[result.number]
    return Proof(tuple(sorted(conditions, key=lambda c: c.demand == "finite")))


def violated(proof: Proof, uniforms: Mapping[str, Any]) -> str | None:
    """The first condition that these values (by name) do not meet, in words; None when the term is
    zero for them.
    """
    for c in proof.conditions:
        used = {
            x.name: x.type.dtype.type(uniforms[x.name])
            for x in subexpressions(c.value)
            if isinstance(x, ir.Local)
        }
        with np.errstate(all="ignore"):
            value = evaluate(c.value, used)
        limits = np.finfo(np.float64 if c.value.type == F64 else np.float32)
        if c.demand == "> 0":  # approximate instructions take anything smaller for zero
            low, high, bound = float(limits.tiny), math.inf, f"at least {limits.tiny:.3g}"
        else:  # so that a product with a field of ordinary size is finite
            high = math.sqrt(limits.max)
            low, bound = -high, f"at most {high:.3g} in size"
        if not low <= value <= high:
            text = print_expression(c.value)
            text = text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
            operands = (
                ""
                if isinstance(c.value, ir.Local)
                else f" for {', '.join(f'{n} = {v!s}' for n, v in used.items())}"
            )
            return f"{text} must be {bound}, and it is {value!s}{operands}"
    return None

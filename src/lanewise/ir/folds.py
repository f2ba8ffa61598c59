"""Folds: how a variable gathers many values, in any order: sums, products, extremes, and what is
true of any or all.

    s = s + e      m = max(m, e)      if e > m: m = e      any_ = any_ or e
The neutral value changes nothing; two gathered values join as one more value does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.language.types import BOOL, Scalar

Operation = Literal["+", "*", "&", "|", "^", "min", "max", "and", "or", "<", "<=", ">", ">="]
"""The comparisons take a value `e` that is so compared with what was gathered: `if e > m.

M = e`, which no NaN passes.
"""


@dataclass(frozen=True, slots=True)
class Fold:
    """A variable that gathers values. carried: of an extreme, what takes values where it does."""

    name: str
    type: Scalar
    operation: Operation
    carried: tuple[ir.Local, ...] = ()

    @property
    def variable(self) -> ir.Local:
        return ir.Local(self.name, self.type)

    @property
    def is_sum(self) -> bool:
        return self.operation == "+"


def neutral(operation: Operation, kind: Scalar) -> ir.Literal:
    """What a fold begins with that has gathered nothing."""
    match operation:
        case "+" | "|" | "^":
            return ir.Literal(0.0 if kind.is_float else False if kind == BOOL else 0, kind)
        case "*":
            return ir.Literal(1.0 if kind.is_float else 1, kind)
        case "and":
            return ir.Literal(True, kind)
        case "or":
            return ir.Literal(False, kind)
        case "&":
            return ir.Literal(
                True if kind == BOOL else _limit(kind, largest=True) if kind.kind == "u" else -1,
                kind,
            )
        case "min" | "<" | "<=":
            return ir.Literal(_limit(kind, largest=True), kind)
        case "max" | ">" | ">=":
            return ir.Literal(_limit(kind, largest=False), kind)


def join(operation: Operation, one: ir.Expression, other: ir.Expression) -> ir.Expression:
    """What two folds have gathered together, the first of them first."""
    kind = one.type
    match operation:
        case "+" | "*" | "&" | "|" | "^":
            return ir.Binary(operation, one, other, kind)
        case "and" | "or":
            return ir.Logical(operation, one, other)
        case "min" | "max":
            if kind == BOOL:
                return ir.Logical("and" if operation == "min" else "or", one, other)
            return ir.Call(operation, (one, other), kind)
        case "<" | "<=" | ">" | ">=":
            return ir.Select(ir.Compare(operation, other, one), other, one, kind)


def _limit(kind: Scalar, *, largest: bool) -> float | int | bool:
    if kind == BOOL:
        return largest
    if kind.is_float:
        return float("inf") if largest else float("-inf")
    limits = np.iinfo(kind.dtype.str)
    return int(limits.max if largest else limits.min)

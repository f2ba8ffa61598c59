"""Which type an operation is computed in, and how its operands get there.

Python numbers are weak: `0.1 * x` is computed in the type of x, from the full precision of 0.1.
Only a float literal that meets integers changes the type, to f32 or f64 as wide as the integers
are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lanewise.frontend.values import Number
from lanewise.ir import nodes as ir
from lanewise.language import types as t


class Misfit(Exception):
    """A Python number cannot be held by the type that it meets.

    The node that is being lowered gives it a place.
    """

    def __init__(self, constant: int | float, scalar: t.Scalar) -> None:
        super().__init__(f"{constant!r} does not fit {scalar}")
        self.constant, self.scalar = constant, scalar


def fits(constant: bool | int | float, scalar: t.Scalar) -> bool:
    """Whether a type can hold a Python number (floats are rounded, but not to infinity)."""
    if scalar.is_integer:
        low, high = t.limits(scalar)
        return isinstance(constant, int) and low <= constant <= high
    if scalar.is_float:
        try:
            return not math.isfinite(constant) or abs(constant) <= t.limits(scalar)[1]
        except OverflowError:  # an integer beyond every float
            return False
    return isinstance(constant, bool)


def cast(e: ir.Expression, scalar: t.Scalar, *, explicit: bool = False) -> ir.Expression:
    """An expression in another type; literals, and choices between them, are converted at once.

    Raises `Misfit` for a literal that the type cannot hold. An explicit conversion wraps
    integers instead.
    """
    match e:
        case ir.Literal(value=value):
            checked = scalar.is_float or (scalar.is_integer and e.type.is_integer and not explicit)
            if checked and not fits(value, scalar):
                raise Misfit(value, scalar)
            return (
                e
                if e.type == scalar and not explicit
                else ir.Literal(_converted(value, scalar), scalar, e.location)
            )
        case ir.Select() if e.type != scalar and _of_literals(e):
            first, second = (cast(x, scalar, explicit=explicit) for x in (e.if_true, e.if_false))
            return ir.Select(e.condition, first, second, scalar, e.location)
        case _:
            return _between(e, scalar)


def _between(e: ir.Expression, scalar: t.Scalar) -> ir.Expression:
    """What lies in memory only is converted to and from what it is computed with, and to nothing
    else: devices have those conversions. A float becomes the nearest integer of few bits.
    """
    if e.type == scalar:
        return e
    if e.type in t.STORED:
        return _between(ir.Cast(e, t.computed(e.type), e.location), scalar)
    wide = t.computed(scalar)
    if scalar in t.STORED and e.type != wide:
        whole = _between(e, wide)
        if e.type.is_float and scalar.is_integer:
            ends = (ir.Literal(int(x), wide, e.location) for x in t.limits(scalar))
            whole = ir.Call("clamp", (whole, *ends), wide, e.location)
        return ir.Cast(whole, scalar, e.location)
    return ir.Cast(e, scalar, e.location)


def _of_literals(e: ir.Expression) -> bool:
    return isinstance(e, ir.Literal) or (
        isinstance(e, ir.Select) and _of_literals(e.if_true) and _of_literals(e.if_false)
    )


def _converted(value: bool | int | float, scalar: t.Scalar) -> bool | int | float:
    """The Python number whose value the type holds: `types.convert`, also of integers of any
    size.
    """
    if isinstance(value, int) and scalar.is_integer:
        bits = 8 * scalar.size
        wrapped = value % (1 << bits)
        return wrapped - (1 << bits) if scalar.kind == "i" and wrapped >> (bits - 1) else wrapped
    with np.errstate(all="ignore"):
        return t.convert(value, scalar).item()


def settle(value: Number, scalar: t.Scalar, *, explicit: bool = False) -> Number:
    """The same number or vector with components of type `scalar`; raises `Misfit` (see `cast`)."""
    parts = tuple(cast(p, scalar, explicit=explicit) for p in value.parts)
    return Number(t.Vector(scalar, len(parts)) if value.is_vector else scalar, parts)


def common_scalar(values: Sequence[Number]) -> t.Scalar:
    """The type in which an operation on these values is computed: weak numbers follow the
    others.
    """
    return t.common((v.scalar for v in values if not v.weak), (v.scalar for v in values if v.weak))


def signed_scalar(values: Sequence[Number]) -> t.Scalar:
    """The same where a sign decides (comparisons, minima, `//`, `%`, `>>`).

    A variable that only Python numbers have set may be negative.
    """
    kind = common_scalar(values)
    return t.I64 if kind == t.U32 and any(v.open for v in values) else kind

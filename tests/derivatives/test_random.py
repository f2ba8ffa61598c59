"""Random expressions: reverse mode, forward mode and differences agree."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.derivatives.gradient import Cotangents, GradientValue
from lanewise.derivatives.gradient import _Maker as Maker  # pyright: ignore[reportPrivateUsage]
from lanewise.ir import nodes as ir
from lanewise.ir.verify import verify_function
from lanewise.language.types import F64
from tests.derivatives.differences import central, value

NAMES = ("x", "y", "z")


def _call(name: str, *arguments: ir.Expression) -> ir.Expression:
    return ir.Call(name, arguments, F64)


def _binary(operator: ir.BinaryOperator, a: ir.Expression, b: ir.Expression) -> ir.Expression:
    return ir.Binary(operator, a, b, F64)


def _number(x: float) -> ir.Expression:
    return ir.Literal(x, F64)


def _above_one(a: ir.Expression) -> ir.Expression:
    return _binary("+", _number(1.0), _binary("*", a, a))


def _random(rng: np.random.Generator, depth: int) -> ir.Expression:
    """An expression whose derivative exists nearly everywhere."""
    if depth == 0 or rng.random() < 0.1:
        names = [ir.Local(n, F64) for n in NAMES]
        return names[rng.integers(3)] if rng.random() < 0.7 else _number(rng.choice([-1.5, 0.5, 1.0, 2.0, 0.0]))
    a, b, c = (_random(rng, depth - 1) for _ in range(3))
    match rng.integers(9):
        case 0 | 1:
            operators: tuple[ir.BinaryOperator, ...] = ("+", "-", "*")
            return _binary(operators[rng.integers(3)], a, b)
        case 2:
            return _binary("/" if rng.random() < 0.7 else "%", a, _above_one(b))
        case 3:
            return ir.Unary("-", a, F64)
        case 4:
            return _call(str(rng.choice(["sin", "cos", "tanh", "atan", "abs"])), a)
        case 5:
            return _call(str(rng.choice(["sqrt", "rsqrt", "log", "cbrt"])), _above_one(a))
        case 6:
            return _call(str(rng.choice(["min", "max", "hypot", "atan2"])), a, b)
        case 7:
            return _call("fma", ir.Unary("-", a, F64) if rng.random() < 0.5 else a, b, c)
        case _:
            return ir.Select(ir.Compare("<", a, b), _binary("*", a, c), c, F64)


@given(st.integers(0, 1 << 31))
def test_random_functions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = _random(rng, 3), _random(rng, 3)
    local = ir.Local("a", F64)
    branch = ir.If(ir.Compare(">", local, _number(0.3)), (ir.Return((_binary("*", local, second), local)),))
    everything = reduce(lambda a, b: _binary("+", a, b), [ir.Local(n, F64) for n in NAMES])
    body = (ir.Assign("a", first), branch, ir.Return((second, _binary("*", local, everything))))
    f = ir.Function(
        "f",
        tuple(ir.Parameter(n, F64) for n in NAMES),
        (ir.Parameter("result0", F64), ir.Parameter("result1", F64)),
        body,
    )
    asked = tuple(GradientValue((n,), F64) for n in NAMES)
    maker = Maker(f, "g", asked, Cotangents(("c", "d")), None)
    arguments = dict(zip((*NAMES, "c", "d"), rng.uniform(-1.2, 1.2, 5), strict=True))
    reverse, forward = maker.reverse(), maker.forward()
    verify_function(reverse)
    verify_function(forward)
    one, other = value(reverse, arguments), value(forward, arguments)
    # A product with a factor that is the number 0 is dropped in reverse; forward mode multiplies it, perhaps with
    # atan2'(0, 0).
    finite = np.isfinite(one) & np.isfinite(other)
    np.testing.assert_allclose(np.array(one)[finite], np.array(other)[finite], rtol=1e-9, atol=1e-9)

    def total(a: dict[str, float]) -> float:
        p, q = value(f, a)
        return float(a["c"] * p + a["d"] * q)

    for name, derivative in zip(np.array(NAMES)[finite], np.array(one)[finite], strict=True):
        wide, narrow = central(total, arguments, name), central(total, arguments, name, step=1e-6)
        if abs(wide - narrow) < 1e-5 * (1 + abs(wide)):  # else there is a step or a kink nearby
            assert derivative == pytest.approx(wide, rel=1e-4, abs=1e-4)

"""The mathematics of kernels against NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.frontend.ways import agree, run
from tests.written import module

POSITIVE = "sqrt cbrt rsqrt log log2 log10 exp exp2 sin cos tan sinh cosh tanh floor ceil trunc atan abs".split()
UNIT = "asin acos".split()
TWO = "min max atan2 pow hypot".split()
NUMPY: dict[str, Any] = {
    "rsqrt": lambda x: 1 / np.sqrt(x), "min": np.minimum, "max": np.maximum, "atan2": np.arctan2, "pow": np.power, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan,
}  # fmt: skip

KERNEL = """
@lw.elementwise
def kernel(x: lw.{t}, y: lw.{t}, u: lw.{t}) -> tuple[{results}]:
    return ({values}, lw.clamp(x, y, 2.0), lw.mix(x, y, u), lw.fma(x, y, u), lw.select(x > y, x, u), lw.max(x, y, u, 0.5))
"""


@pytest.mark.parametrize(("t", "rtol"), [("f32", 4e-6), ("f64", 1e-14)])
def test_functions_of_scalars(t: str, rtol: float) -> None:
    values = [f"lw.{n}(x)" for n in POSITIVE] + [f"lw.{n}(u)" for n in UNIT] + [f"lw.{n}(x, y)" for n in TWO]
    kernel = module(
        KERNEL.format(t=t, results=", ".join([f"lw.{t}"] * (len(values) + 5)), values=", ".join(values))
    ).kernel
    dtype = np.float32 if t == "f32" else np.float64
    rng = np.random.default_rng(1)
    x, y, u = (a.astype(dtype) for a in (rng.uniform(0.1, 4, 50), rng.uniform(0.1, 3, 50), rng.uniform(-1, 1, 50)))
    got = agree(kernel, x=x, y=y, u=u, rtol=rtol, atol=rtol / 10)
    wide = [a.astype(np.float64) for a in (x, y, u)]
    for number, name in enumerate([*POSITIVE, *UNIT, *TWO]):
        function = NUMPY.get(name) or getattr(np, name)
        operands = [wide[2]] if name in UNIT else wide[:2] if name in TWO else [wide[0]]
        np.testing.assert_allclose(got[number], function(*operands), rtol, rtol, err_msg=name)
    a, b, c = wide
    for result, wanted in zip(got[-5:], [np.minimum(np.maximum(a, b), 2), a + (b - a) * c, a * b + c, np.where(a > b, a, c),
                                         np.maximum(np.maximum(a, b), np.maximum(c, 0.5))], strict=True):  # fmt: skip
        np.testing.assert_allclose(result, wanted, rtol, rtol)


def test_names_of_math_numpy_and_python() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(x: lw.f64, n: lw.i32) -> tuple[lw.f64, lw.f64, lw.f64, lw.f64, lw.i32, lw.i32, lw.f64, lw.f64, lw.i32]:
            return (math.sqrt(x) + np.sqrt(x), np.arctan2(x, 2.0) + math.atan2(x, 2.0), np.maximum(x, 1.5),
                    math.pow(x, 1.5) + np.power(x, 2.5), abs(n), min(n, 2), max(x, 1, 2.5), math.fabs(-x) + np.absolute(-x), pow(n, 3))
    """).kernel
    x, n = np.array([0.5, 2.0, 3.0]), np.array([-2, 1, 5], np.int32)
    got = agree(kernel, x=x, n=n, rtol=1e-14)
    np.testing.assert_allclose(got[0], 2 * np.sqrt(x), 1e-15)
    assert got[4].tolist() == [2, 1, 5]
    assert got[8].tolist() == [-8, 1, 125]


def test_predicates_and_special_values() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(x: lw.f32) -> tuple[lw.bool, lw.bool, lw.bool, lw.bool, lw.f32, lw.f32]:
            return lw.isnan(x), lw.isinf(x), lw.isfinite(x), x == x, x * math.inf, lw.select(lw.isnan(x), 0.0, x)
    """).kernel
    x = np.array([np.nan, np.inf, -np.inf, 1.0, -2.0], np.float32)
    got = agree(kernel, x=x)
    np.testing.assert_array_equal(got[0], np.isnan(x))
    np.testing.assert_array_equal(got[1], np.isinf(x))
    np.testing.assert_array_equal(got[2], np.isfinite(x))
    np.testing.assert_array_equal(got[3], x == x)


def test_integer_division_by_zero_does_not_stop_the_program() -> None:
    """Its value is not specified; the program goes on."""
    kernel = module("""
        @lw.elementwise
        def kernel(n: lw.i32, d: lw.i32) -> tuple[lw.i32, lw.i32, lw.i32]:
            return n // d, n % d, n // d if d != 0 else -1
    """).kernel
    arguments = {"n": np.array([7, 7], np.int32), "d": np.array([0, 2], np.int32)}
    for device in ("python", "cpu"):
        got = run(kernel, device, arguments)
        assert [int(r[1]) for r in got] == [3, 1, 3]
        assert int(got[2][0]) == -1


def test_powers() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(x: lw.f64, n: lw.i32) -> tuple[lw.f64, lw.f64, lw.f64, lw.f64, lw.f64, lw.f64, lw.f64, lw.i32, lw.f64, lw.f64]:
            return x**0, x**1, x**7, x**-3, x**2.0, x**0.5, x**-0.5, n**5, x**n, x**2.5 + 2.0**x + x**100
    """).kernel
    x, n = np.array([0.5, 1.25, 2.0]), np.array([-3, 2, 40], np.int32)
    got = agree(kernel, x=x, n=n, rtol=1e-14)
    with np.errstate(over="ignore"):
        for result, wanted in zip(
            got, [x**0, x, x**7, x**-3.0, x**2, x**0.5, x**-0.5, n**5, x**n, x**2.5 + 2.0**x + x**100], strict=True
        ):
            np.testing.assert_allclose(result, wanted, 1e-14)

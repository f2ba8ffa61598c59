"""Types and promotion: what an operation on two types is computed in."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.language import types as t
from lanewise.language.values import type_of_annotation
from tests.frontend.ways import agree, run
from tests.written import module

# Row and column are the types of the two operands of +, -, *, comparisons and conditional expressions.
PROMOTION = """
        bool  i32   u32   i64   f32   f64
bool    bool  i32   u32   i64   f32   f64
i32     i32   i32   i64   i64   f32   f64
u32     u32   i64   u32   i64   f32   f64
i64     i64   i64   i64   i64   f32   f64
f32     f32   f32   f32   f32   f32   f64
f64     f64   f64   f64   f64   f64   f64
"""
NAMES = {s.name: s for s in t.SCALARS}
TABLE = {
    (row.split()[0], c): cell
    for row in PROMOTION.split("\n")[2:-1]
    for c, cell in zip(PROMOTION.split("\n")[1].split(), row.split()[1:], strict=True)
}


@pytest.mark.parametrize(("a", "b"), list(itertools.product(NAMES, NAMES)))
def test_promotion_table(a: str, b: str) -> None:
    assert t.promote(NAMES[a], NAMES[b]) == NAMES[TABLE[a, b]]


@pytest.mark.parametrize(("a", "b"), [(a, b) for a, b in itertools.product(NAMES, NAMES) if (a, b) != ("bool", "bool")])
def test_an_operation_has_the_type_of_the_table(a: str, b: str) -> None:
    kernel = module(f"""
        @lw.elementwise
        def kernel(a: lw.{a}, b: lw.{b}) -> lw.{TABLE[a, b]}:
            c = a * b - b
            return c
    """).kernel
    (result,) = kernel.lowered.function.results
    assignments = [s for s in kernel.lowered.function.body if getattr(s, "name", "") == "c"]
    assert result.type == NAMES[TABLE[a, b]]
    assert assignments[0].value.type == result.type


@pytest.mark.parametrize("name", NAMES)
def test_division_makes_floats(name: str) -> None:
    wanted = {"f32": "f32", "f64": "f64", "i64": "f64"}.get(name, "f32")
    if name == "bool":
        return
    kernel = module(f"""
        @lw.elementwise
        def kernel(a: lw.{name}, b: lw.{name}) -> lw.{wanted}:
            return a / b
    """).kernel
    got = agree(kernel, cpu=False, a=np.array([1, 7, 10], NAMES[name].dtype), b=np.array([2, 2, 4], NAMES[name].dtype))
    np.testing.assert_array_equal(got[0], [0.5, 3.5, 2.5])


CONVERSIONS = """
@lw.elementwise
def kernel(f: lw.f32, d: lw.f64, i: lw.i32, l: lw.i64, u: lw.u32, p: lw.bool) -> tuple[{results}]:
    return {values}
"""


def test_conversions() -> None:
    """Every type to every type: floats lose their fraction towards zero, integers wrap, anything but zero is true."""
    pairs = [(to, value) for to in NAMES for value in "fdilup"]
    kernel = module(
        CONVERSIONS.format(
            results=", ".join(f"lw.{to}" for to, _ in pairs), values=", ".join(f"lw.{to}({v})" for to, v in pairs)
        )
    ).kernel
    inputs: dict[str, Any] = {
        "f": np.array([2.75, -2.75, 0, 1e6, 0.4], np.float32), "d": np.array([-1.5, 1.5, 0, 123456789.25, 1e-300]),
        "i": np.array([-1, 5, 0, 2**31 - 1, 7], np.int32), "l": np.array([-1, 2**40 + 3, 0, -(2**33), 9], np.int64),
        "u": np.array([1, 5, 0, 2**32 - 1, 2**31], np.uint32), "p": np.array([True, False, True, False, True]),
    }  # fmt: skip
    signed = {
        n: np.abs(a) if n in "fd" else a for n, a in inputs.items()
    }  # a negative float as unsigned has no defined value
    got = agree(kernel, **signed)
    for (to, value), result in zip(pairs, got, strict=True):
        if NAMES[to].kind != "u" or value not in "fd":
            np.testing.assert_array_equal(result, signed[value].astype(NAMES[to].dtype), f"lw.{to}({value})")
    back = run(kernel, "cpu", inputs)
    assert [int(x) for x in back[pairs.index(("i32", "f"))]] == [2, -2, 0, 1000000, 0]


INTEGERS = """
@lw.elementwise
def kernel(a: lw.{name}, b: lw.{name}) -> tuple[{results}]:
    return (a + b, a - b, a * b, a // b, a % b, -a, ~a, a & b, a | b, a ^ b, a << (b & 7), a >> (b & 7), lw.min(a, b), lw.max(a, b), abs(a),
            lw.clamp(a, 2, 9), a**3, a**0)
"""


@pytest.mark.parametrize("name", ["i32", "i64", "u32"])
def test_integers_wrap_and_floor(name: str) -> None:
    """Sums, differences and products wrap; // and % round towards minus infinity, as in Python."""
    dtype = NAMES[name].dtype
    low, high = (int(x) for x in t.limits(NAMES[name]))
    rng = np.random.default_rng(5)
    a = np.concatenate([[low, high, high, low + 1, 7, 7], rng.integers(low, high, 60, endpoint=True)]).astype(dtype)
    b = np.concatenate([[high, high, 3, 2, 3, high], rng.integers(1, high, 30), rng.integers(1, 9, 30)]).astype(dtype)
    if name != "u32":
        b[1::2] *= -1
    source = INTEGERS.format(name=name, results=", ".join([f"lw.{name}"] * 18))
    got = agree(module(source).kernel, a=a, b=b)
    wide = [int(x) for x in a], [int(x) for x in b]
    span = high - low + 1
    for number, function in enumerate(
        (lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x // y, lambda x, y: x % y)
    ):
        wanted = [(function(x, y) - low) % span + low for x, y in zip(*wide, strict=True)]
        assert [int(x) for x in got[number]] == wanted


def test_smallest_integer_by_minus_one_wraps_and_does_not_trap() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(a: lw.i32, b: lw.i64, d: lw.i32) -> tuple[lw.i32, lw.i64, lw.i32]:
            return a // d, b // lw.i64(d), a % d
    """).kernel
    arguments = {
        "a": np.array([-(2**31)], np.int32),
        "b": np.array([-(2**63)], np.int64),
        "d": np.array([-1], np.int32),
    }
    for device in ("python", "cpu"):
        quotient, _, rest = run(kernel, device, arguments)
        assert (int(quotient[0]), int(rest[0])) in {(-(2**31), 0), (2**31 - 1, 0)}


FLOATS = """
@lw.elementwise
def kernel(a: lw.{name}, b: lw.{name}) -> tuple[{results}]:
    return a // b, a % b, -a, abs(a), lw.floor(a), lw.ceil(a), lw.trunc(a), lw.min(a, b), lw.max(a, b)
"""


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_float_division_rounds_towards_minus_infinity(name: str) -> None:
    dtype = NAMES[name].dtype
    a = np.array([7.5, -7.5, 7.5, -7.5, 0.0, 1e6, -0.25, 6.0, -6.0], dtype)
    b = np.array([2.0, 2.0, -2.0, -2.0, 3.0, 0.5, 8.0, 3.0, 3.0], dtype)
    got = agree(module(FLOATS.format(name=name, results=", ".join([f"lw.{name}"] * 9))).kernel, a=a, b=b)
    np.testing.assert_array_equal(got[0], [x // y for x, y in zip(a.tolist(), b.tolist(), strict=True)])
    np.testing.assert_array_equal(got[1], [x % y for x, y in zip(a.tolist(), b.tolist(), strict=True)])


def test_bit_operations_on_truth_values() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(a: lw.bool, b: lw.bool) -> tuple[lw.bool, lw.bool, lw.bool, lw.bool, lw.bool, lw.bool]:
            return a & b, a | b, a ^ b, ~a, a == b, a != b
    """).kernel
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    got = agree(kernel, a=a, b=b)
    for result, wanted in zip(got, [a & b, a | b, a ^ b, ~a, a == b, a != b], strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_every_annotation_names_its_type() -> None:
    for name in ("f32", "f64", "i32", "i64", "u32", "bool"):
        assert type_of_annotation(getattr(lw, name)) == NAMES[name]
    assert type_of_annotation(bool) == t.BOOL
    assert type_of_annotation(float) is None
    assert str(type_of_annotation(lw.dvec3)) == "dvec3"
    assert lw.f32.__class__.__name__ == "ScalarName"
    assert repr(lw.i64) == "lanewise.i64"

"""Python numbers are weak: they take the type of what they meet, and their full precision with it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.language import types as t
from tests.frontend.ways import agree
from tests.written import module


def kind_of(expression: str, **names: Any) -> str:
    """The type of an expression of f: f32, d: f64, i: i32, j: i64, u: u32, p: bool."""
    kernel = module(f"""
        @lw.elementwise
        def kernel(f: lw.f32, d: lw.f64, i: lw.i32, j: lw.i64, u: lw.u32, p: lw.bool) -> lw.f32:
            first = {expression}
            second = first
            second = first
            return lw.f32(second)
    """, **names).kernel  # fmt: skip
    found = [s for s in kernel.lowered.function.body if getattr(s, "name", "") == "second"]
    return str(found[0].value.type)


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("f + 1", "f32"), ("f + 0.1", "f32"), ("d * 0.1", "f64"), ("i + 1", "i32"), ("i * 0.5", "f32"), ("j * 0.5", "f64"),
        ("u + 1", "u32"),
        ("u * 0.5", "f32"), ("p + 1", "i32"), ("p * 0.5", "f32"), ("1", "i32"), ("1.0", "f32"), ("2**40", "i64"), ("True", "bool"),
        ("u ^ (1 if p else 2)", "u32"), ("d + (0.1 if p else 0.2)", "f64"), ("1 if p else 2.5", "f32"), ("lw.min(u, 3)", "u32"),
        ("lw.max(j, 0)", "i64"), ("lw.sqrt(2.0) * d", "f64"), ("lw.sqrt(2.0) * f", "f32"), ("lw.sqrt(i)", "f32"), ("lw.sqrt(j)", "f64"),
        ("math.pi * f", "f32"), ("math.sqrt(2) * d", "f64"), ("lw.select(p, 1, 2) + u", "u32"), ("-1 * j", "i64"), ("u & ~(u | 1)", "u32"),
        ("+u", "u32"), ("i / 2", "f32"), ("j / 2", "f64"), ("i // 2", "i32"), ("f // 2", "f32"), ("i << 3", "i32"), ("lw.abs(-3)", "i32"),
        ("i**2", "i32"), ("i**2.0", "f32"), ("d**2", "f64"), ("f**0.5", "f32"), ("2.0**f", "f32"), ("2**0.5 * d", "f64"), ("abs(j)", "i64"),
    ],
)  # fmt: skip
def test_type_of_an_expression_with_literals(expression: str, kind: str) -> None:
    assert kind_of(expression) == kind


def test_module_level_numbers_are_weak_and_typed_ones_are_not() -> None:
    assert kind_of("G * f", G=6.67e-11) == "f32"
    assert kind_of("G * d", G=6.67e-11) == "f64"
    assert kind_of("G * f", G=np.float64(6.67e-11)) == "f64"
    assert kind_of("N + u", N=np.int32(3)) == "i64"
    assert kind_of("N + u", N=3) == "u32"


def test_literals_keep_their_full_precision() -> None:
    kernel = module("""
        @lw.function
        def scaled(x, factor):
            return x * factor

        @lw.elementwise
        def kernel(d: lw.f64, p: lw.bool) -> tuple[lw.f64, lw.f64, lw.f64, lw.f64, lw.f64, lw.f64]:
            third = 1 / 3
            choice = 0.1 if p else 0.2
            return d * 0.1, d * third, scaled(d, 0.3), d + choice, lw.max(d, 0.7), d * math.sqrt(2)
    """).kernel
    got = agree(kernel, d=np.array([1.0, -2.0]), p=np.array([True, False]), rtol=1e-15)
    assert got[0][0] == 0.1
    assert got[1][0] == 1 / 3
    assert got[2][0] == 0.3
    assert got[3][0] == 1.1
    assert got[4][1] == 0.7
    assert got[5][0] == math.sqrt(2)


def test_an_open_variable_takes_the_type_that_it_meets() -> None:
    """Also when others were computed from it before it did."""
    kernel = module("""
        @lw.elementwise
        def kernel(d: lw.f64, u: lw.u32) -> tuple[lw.f64, lw.f64, lw.u32, lw.f32]:
            total = 0.0
            double = total * 2.0
            double = double + 1.0
            total = total + d
            count = 0
            while count < 3:
                count += 1
            hash = 17
            for k in range(4):
                hash = (hash ^ u) * 16777619
            mean = 0
            mean = 0.5
            return total, double, hash, mean * count
    """).kernel
    d, u = np.array([0.1, 1e-12]), np.array([3, 2**32 - 1], np.uint32)
    got = agree(kernel, d=d, u=u)
    np.testing.assert_array_equal(got[0], d)
    np.testing.assert_array_equal(got[1], [1.0, 1.0])
    expected = [17, 17]
    for _ in range(4):
        expected = [(h ^ int(x)) * 16777619 % 2**32 for h, x in zip(expected, u, strict=True)]
    assert got[2].tolist() == expected
    assert got[3].tolist() == [1.5, 1.5]


def test_a_helper_that_returns_a_literal_first() -> None:
    kernel = module("""
        @lw.function
        def guarded(x, limit):
            if x > limit:
                return 0
            if x < -limit:
                return 0.5
            return x * 0.1

        @lw.elementwise
        def kernel(d: lw.f64, f: lw.f32) -> tuple[lw.f64, lw.f32]:
            return guarded(d, 2), guarded(f, 2.5)
    """).kernel
    got = agree(kernel, d=np.array([3.0, 1.0, -3.0]), f=np.array([3.0, 1.0, -3.0], np.float32), rtol=1e-7)
    np.testing.assert_array_equal(got[0], [0.0, 0.1, 0.5])


def test_a_variable_that_only_literals_set_stays_weak() -> None:
    """It meets f64 without losing digits, f32 without making it wider, and may be negative among u32."""
    kernel = module("""
        @lw.elementwise
        def kernel(d: lw.f64, f: lw.f32, u: lw.u32, p: lw.bool) -> tuple[lw.f64, lw.f32, lw.u32, lw.bool, lw.i64, lw.i32]:
            weight = 0.1
            if p:
                weight = 0.3
            step = -1
            while step < u:
                step += 1
            below = -2
            below = below - 1
            return d * weight, f * weight, u + below, below < u, lw.min(u, below), step
    """).kernel
    u = np.array([5, 0], np.uint32)
    got = agree(
        kernel, python=False, d=np.array([1.0, 1.0]), f=np.array([1, 1], np.float32), u=u, p=np.array([True, False])
    )
    assert got[0].tolist() == [0.3, 0.1]
    assert got[1].tolist() == [np.float32(0.3), np.float32(0.1)]
    assert got[2].tolist() == [2, 2**32 - 3]
    assert got[3].tolist() == [True, True]
    assert got[4].tolist() == [-3, -3]
    assert got[5].tolist() == [5, 0]


def test_such_a_variable_keeps_its_sign_where_that_decides() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(u: lw.u32) -> tuple[lw.i64, lw.i64, lw.i64, lw.i64, lw.bool]:
            below = -8
            below = below - 1
            return below >> u, below // u, below % u, lw.max(u, below), u > below
    """).kernel
    got = agree(kernel, python=False, u=np.array([1, 4, 2**31], np.uint32))
    assert got[0].tolist() == [-5, -1, -1]
    assert got[1].tolist() == [-9, -3, -1]
    assert got[2].tolist() == [0, 3, 2**31 - 9]
    assert got[3].tolist() == [1, 4, 2**31]
    assert got[4].tolist() == [True, True, True]


def test_many_open_variables() -> None:
    lines = [f"a{k} = 0" for k in range(120)] + [f"a{k} += d" for k in range(120)]
    kernel = module(
        "@lw.elementwise\ndef kernel(d: lw.f64) -> lw.f64:\n    " + "\n    ".join([*lines, "return a0 + a119"])
    ).kernel
    assert kernel.lowered.function.body[-1].values[0].type.name == "f64"


def test_big_literals() -> None:
    kernel = module("""
        BIG = 2**62

        @lw.elementwise
        def kernel(j: lw.i64, f: lw.f32, u: lw.u32) -> tuple[lw.i64, lw.f32, lw.u32, lw.i32]:
            return j + BIG, f * 2**100, u ^ 0xFFFFFFFF, lw.i32(0xFFFFFFFF)
    """).kernel
    got = agree(kernel, j=np.array([5]), f=np.array([0.5], np.float32), u=np.array([1], np.uint32))
    assert [x.tolist() for x in got] == [[2**62 + 5], [2.0**99], [2**32 - 2], [-1]]


def test_constants_of_the_module() -> None:
    """Numbers, typed numbers, vectors, tuples of numbers, enumerations and attributes are frozen into the kernel."""
    kernel = module("""
        import enum

        class Kind(enum.IntEnum):
            FLUID = 0
            WALL = 3

        class Settings:
            softening = 0.25

        WEIGHTS = (4 / 9, 1 / 9, 1 / 36)
        GRAVITY = lw.vec3(0, 0, -9.75)

        @lw.elementwise
        def kernel(kind: lw.i32, v: lw.vec3) -> tuple[lw.bool, lw.f32, lw.vec3, lw.f64]:
            return kind == Kind.WALL, Settings.softening, v + GRAVITY, lw.f64(WEIGHTS[0]) + WEIGHTS[-1]
    """).kernel
    got = agree(kernel, kind=np.array([0, 3], np.int32), v=np.zeros((2, 3), np.float32))
    assert got[0].tolist() == [False, True]
    assert got[1].tolist() == [0.25, 0.25]
    assert got[2].tolist() == [[0, 0, -9.75]] * 2
    assert got[3][0] == pytest.approx(4 / 9 + 1 / 36, abs=1e-15)


@pytest.mark.parametrize("scalar", [k for k in (*t.SCALARS, *t.STORED) if not k.is_float], ids=str)
def test_literals_shift_by_fewer_bits_than_the_shift_is_computed_in(scalar: t.Scalar) -> None:
    """Of booleans and of numbers of 8 and 16 bits, which are i32 there, by up to 31."""
    kind = t.I32 if scalar in (t.BOOL, *t.STORED) else scalar
    bits, x = 8 * kind.size, np.ones(3, scalar.dtype)
    text = "@lw.elementwise\ndef kernel(x: lw.{}) -> lw.{}:\n    return x {} {}\n"
    for sign, wanted in (("<<", t.convert(1 << bits - 1, kind)), (">>", 0)):
        kernel = module(text.format(scalar, kind, sign, bits - 1)).kernel
        for device in ("python", "cpu"):
            with lw.device(device):
                np.testing.assert_array_equal(kernel(x), wanted, device)
        for places in (bits, -1):
            with pytest.raises(lw.CompileError, match=f"{kind} has {bits} bits"):
                module(text.format(scalar, kind, sign, places)).kernel(x)

"""Assignments: chained, unpacked, swapped, augmented, declared; and names that could be mistaken for others."""

from __future__ import annotations

import numpy as np

from tests.frontend.ways import agree
from tests.written import module

X = np.array([-1.5, 0.0, 0.25, 3.0], np.float32)


def test_forms_of_assignment() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(x: lw.f32, v: lw.vec3) -> tuple[lw.f32, lw.f32, lw.vec3, lw.f64, lw.f32, lw.i32]:
            a = b = x + 1
            a, b = b * 2, a
            a += b
            a -= 1
            a *= 0.5
            x = x * 2
            wide: lw.f64 = x
            p, q, r = v
            p, q = q, p
            v = v.zxy
            v += x
            n = 7
            n //= 2
            n <<= 3
            n |= 1
            n %= 16
            n ^= 3
            n >>= 1
            n &= 6
            return a, b, v, wide * 0.5, p - q + r, n
    """).kernel
    v = np.arange(12, dtype=np.float32).reshape(4, 3)
    got = agree(kernel, x=X, v=v)
    b = X + 1
    np.testing.assert_array_equal(got[0], (b * 2 + b - 1) * 0.5)
    np.testing.assert_array_equal(got[1], b)
    np.testing.assert_array_equal(got[2], v[:, [2, 0, 1]] + 2 * X[:, None])
    assert set(got[5].tolist()) == {((((((7 // 2) << 3) | 1) % 16) ^ 3) >> 1) & 6}


def test_a_vector_whose_components_need_each_other() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(v: lw.vec3) -> tuple[lw.vec3, lw.vec2]:
            v = lw.vec3(v.y + v.z, v.x, v.y)
            w = v.xy
            w = w.yx
            return v, w
    """).kernel
    v = np.array([[1, 2, 4], [8, 16, 32]], np.float32)
    got = agree(kernel, v=v)
    np.testing.assert_array_equal(got[0], np.stack([v[:, 1] + v[:, 2], v[:, 0], v[:, 1]], axis=1))


def test_names_that_generated_code_uses_itself() -> None:
    """Names of Python, NumPy, C++ and of lanewise's own loops are free for the user."""
    kernel = module("""
        @lw.function
        def math(float, np):
            return float + np

        @lw.function
        def max(f32):
            i32 = f32 * 2
            return i32

        @lw.elementwise
        def kernel(i: lw.f32, count: lw.f32, begin: lw.f32, end: lw.f32, int: lw.f32, threadIdx: lw.f32, result: lw.f32) -> lw.f32:
            range_ = i + count
            t_1 = begin - end
            double = int * threadIdx
            t = double + t_1
            same = t + range_
            return math(same, max(result)) + lw.max(t, t_1) + lw.sqrt(abs(t))
    """).kernel
    arguments = {n: np.float32(k) for k, n in enumerate(("count", "begin", "end", "int", "threadIdx", "result"))}
    agree(kernel, i=X, rtol=1e-6, **arguments)


def test_names_outside_ascii() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(ρ: lw.f32, Δt: lw.f32) -> lw.f32:
            größe = ρ * Δt  # naïve
            return größe + ρ
    """).kernel
    np.testing.assert_array_equal(agree(kernel, ρ=X, Δt=0.5)[0], X * np.float32(1.5))


def test_one_name_for_loops_over_several_types() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(x: lw.f32, n: lw.i64) -> tuple[lw.f32, lw.i64]:
            total = 0.0
            for k in range(3):
                total += x
            steps = n
            for k in range(n):
                steps += k
            for k in range(2):
                total += 1
            return total, steps
    """).kernel
    got = agree(kernel, x=X, n=np.array([0, 1, 5, 9]))
    assert got[1].tolist() == [0, 1, 15, 45]


def test_definition_on_every_path() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(x: lw.f32) -> lw.f32:
            if x > 1:
                y = 2.0
            elif x > 0:
                y = x
            else:
                return 0.0
            while True:
                z = y * 2
                if z > 1:
                    w = 1.0
                    break
                y += 1
            return z + w
    """).kernel
    got = agree(kernel, x=X)
    np.testing.assert_array_equal(got[0], [0.0, 0.0, 3.5, 5.0])

"""`@lw.function`: types from arguments, several results, records, helpers of helpers, names that meet."""

from __future__ import annotations

import numpy as np

from tests.frontend.ways import agree
from tests.written import Body, module

X = np.array([-1.5, 0.25, 2.0], np.float32)


def test_a_helper_is_lowered_for_the_types_it_is_called_with() -> None:
    kernel = module("""
        @lw.function
        def twice(x):
            return x + x

        @lw.elementwise
        def kernel(f: lw.f32, d: lw.f64, n: lw.i32, v: lw.vec2) -> tuple[lw.f32, lw.f64, lw.i32, lw.vec2, lw.i32]:
            return twice(f), twice(twice(d)), twice(n), twice(v), twice(21)
    """).kernel
    got = agree(kernel, f=X, d=X.astype(np.float64), n=np.arange(3, dtype=np.int32), v=np.ones((3, 2), np.float32))
    np.testing.assert_array_equal(got[1], 4 * X.astype(np.float64))
    assert got[4].tolist() == [42] * 3


def test_declared_types_are_kept() -> None:
    kernel = module("""
        @lw.function
        def widened(x: lw.f64, n: lw.i64) -> lw.f64:
            if x > 1:
                return 1
            return x * n

        @lw.elementwise
        def kernel(f: lw.f32, n: lw.i32) -> lw.f64:
            return widened(f, n) + widened(0.1, 3)
    """).kernel
    got = agree(kernel, f=X, n=np.arange(3, dtype=np.int32), rtol=1e-15)
    np.testing.assert_allclose(got[0], np.where(X > 1, 1, X.astype(float) * np.arange(3)) + 0.1 * 3, 1e-15)


def test_several_results() -> None:
    kernel = module("""
        @lw.function
        def split(v, limit):
            length = lw.length(v)
            if length > limit:
                return v / length, 1.0
            return v, length

        @lw.function
        def again(v, limit):
            return split(v, limit)

        @lw.elementwise
        def kernel(v: lw.vec2) -> tuple[lw.vec2, lw.f32, lw.vec2, lw.f32]:
            a, b = split(v, 1.0)
            c, d = again(v, 3)
            return a, b, c, d
    """).kernel
    v = np.array([[3, 4], [0.5, 0], [0, 2]], np.float32)
    got = agree(kernel, v=v, rtol=1e-6)
    np.testing.assert_allclose(got[1], [1, 0.5, 1])
    np.testing.assert_allclose(got[3], [1, 0.5, 2])


def test_helpers_of_records() -> None:
    kernel = module("""
        @lw.function
        def momentum(body):
            return body.mass * body.velocity

        @lw.function
        def kinetic(body: Body) -> lw.f32:
            return 0.5 * lw.dot(momentum(body), body.velocity)

        @lw.elementwise
        def kernel(body: Body) -> lw.f32:
            energy = kinetic(body)
            body.velocity = momentum(body) * 0.5
            return energy + kinetic(body)
    """).kernel
    rng = np.random.default_rng(4)
    bodies = Body.array(position=rng.normal(size=(5, 3)), mass=rng.uniform(1, 2, 5), velocity=rng.normal(size=(5, 3)))
    agree(kernel, rtol=1e-6, atol=1e-7, body=bodies)


def test_helpers_of_one_name_from_several_places() -> None:
    other = module("""
        @lw.function
        def kernel(x):
            return x * 3

        @lw.function
        def scale(x):
            return x * 5
    """, "other.py")  # fmt: skip
    kernel = module("""
        @lw.function
        def scale(x):
            return x * 2

        class Physics:
            @staticmethod
            @lw.function
            def scale(x):
                return x * 7

        @lw.elementwise
        def kernel(x: lw.f32) -> lw.f32:
            return scale(x) + other.scale(x) + other.kernel(x) + Physics.scale(x)
    """, other=other).kernel  # fmt: skip
    np.testing.assert_array_equal(agree(kernel, x=X)[0], X * 17)


def test_a_helper_that_assigns_to_its_parameter() -> None:
    kernel = module("""
        @lw.function
        def reduced(x, n):
            while n > 0:
                x = x * 0.5
                n = n - 1
            return x

        @lw.elementwise
        def kernel(x: lw.f32) -> tuple[lw.f32, lw.f32]:
            return reduced(x, 3), reduced(8.0, 2)
    """).kernel
    got = agree(kernel, x=X)
    np.testing.assert_array_equal(got[0], X / 8)
    np.testing.assert_array_equal(got[1], [2, 2, 2])


def test_helpers_in_closures() -> None:
    """What an enclosing function defines is seen, also when it is defined after the kernel."""
    make = module("""
        def make(factor):
            @lw.elementwise
            def kernel(x: lw.f32) -> lw.f32:
                return scaled(x) + offset

            @lw.function
            def scaled(x):
                return x * factor

            offset = 0.5
            return kernel
    """).make
    for factor in (2, 0.5):
        np.testing.assert_array_equal(agree(make(factor), x=X, cpu=False)[0], X * np.float32(factor) + np.float32(0.5))


def test_a_helper_stays_an_ordinary_function() -> None:
    m = module('''
        @lw.function
        def hypotenuse(a, b):
            """The longest side."""
            return lw.sqrt(a * a + b * b)
    ''')
    assert m.hypotenuse(3.0, 4.0) == 5.0
    assert m.hypotenuse.__doc__ == "The longest side."

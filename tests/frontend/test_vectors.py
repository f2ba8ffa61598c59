"""Vectors: made, taken apart, swizzled, computed with by component; of every element type."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import lanewise as lw
from tests.frontend.ways import agree
from tests.written import module

RNG = np.random.default_rng(2)
V, W = RNG.normal(size=(2, 7, 3)).astype(np.float32)


def test_arithmetic_by_component() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(v: lw.vec3, w: lw.vec3, s: lw.f32) -> tuple[lw.vec3, lw.vec3, lw.vec3, lw.vec3, lw.vec3, lw.vec3, lw.vec3]:
            return v + w, v - s, 2 * v, v / w, -v * w, 1 / (v * v + 1), (v**2 + w) ** 3
    """).kernel
    s = np.float32(0.5)
    got = agree(kernel, v=V, w=W, s=s, rtol=2e-6, atol=1e-6)
    for result, wanted in zip(got, [V + W, V - s, 2 * V, V / W, -V * W, 1 / (V * V + 1), (V**2 + W) ** 3], strict=True):
        np.testing.assert_allclose(result, wanted, 3e-6, 1e-6)


def test_components_swizzles_and_constructors() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(v: lw.vec3, q: lw.vec4, d: lw.dvec2) -> tuple[
            lw.f32, lw.vec2, lw.vec4, lw.vec3, lw.vec4, lw.dvec3, lw.vec2, lw.f32, lw.ivec3
        ]:
            one = v[0] + v[-1] + v.y
            return one, v.zx, v.xxyz, lw.vec3(q.xy, one), q.wzyx, lw.dvec3(d, 1), lw.vec2(d), lw.vec3(2).z, lw.ivec3(v)
    """).kernel
    q, d = RNG.normal(size=(7, 4)).astype(np.float32), RNG.normal(size=(7, 2))
    got = agree(kernel, v=V * 10, q=q, d=d, rtol=1e-6)
    np.testing.assert_array_equal(got[1], (V * 10)[:, [2, 0]])
    np.testing.assert_array_equal(got[4], q[:, ::-1])
    np.testing.assert_array_equal(got[5], np.column_stack([d, np.ones(7)]))
    np.testing.assert_array_equal(got[6], d.astype(np.float32))
    np.testing.assert_array_equal(got[8], np.trunc(V * 10).astype(np.int32))


def test_functions_of_whole_vectors() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(v: lw.vec3, w: lw.dvec3, n: lw.ivec3) -> tuple[
            lw.f64, lw.dvec3, lw.f32, lw.vec3, lw.i32, lw.ivec3, lw.f32, lw.vec3
        ]:
            return (
                lw.dot(v, w), lw.cross(v, w), lw.length(v), lw.normalize(v),
                lw.dot(n, n), lw.cross(n, n.yzx), lw.length(n), lw.normalize(n),
            )
    """).kernel
    n = RNG.integers(-9, 9, (7, 3)).astype(np.int32)
    got = agree(kernel, v=V, w=W.astype(np.float64), n=n, rtol=2e-6, atol=1e-7)
    np.testing.assert_allclose(got[0], (V.astype(float) * W).sum(1), 1e-12)
    np.testing.assert_allclose(got[1], np.cross(V.astype(float), W), 1e-12, 1e-14)
    np.testing.assert_allclose(got[2], np.linalg.norm(V, axis=1), 1e-6)
    np.testing.assert_array_equal(got[5], np.cross(n, n[:, [1, 2, 0]]))
    np.testing.assert_allclose(got[6], np.linalg.norm(n, axis=1), 1e-6)


def test_mathematics_and_integers_by_component() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(v: lw.vec2, n: lw.ivec2) -> tuple[lw.vec2, lw.vec2, lw.ivec2, lw.ivec2, lw.vec2, lw.vec2, lw.ivec2]:
            return (lw.sqrt(lw.abs(v)), lw.min(v, 0.25), n // 3 + n % 4 * (n & 6), ~n ^ n << 2, lw.mix(v, v.yx, 0.25), n * 0.5,
                    lw.clamp(n, -2, 2))
    """).kernel
    n = RNG.integers(-99, 99, (7, 2)).astype(np.int32)
    got = agree(kernel, v=V[:, :2].copy(), n=n, rtol=1e-6)
    np.testing.assert_array_equal(got[2], n // 3 + n % 4 * (n & 6))
    np.testing.assert_array_equal(got[5], n * np.float32(0.5))


def test_vector_values_outside_of_kernels() -> None:
    v = lw.vec3(1, 2, 3)
    assert repr(v) == "vec3(1.0, 2.0, 3.0)"
    assert repr(v.zy) == "vec2(3.0, 2.0)"
    assert [float(x) for x in v] == [1, 2, 3]
    assert len(v) == 3
    assert v[1] == 2
    np.testing.assert_array_equal(np.asarray(v), np.array([1, 2, 3], np.float32))
    assert np.asarray(v).dtype == np.float32
    for twin in (copy.copy(v), copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
        assert repr(twin) == repr(v)
    assert repr(v * lw.f64(2)) == "dvec3(2.0, 4.0, 6.0)"
    assert repr(lw.ivec2(7, -7) // 2) == "ivec2(3, -4)"
    assert repr(lw.ivec2(7, -7) / 2) == "vec2(3.5, -3.5)"
    assert repr(1 - lw.ivec2(7, -7)) == "ivec2(-6, 8)"
    assert repr(np.float32(2) * v) == "vec3(2.0, 4.0, 6.0)"
    assert repr(lw.vec4(v.xy, 5, 6)) == "vec4(1.0, 2.0, 5.0, 6.0)"
    assert lw.sqrt(4.0) == 2.0
    assert type(lw.sqrt(4.0)) is float
    assert type(lw.sqrt(np.int32(4))) is np.float32
    assert type(lw.min(3, 4)) is int
    assert repr(lw.max(v, 2)) == "vec3(2.0, 2.0, 3.0)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lw.vec3(1, 2), "vec3 takes 3 components, 2 given"),
        (lw.vec3, "vec3 takes 3 components, 0 given"),
        (lambda: lw.vec3(1) + lw.vec2(1), "vectors of 3 and 2 components do not fit"),
        (lambda: lw.vec2(1).z, "vec2 has no component 'z'"),
        (lambda: lw.vec2(1).xyxyx, "vec2 has no component 'xyxyx'"),
        (lambda: lw.f32(lw.vec2(1)), "lw.f32 takes a scalar, found vec2(1.0, 1.0)"),
    ],
)
def test_errors_of_vector_values(make: object, message: str) -> None:
    with pytest.raises((TypeError, AttributeError)) as error:
        make()  # type: ignore[operator]
    assert str(error.value) == message

"""Kernels of records: fields read and updated in place, in every layout; two records; pairs and `lw.same`."""

from __future__ import annotations

import numpy as np
import pytest

import lanewise as lw
from tests.frontend.ways import agree, run
from tests.written import Body, module

LAYOUTS = [lw.AoS(), lw.SoA(), lw.AoAS(), lw.SoAoAS(), lw.SoAoAS([("velocity", "mass")]), lw.AoSoA(4)]


@lw.record
class Tracer:
    alive: lw.bool
    age: lw.f64
    cell: lw.ivec3
    tag: lw.u32
    total: lw.i64


def tracers(n: int, layout: lw.Layout) -> lw.RecordArray:
    rng = np.random.default_rng(n)
    return Tracer.array(
        alive=rng.integers(0, 2, n) > 0, age=rng.uniform(0, 9, n), cell=rng.integers(-5, 5, (n, 3)), tag=rng.integers(0, 2**32, n),
        total=rng.integers(-(2**60), 2**60, n), layout=layout,
    )  # fmt: skip


UPDATE = """
@lw.elementwise
def kernel(t: Tracer, other: Tracer, limit: lw.f64) -> lw.bool:
    if t.age > limit:
        t.alive = False
        return t.alive
    t.age += 0.5
    t.cell = t.cell.yzx + other.cell
    t.tag = t.tag * 1664525 + 1013904223
    t.total -= other.tag
    t.alive = t.alive or other.alive
    return t.alive and not other.alive
"""


@pytest.mark.parametrize("layout", LAYOUTS[:1] + LAYOUTS[2:4] + LAYOUTS[5:], ids=str)
def test_every_type_of_field_is_updated_in_place(layout: lw.Layout) -> None:
    kernel = module(UPDATE, Tracer=Tracer).kernel
    agree(kernel, t=tracers(11, layout), other=tracers(11, lw.SoA()), limit=5.0)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_updates_agree_in_every_layout(layout: lw.Layout) -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(body: Body, acceleration: lw.vec3, dt: lw.f32):
            body.velocity += acceleration * dt
            body.position += body.velocity * dt
            if body.position.x > 0.5:
                body.position = lw.vec3(0.5, body.position.yz)
    """).kernel
    rng = np.random.default_rng(9)
    bodies = Body.array(position=rng.normal(size=(13, 3)), mass=1, velocity=rng.normal(size=(13, 3)), layout=layout)
    agree(kernel, rtol=1e-6, atol=1e-7, body=bodies, acceleration=rng.normal(size=(13, 3)).astype(np.float32), dt=0.125)


def test_pairs_with_same() -> None:
    kernel = module("""
        @lw.pairwise
        def kernel(target: Body, source: Body, weight: lw.f32) -> tuple[lw.vec3, lw.i32]:
            if lw.same(target, source):
                return lw.vec3(0), 0
            d = source.position - target.position
            return weight * source.mass * d, 1 if lw.dot(d, d) < 2 else 0
    """).kernel
    rng = np.random.default_rng(6)
    bodies = Body.array(position=rng.normal(size=(9, 3)), mass=rng.uniform(1, 2, 9))
    others = Body.array(position=rng.normal(size=(5, 3)), mass=rng.uniform(1, 2, 5))
    for targets, sources in ((bodies, bodies), (bodies, others)):
        x, y, m = targets.position.astype(float), sources.position.astype(float), sources.mass.astype(float)
        d = y[None] - x[:, None]
        near = (d * d).sum(2) < 2
        if targets is sources:
            np.fill_diagonal(near, False)
        for device in ("python", "cpu"):
            t_, s_ = (targets, sources) if device == "cpu" else (targets.to(device), sources.to(device))
            force, count = kernel(t_, t_ if targets is sources else s_, weight=0.5)
            np.testing.assert_allclose(force, 0.5 * (m[None, :, None] * d).sum(1), 1e-5, 1e-5)
            np.testing.assert_array_equal(count, near.sum(1))
    # As ordinary Python the same record object is the same element.
    first = bodies[0]
    assert repr(kernel.python(first, first, 1.0)) == "(vec3(0.0, 0.0, 0.0), 0)"
    assert kernel.python(first, bodies[1], 1.0)[1] in (0, 1)


def test_values_alone_need_no_record() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(a: lw.i32, b: lw.vec2) -> lw.vec2:
            return b * a
    """).kernel
    got = run(kernel, "cpu", {"a": np.array([1, 2]), "b": [0.5, 0.25]})
    np.testing.assert_array_equal(got[0], [[0.5, 0.25], [1.0, 0.5]])

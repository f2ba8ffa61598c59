"""Stencils over boxes that are large enough for rows and layers a thread, which small ones of other tests have not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw

pytestmark = pytest.mark.cuda


@lw.stencil(lw.D3Q7)
def heat(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
    return t[0] + rate * (t[1] + t[2] + t[3] + t[4] + t[5] + t[6] - 6 * t[0])


@lw.stencil(lw.D3Q19)
def spread(t: lw.Field[lw.f64], k: lw.Field[lw.f64], rate: lw.f64) -> lw.f64:
    total = lw.f64(0)
    for q in lw.D3Q19:
        total += q.weight * (k[0] + k[q]) * (t[q] - t[0])
    return t[0] + rate * total


@lw.stencil(lw.D2Q9)
def drift(u: lw.Field[lw.f32], v: lw.Field[lw.f32], rate: lw.f32) -> tuple[lw.f32, lw.f32]:
    mean, flow = lw.f32(0), lw.f32(0)
    for q in lw.D2Q9:
        mean += q.weight * u[q]
        flow += q.weight * q.x * v[q]
    return u[0] + rate * (mean - u[0]) + lw.f32(0.1) * flow, v[0] + rate * (u[3] - v[4])


@drift.observer
def slope(u: lw.Field[lw.f32], v: lw.Field[lw.f32]) -> tuple[lw.f32, lw.i32]:
    return u[1] - u[2] + v[3], lw.index_of(u)


for kernel in (heat, spread):
    kernel.wall(1, "hot", t="hot")
drift.wall(1, "hot", u="hot")

EDGES: list[dict[str, Any]] = [{}, {"x": ("hot", "slip"), "y": "hot"}]
SHAPES = {heat: [(64, 66, 64), (5, 256, 256), (63, 65, 67)], spread: [(65, 64, 66)], drift: [(514, 512), (513, 515)]}
CASES = [(k, shape, edges) for k, shapes in SHAPES.items() for shape in shapes for edges in EDGES]
IDS = [f"{k.__name__}-{'x'.join(map(str, shape))}-{'walls' if edges else 'periodic'}" for k, shape, edges in CASES]


def steps(
    kernel: Any, shape: tuple[int, ...], edges: Any, mask: Any, plan: lw.Plan | None
) -> tuple[lw.Plan, list[Any]]:
    """The fields after three steps, and the plan."""
    rng = np.random.default_rng(1)
    begin = {n: rng.random(shape) for n in kernel.fields}
    values: dict[str, Any] = {"rate": 0.1}
    if edges or mask is not None:
        values["hot"] = 2.0
    if kernel is spread:
        values["k"] = rng.random(shape)
    sites = kernel.sites(shape, device="cuda", edges=edges, mask=mask, **begin)
    kernel.run(sites, 3, plan=plan, **values)
    return kernel.compile(sites, plan=plan, **values).plan, [kernel.field(sites, n).get() for n in kernel.fields]


@pytest.mark.parametrize(("kernel", "shape", "edges"), CASES, ids=IDS)
@pytest.mark.parametrize("masked", [False, True], ids=["open", "masked"])
def test_boxes_by_default_compute_what_single_sites_do(kernel: Any, shape: Any, edges: Any, masked: bool) -> None:
    mask = (np.random.default_rng(3).random(shape) < 0.05).astype(int) if masked else None
    plan, found = steps(kernel, shape, edges, mask, None)
    assert (plan.rows in (2, 4, 8)) is not masked
    _, expected = steps(kernel, shape, edges, mask, lw.Plan(targets=1))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("shape", [(514, 512), (513, 515)])
def test_observers_look_at_boxes_too(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    u, v = rng.random(shape, np.float32), rng.random(shape, np.float32)
    sites = drift.sites(shape, device="cuda", u=u, v=v)
    found, numbers = slope(sites)
    expected = np.roll(u, -1, 1) - np.roll(u, 1, 1) + np.roll(v, -1, 0)
    np.testing.assert_allclose(found.get().reshape(shape), expected, atol=1e-6)
    np.testing.assert_array_equal(numbers.get().reshape(-1), np.arange(u.size))

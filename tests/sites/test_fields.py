"""Fields at neighbours and stencils: the same on every device, in every layout and streaming form, at every edge, as
NumPy says.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests.sites.fields import ATTRACTION, blur, blurred, density, near, shan_chen_step, two_phases

DEVICES = ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
WITH_CPU_SLOW = ["python", pytest.param("cpu", marks=pytest.mark.slow), DEVICES[-1]]  # many kernels to compile
every_device_slowly = pytest.mark.parametrize("device", WITH_CPU_SLOW)
every_device = pytest.mark.parametrize("device", DEVICES)
LAYOUTS = [lw.SoA(), lw.AoS(), lw.AoSoA(8), lw.AoSoA(32)]


def host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else np.asarray(array)


def start(shape: tuple[int, ...], seed: int = 3) -> Any:
    w = np.array([q.weight for q in lw.D2Q9]).reshape(-1, 1, 1)
    rng = np.random.default_rng(seed)
    return w * (0.7 + 0.1 * rng.standard_normal((9, *shape)))


@pytest.mark.grid(every=40)
@every_device_slowly
@pytest.mark.parametrize("form", ["pull", "push", "in-place"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_shan_chen_is_what_numpy_computes(device, form, layout):
    shape = (3, 8) if device == "python" else (6, 32)
    f = start(shape)
    sites = two_phases.sites(shape, streaming=form, layout=layout, device=device)
    two_phases.set_populations(sites, f.astype(np.float32))
    for _ in range(4):  # the first step after populations were set, and both phases in place
        f = shan_chen_step(f)
        two_phases.run(sites, 1, attraction=ATTRACTION)
        np.testing.assert_allclose(two_phases.populations(sites), f, rtol=0, atol=3e-6)
    np.testing.assert_allclose(host(density(sites)).reshape(shape), f.sum(0), rtol=0, atol=1e-5)


@pytest.mark.quick("in-place")
@pytest.mark.parametrize("form", ["pull", "in-place"])
def test_a_body_and_walls_on_a_cpu(form):
    kinds = np.zeros((5, 8), np.uint8)
    kinds[3, 1:3], kinds[1, 5] = 1, 2
    found = []
    for device in ("python", "cpu"):
        sites = two_phases.sites(
            kinds.shape, streaming=form, edges={"x": "slip", "y": ("wet", "dry")}, mask=kinds, device=device
        )
        two_phases.set_populations(sites, (start(kinds.shape) * (kinds == 0)).astype(np.float32))
        two_phases.run(sites, 2, attraction=ATTRACTION, wetting=0.3)
        found.append(two_phases.populations(sites))
    np.testing.assert_allclose(*found, rtol=0, atol=2e-6)


EDGES = {
    "periodic": {},
    "walls": {"x": "dry", "y": ("wet", "dry")},
    "wet corner": {"x": "wet", "y": "wet"},
    "slip": {"x": "slip", "y": ("slip", "wet")},
}


@pytest.mark.parametrize("device", [pytest.param(d, marks=pytest.mark.slow) for d in ("python", "cpu")] + [DEVICES[-1]])
@pytest.mark.parametrize("edges", EDGES.values(), ids=EDGES)
@pytest.mark.parametrize("mask", [False, True], ids=["box", "body"])
def test_every_streaming_form_reads_the_same_neighbours(device, edges, mask):
    shape = (5, 6) if device == "python" else (7, 32)
    kinds = np.zeros(shape, np.uint8)
    if mask:
        kinds[3, 1:3], kinds[1, 4] = 1, 2
    f = start(shape) * (kinds == 0)
    found = []
    for form, layout in itertools.product(("pull", "push", "in-place"), (lw.SoA(), lw.AoSoA(32))):
        sites = two_phases.sites(shape, streaming=form, layout=layout, edges=edges, mask=kinds, device=device)
        two_phases.set_populations(sites, f.astype(np.float32))
        two_phases.run(sites, 2, attraction=ATTRACTION, wetting=0.3)
        found.append(two_phases.populations(sites))
    reference = two_phases.sites(shape, streaming="pull", edges=edges, mask=kinds, device="python")
    two_phases.set_populations(reference, f.astype(np.float32))
    two_phases.run(reference, 2, attraction=ATTRACTION, wetting=0.3)
    for other in found:
        np.testing.assert_allclose(other, two_phases.populations(reference), rtol=0, atol=2e-6)


@pytest.mark.grid(every=40)
@every_device_slowly
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    "edges",
    [
        {},
        {"x": "slip", "y": "hot"},
        {"x": "insulated", "y": ("hot", "insulated")},
        {"x": ("hot", "slip"), "y": "hot"},
        {"x": "outflow"},
    ],
    ids=lambda e: ",".join(map(str, e.values())) or "periodic",
)
def test_a_stencil_of_two_fields_is_what_numpy_computes(device, layout, edges):
    rng = np.random.default_rng(5)
    u, v = rng.random((5, 32)), rng.random((5, 32))
    sites = blur.sites((5, 32), layout=layout, edges=edges, device=device, u=u, v=v)
    hot = {"hot": 2.0} if any("hot" in e for e in edges.values()) else {}
    for _ in range(3):
        u, v = blurred(u, v, 0.3, edges, 2.0)
        blur.run(sites, 1, rate=0.3, **hot)
        np.testing.assert_allclose(host(blur.field(sites, "u")), u, rtol=0, atol=1e-5)
        np.testing.assert_allclose(host(blur.field(sites, "v")), v, rtol=0, atol=1e-5)


@pytest.mark.grid(every=40)
@every_device_slowly
@pytest.mark.parametrize("lattice", [lw.D1Q3, lw.D2Q5, lw.D2Q9, lw.D3Q7, lw.D3Q19, lw.D3Q27], ids=lambda x: x.name)
@pytest.mark.parametrize("extents", [(8, 5, 4), (1, 3, 2), (2, 1, 1), (9, 2, 3)], ids=str)
def test_every_direction_of_every_lattice_in_thin_boxes(device, lattice, extents):
    @lw.stencil(lattice)
    def weigh(u: lw.Field[lw.f64]) -> lw.f64:
        total = lw.f64(0)
        for q in lattice:
            total += (q.index + 1) * u[q]
        return total

    shape = extents[: lattice.dimension][::-1]
    u = np.random.default_rng(7).random(shape)
    sites = weigh.sites(shape, u=u, device=device)
    weigh.run(sites, 2)
    for _ in range(2):
        u = sum((q.index + 1) * near(u, lattice.velocities[q.index]) for q in lattice)
    np.testing.assert_allclose(host(weigh.field(sites, "u")), u, rtol=1e-12)


@lw.stencil(lw.D2Q5)
def heat(t: lw.Field[lw.f64], rate: lw.f64) -> lw.f64:
    return t[0] + rate * (t[1] + t[2] + t[3] + t[4] - 4 * t[0])


heat.wall(1, "cold", t="cold")
heat.wall(2, "hot", t="hot")
heat.wall(3, "insulated")


@every_device
def test_heat_decays_as_the_exact_solution_of_the_scheme(device):
    nx, ny, rate, steps = 32, 16, 0.2, 12
    x, y = 2 * np.pi * np.arange(nx) / nx, 2 * np.pi * np.arange(ny)[:, None] / ny
    wave = np.cos(x) * np.sin(y)
    sites = heat.sites((ny, nx), t=wave, device=device)
    heat.run(sites, steps, rate=rate)
    factor = 1 + 2 * rate * (np.cos(2 * np.pi / nx) + np.cos(2 * np.pi / ny) - 2)
    np.testing.assert_allclose(host(heat.field(sites, "t")), factor**steps * wave, atol=1e-13)
    assert sites.step == steps


def test_heat_between_plates_is_a_straight_line():
    sites = heat.sites((9, 4), edges={"y": ("cold", "hot"), "x": "insulated"})
    heat.run(sites, 2000, rate=0.24, cold=-1.0, hot=3.0)
    line = -1 + 4 * np.arange(1, 10) / 10  # a wall lies at the place of the next site
    np.testing.assert_allclose(heat.field(sites, "t"), np.repeat(line[:, None], 4, 1), atol=1e-8)


@every_device
@pytest.mark.parametrize("targets", [1, 2])
def test_walls_of_the_mask_have_a_value_for_their_neighbours_and_zeros_themselves(device, targets):
    mask = np.zeros((6, 32), np.uint8)
    mask[2, 3], mask[4, 6:9] = 2, 3
    t = np.random.default_rng(0).random(mask.shape)
    sites = heat.sites(mask.shape, mask=mask, t=t, device=device)
    heat.run(sites, 3, rate=0.2, hot=5.0, plan=lw.Plan(targets=targets) if device == "cuda" else None)
    found = host(heat.field(sites, "t"))
    assert not found[mask > 0].any()
    expected = t = t * (mask == 0)
    for _ in range(3):
        change = 0
        for e in lw.D2Q5.velocities[1:]:
            other, kind = near(expected, e), near(mask, e)
            change = change + np.where(kind == 2, 5.0, np.where(kind == 3, expected, other)) - expected
        expected = np.where(mask == 0, expected + 0.2 * change, t)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@every_device
def test_kinds_of_a_stencil_have_functions_of_their_own(device):
    @lw.stencil(lw.D2Q5)
    def plain(t: lw.Field[lw.f32]) -> lw.f32:
        return t[1]

    @plain.kind(1, "source")
    def source(t: lw.Field[lw.f32], power: lw.f32) -> lw.f32:
        return t[0] + power

    mask = np.zeros((4, 32), np.uint8)
    mask[1, 5] = 1
    t = np.random.default_rng(1).random(mask.shape).astype(np.float32)
    sites = plain.sites(mask.shape, mask=mask, t=t, device=device)
    plain.run(sites, 2, power=1.5)
    once = np.where(mask == 1, t + np.float32(1.5), np.roll(t, -1, 1))
    twice = np.where(mask == 1, once + np.float32(1.5), np.roll(once, -1, 1))
    np.testing.assert_array_equal(host(plain.field(sites, "t")), twice)


@every_device
def test_a_coefficient_is_read_at_neighbours_and_an_observer_looks(device):
    @lw.stencil(lw.D2Q5)
    def conduct(t: lw.Field[lw.f32], k: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
        total = t[0]
        for q in lw.D2Q5:
            total += rate * (k[0] + k[q]) * (t[q] - t[0])
        return total

    @conduct.observer
    def gradient(t: lw.Field[lw.f32]) -> lw.vec2:
        return lw.vec2(0.5 * (t[1] - t[2]), 0.5 * (t[3] - t[4]))

    rng = np.random.default_rng(2)
    t, k = rng.random((6, 32)), rng.random((6, 32)).astype(np.float32)
    sites = conduct.sites(t.shape, t=t, device=device)
    conduct.run(sites, 1, k=k, rate=0.1)
    t = t + sum(0.1 * (k + near(k, e)) * (near(t, e) - t) for e in lw.D2Q5.velocities)
    np.testing.assert_allclose(host(conduct.field(sites, "t")), t, atol=1e-6)
    slopes = host(gradient(sites)).reshape(6, 32, 2)
    np.testing.assert_allclose(slopes[..., 0], (np.roll(t, -1, 1) - np.roll(t, 1, 1)) / 2, atol=1e-6)
    np.testing.assert_allclose(slopes[..., 1], (np.roll(t, -1, 0) - np.roll(t, 1, 0)) / 2, atol=1e-6)


@pytest.mark.cuda
@pytest.mark.parametrize("storage", ["f16", "f32"])
@pytest.mark.parametrize("layout", [None, lw.SoA(), lw.AoSoA(32)], ids=str)
@pytest.mark.parametrize("targets", [1, 2, 4])
def test_a_thread_may_update_several_sites(storage, layout, targets):
    rng, edges = np.random.default_rng(5), {"x": ("hot", "insulated"), "y": "slip"}
    u, v = rng.random((12, 96)), rng.random((12, 96))
    found = []
    for device, stored, plan in (("cuda", storage, lw.Plan(targets=targets)), ("cpu", "f32", None)):
        sites = blur.sites(u.shape, edges=edges, u=u, v=v, device=device, storage=stored, layout=layout)
        blur.run(sites, 4, rate=0.3, hot=1.5, plan=plan)
        found.append(host(blur.field(sites, "u")))
    np.testing.assert_allclose(*found, rtol=0, atol=5e-3 if storage == "f16" else 2e-6)


@pytest.mark.parametrize("edges", [{}, {"x": "cold", "y": "slip"}], ids=["periodic", "edges"])
@every_device
def test_walls_have_zeros_whatever_they_were_given(device, edges):
    @lw.stencil(lw.D2Q5)
    def cool(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
        return t[0] + rate * (t[1] + t[2] + t[3] + t[4] - 4.0 * t[0])

    cool.wall(1, "cold", t="outside")
    mask = np.zeros((4, 6), np.uint8)
    mask[1, 2:5] = mask[3, 0] = 1
    for given in (np.nan, np.inf, -2.0, -0.0):
        t = np.where(mask, given, 1.5).astype("f4")
        sites = cool.sites(mask.shape, mask=mask, edges=edges, t=t, device=device)
        for _ in range(2):
            held = host(cool.field(sites, "t"))
            assert held[mask == 1].tobytes() == bytes(4 * mask.sum())
            assert np.isfinite(held).all()
            cool.run(sites, 1, rate=0.1, outside=1.0)
            cool.set_fields(sites, t=np.float32(given) if np.isfinite(given) else t)

"""Kernels that read tables and ask for the indices of their elements, and what they give: one body for all devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.layouts import AoS, AoSoA, Layout, SoA, SoAoAS

LAYOUTS: tuple[Layout, ...] = (AoS(), SoA(), AoSoA(8), SoAoAS())
EDGES = ("clamp", "repeat", "mirror", "zero")
KINDS = 3


@lw.record
class Grain:
    position: lw.vec3
    charge: lw.f32
    kind: lw.i32
    level: lw.f32


@lw.elementwise
def look_up(a: Grain, levels: lw.Array1[lw.f32], factors: lw.Array2[lw.f64]):
    a.level = (
        levels[a.kind] + a.charge * lw.f32(factors[a.kind, lw.index_of(a) % factors.shape[1]]) + lw.f32(len(levels))
    )


@lw.elementwise
def early(a: Grain, levels: lw.Array1[lw.f32], deep: lw.Array3[lw.i32]) -> lw.f32:
    if a.kind < 0:
        return 0.0
    s = lw.f32(0)
    for k in range(deep.shape[2]):
        n = deep[a.kind, lw.index_of(a) % deep.shape[1], k]
        if n < 0:
            return s
        s += levels[n]
    return s


@lw.elementwise
def noise(a: Grain, seed: lw.i32) -> tuple[lw.f32, lw.i32]:
    return lw.random(seed, 7, lw.index_of(a)), lw.index_of(a)


@lw.elementwise
def shaken(x: lw.f32, seed: lw.i32) -> lw.f32:
    return x + lw.random(seed, lw.index_of(x))


@lw.pairwise
def weighed(a: Grain, b: Grain, w: lw.Array2[lw.f32]) -> lw.f32:
    return w[lw.index_of(a), lw.index_of(b)] * b.charge


@lw.pairwise
def by_kind(a: Grain, b: Grain, w: lw.Array2[lw.f32], softening2: lw.f32) -> lw.vec3:
    d = b.position - a.position
    return w[a.kind, b.kind] * d / (lw.dot(d, d) + softening2)


@lw.pairwise
def drawn(a: Grain, b: Grain, seed: lw.i32) -> lw.f32:
    if lw.same(a, b):
        return 0.0
    return lw.random(seed, lw.index_of(a), lw.index_of(b))


@lw.elementwise
def clamp1(x: lw.f32, t: lw.Array1[lw.f32]) -> lw.f32:
    return lw.interpolate(t, x)


@lw.elementwise
def repeat1(x: lw.f32, t: lw.Array1[lw.f32]) -> lw.f32:
    return lw.interpolate(t, x, edge="repeat")


@lw.elementwise
def mirror1(x: lw.f32, t: lw.Array1[lw.f32]) -> lw.f32:
    return lw.interpolate(t, x, edge="mirror")


@lw.elementwise
def zero1(x: lw.f32, t: lw.Array1[lw.f32]) -> lw.f32:
    return lw.interpolate(t, x, edge="zero")


@lw.elementwise
def clamp2(y: lw.f64, x: lw.f64, t: lw.Array2[lw.f64]) -> lw.f64:
    return lw.interpolate(t, y, x, edge="clamp")


@lw.elementwise
def repeat2(y: lw.f64, x: lw.f64, t: lw.Array2[lw.f64]) -> lw.f64:
    return lw.interpolate(t, y, x, edge="repeat")


@lw.elementwise
def mirror2(y: lw.f64, x: lw.f64, t: lw.Array2[lw.f64]) -> lw.f64:
    return lw.interpolate(t, y, x, edge="mirror")


@lw.elementwise
def zero2(y: lw.f64, x: lw.f64, t: lw.Array2[lw.f64]) -> lw.f64:
    return lw.interpolate(t, y, x, edge="zero")


@lw.elementwise
def clamp3(p: lw.vec3, t: lw.Array3[lw.f32]) -> lw.f32:
    return lw.interpolate(t, p.z, p.y, p.x)


@lw.elementwise
def zero3(p: lw.vec3, t: lw.Array3[lw.f32]) -> lw.f32:
    return lw.interpolate(t, p.z, p.y, p.x, edge="zero")


@lw.elementwise
def repeat3(p: lw.vec3, t: lw.Array3[lw.f32]) -> lw.f32:
    return lw.interpolate(t, p.z, p.y, p.x, edge="repeat")


@lw.elementwise
def mirror3(p: lw.vec3, t: lw.Array3[lw.f32]) -> lw.f32:
    return lw.interpolate(t, p.z, p.y, p.x, edge="mirror")


ONE = {"clamp": clamp1, "repeat": repeat1, "mirror": mirror1, "zero": zero1}
TWO = {"clamp": clamp2, "repeat": repeat2, "mirror": mirror2, "zero": zero2}
THREE = {"clamp": clamp3, "repeat": repeat3, "mirror": mirror3, "zero": zero3}

D2Q9 = lw.D2Q9


@lw.sitewise(D2Q9)
def relax(f: lw.populations, rate: lw.Array1[lw.f32], mask: lw.Array2[lw.f32]):
    rho = lw.f32(0)
    for q in D2Q9:
        rho += f[q]
    w = rate[lw.i32(rho)] * mask[lw.index_of(f) // mask.shape[1], lw.index_of(f) % mask.shape[1]]
    for q in D2Q9:
        f[q] += w * (q.weight * rho - f[q])


@relax.observer
def site_noise(f: lw.populations, seed: lw.i32) -> tuple[lw.i32, lw.f32]:
    return lw.index_of(f), lw.random(seed, lw.index_of(f))


@relax.observer
def profile(f: lw.populations, t: lw.Array1[lw.f32]) -> lw.f32:
    return lw.interpolate(t, 3 * f[0], edge="zero")


relax.wall(2, "wall")


# ------------------------------------------------------------ what is expected


def fields(count: int, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """The fields of some grains."""
    rng = np.random.default_rng(seed)
    return {
        "position": rng.random((count, 3)).astype(np.float32), "charge": rng.random(count).astype(np.float32),
        "kind": rng.integers(0, KINDS, count).astype(np.int32), "level": np.zeros(count, np.float32),
    }  # fmt: skip


def on(device: str) -> tuple[Callable[[Any], Any], Callable[[Any], np.ndarray[Any, Any]]]:
    """What brings an array to a device, and what brings it back."""
    if not device.startswith("cuda"):
        return np.ascontiguousarray, np.asarray
    import cupy

    return cupy.asarray, cupy.asnumpy


def table(*shape: int, kind: Any = np.float32, seed: int = 1) -> np.ndarray[Any, Any]:
    """A table of numbers from 0 to 1."""
    return np.random.default_rng(seed).random(shape).astype(kind)


def check_elements(device: str, layout: Layout, count: int) -> None:
    """Reads by fields and by the index of an element, in the first call and in those like it."""
    bring, back = on(device)
    f = fields(count)
    levels, factors = table(KINDS), table(KINDS, 5, kind=np.float64)
    grains = Grain.array(**f, layout=layout, device=device)
    wanted = levels[f["kind"]] + f["charge"] * factors[f["kind"], np.arange(count) % 5].astype(np.float32) + KINDS
    for turn in range(3):
        t = bring(levels + np.float32(turn))
        look_up(grains, t, bring(factors))
        np.testing.assert_allclose(back(grains.level), wanted + turn, rtol=1e-6)


def check_early(device: str, count: int) -> None:
    """Reads in loops and behind returns."""
    bring, back = on(device)
    f = fields(count)
    f["kind"][::7] = -1
    levels = table(6)
    deep = np.random.default_rng(5).integers(-1, 6, (KINDS, 4, 8)).astype(np.int32)
    wanted = np.zeros(count)
    for i, kind in enumerate(f["kind"]):
        for n in deep[kind, i % 4] if kind >= 0 else ():
            if n < 0:
                break
            wanted[i] += levels[n]
    result = early(Grain.array(**f, device=device), bring(levels), bring(deep))
    np.testing.assert_allclose(back(result), wanted, rtol=1e-5, atol=1e-6)


def check_noise(device: str, layout: Layout, count: int) -> None:
    """The numbers are those of NumPy, to the bit."""
    _, back = on(device)
    numbers, indices = noise(Grain.array(**fields(count), layout=layout, device=device), 11)
    where = np.arange(count, dtype=np.int32)
    assert back(indices).tobytes() == where.tobytes()
    assert back(numbers).tobytes() == lw.random(11, 7, where).tobytes()


def check_pairs(device: str, count: int, plan: lw.Plan | None = None, layout: Layout | None = None) -> None:
    """Weights of a matrix by the indices of both, and by fields of both; random numbers of pairs."""
    bring, back = on(device)
    f = fields(count)
    grains = Grain.array(**f, layout=layout, device=device)
    w, kinds = table(count, count), table(KINDS, KINDS)
    at = np.arange(count, dtype=np.int32)
    for turn in range(2):
        result = weighed(grains, grains, bring(w + np.float32(turn)), plan=plan)
        np.testing.assert_allclose(back(result), (w + turn).astype(float) @ f["charge"], rtol=2e-5)
    d = f["position"][None] - f["position"][:, None]
    forces = kinds[f["kind"]][:, f["kind"]][..., None] * d / ((d**2).sum(-1) + np.float32(0.01))[..., None]
    result = by_kind(grains, grains, bring(kinds), 0.01, plan=plan)
    np.testing.assert_allclose(back(result), forces.sum(1), rtol=1e-3, atol=1e-3)
    draws = lw.random(5, at[:, None], at[None, :]).astype(float)
    np.fill_diagonal(draws, 0)
    if plan is None or plan.prefetch in (None, "none"):  # nothing of a source is staged
        np.testing.assert_allclose(back(drawn(grains, grains, 5, plan=plan)), draws.sum(1), rtol=2e-5)


def check_search(device: str, search: Any, count: int, layout: Layout | None = None) -> None:
    """Indices are the caller's whatever order a search runs in, for targets that are the sources and for others."""
    bring, back = on(device)
    f, g = fields(count), fields(count // 3 + 1, seed=9)
    here, there = (Grain.array(**x, layout=layout, device=device) for x in (f, g))
    pairs = [(here, f, here, f), (there, g, here, f)]
    for targets, tf, sources, sf in pairs:
        d2 = ((sf["position"][None] - tf["position"][:, None]) ** 2).sum(-1)
        if search.k is None:
            near = d2 < np.float32(search.radius) ** 2
        else:
            order = np.argsort(np.where(np.eye(*d2.shape, dtype=bool) & (targets is sources), 9, d2), 1, kind="stable")
            near = np.zeros(d2.shape, bool)
            np.put_along_axis(near, order[:, : search.k], True, 1)
        w = table(*d2.shape)
        kernel = weighed.using(search)
        for turn in range(3):
            result = kernel(targets, sources, bring(w + np.float32(turn)))
            wanted = np.where(near, w + np.float32(turn), 0).astype(float) @ sf["charge"]
            np.testing.assert_allclose(back(result), wanted, rtol=2e-5, atol=1e-5)
        at = (np.arange(len(tf["kind"]), dtype=np.int32)[:, None], np.arange(len(sf["kind"]), dtype=np.int32)[None])
        draws = np.where(near, lw.random(5, *at), 0).astype(float)
        if targets is sources:
            np.fill_diagonal(draws, 0)
        np.testing.assert_allclose(back(drawn.using(search)(targets, sources, 5)), draws.sum(1), rtol=2e-5, atol=1e-5)


def check_interpolation(device: str, count: int) -> None:
    """Every edge in one to three dimensions, against the definition in float64."""
    bring, back = on(device)
    rng = np.random.default_rng(3)
    for edge in EDGES:
        for n in (1, 2, 7):
            t = table(n)
            x = np.concatenate([rng.uniform(-3 * n, 3 * n, count), np.arange(-9, 9), [1e30, -1e30]]).astype(np.float32)
            wanted = lw.interpolate(t.astype(np.float64), x.astype(np.float64), edge=edge)
            fine = slice(None) if edge in ("clamp", "zero") else slice(0, -2)
            np.testing.assert_allclose(back(ONE[edge](bring(x), bring(t)))[fine], wanted[fine], rtol=1e-5, atol=1e-6)
        t, (y, x) = table(4, 5, kind=np.float64), rng.uniform(-11, 11, (2, count))
        result = TWO[edge](bring(y), bring(x), bring(t))
        np.testing.assert_allclose(back(result), lw.interpolate(t, y, x, edge=edge), rtol=1e-12, atol=1e-13)
        t, p = table(3, 4, 5), rng.uniform(-6, 9, (count, 3)).astype(np.float32)
        wanted = lw.interpolate(t.astype(np.float64), *(p[:, n].astype(np.float64) for n in (2, 1, 0)), edge=edge)
        np.testing.assert_allclose(back(THREE[edge](bring(p), bring(t))), wanted, rtol=1e-5, atol=2e-6)


def check_sites(device: str, **how: Any) -> np.ndarray[Any, Any]:
    """Reads by populations and by the index of a site; what a flow is after some steps."""
    bring, back = on(device)
    shape = (6, 8)
    sites = relax.sites(shape, device=device, edges={"x": "periodic", "y": "periodic"}, **how)
    relax.set_populations(sites, table(9, *shape) * np.float32(0.2))
    rate, mask = bring(np.array([0.5, 0.7, 0.9], np.float32)), bring(table(*shape, seed=4))
    relax.run(sites, 3, rate=rate, mask=mask)
    relax.run(sites, 2, rate=rate, mask=mask, checks=True)
    where = np.arange(48, dtype=np.int32).reshape(shape)
    indices, numbers = (back(x).reshape(shape) for x in site_noise(sites, seed=3))
    open_ = np.ones(shape, bool) if how.get("mask") is None else np.asarray(how["mask"]) == 0
    assert (indices[open_] == where[open_]).all()
    assert (numbers[open_] == lw.random(3, where)[open_]).all()
    f0 = relax.populations(sites)[0]
    wanted = lw.interpolate(np.array([1.0, 2.0, 4.0]), 3 * f0.astype(np.float64), edge="zero")
    result = back(profile(sites, t=bring(np.array([1, 2, 4], np.float32)))).reshape(shape)
    np.testing.assert_allclose(result[open_], wanted[open_], rtol=1e-5)
    return relax.populations(sites)

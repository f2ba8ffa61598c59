"""What targets see: grids meet the sources of all pairs exactly, those of float64 where rounding does not decide, and look at fewer cells."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.launch.executable import build_executable
from lanewise.support.errors import ArgumentError
from tests.search.clouds import CLOUDS, Array, cloud
from tests.search.kernels import cuda_program

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


@lw.record
class Seer:
    position: lw.vec3
    looks: lw.vec3
    number: lw.i32


@lw.record
class FlatSeer:
    looks: lw.dvec2
    number: lw.i32
    position: lw.dvec2


@lw.pairwise
def meet(target: Seer, source: Seer) -> tuple[lw.i32, lw.i64, lw.i64]:
    n = lw.i64(source.number)
    return 1, n, n * n * n


@lw.pairwise
def meet_flat(target: FlatSeer, source: FlatSeer) -> tuple[lw.i32, lw.i64, lw.i64]:
    n = lw.i64(source.number)
    return 1, n, n * n * n


KINDS: dict[int, tuple[Any, Any, str]] = {3: (Seer, meet, "f4"), 2: (FlatSeer, meet_flat, "f8")}


def seers(x: Array, looks: Array, device: str = "cpu") -> Any:
    numbers = np.arange(len(x), dtype="i4")
    return KINDS[x.shape[1]][0].array(position=x, looks=looks, number=numbers, device=device)


def headings(count: int, axes: int, seed: int) -> Array:
    f = np.random.default_rng(seed).normal(size=(count, axes))
    f /= np.linalg.norm(f, axis=1, keepdims=True)
    f[: count // 4] = np.eye(axes)[np.arange(count // 4) % axes]  # along the axes, and against them
    f[: count // 8] *= -1
    return f


def met(results: Any) -> Array:
    return np.stack([np.asarray(r.get() if hasattr(r, "get") else r) for r in results], axis=1)


def check(x: Array, f: Array, sight: lw.Sight, device: str, targets: Any = None, **wanted: Any) -> None:
    _, kernel, dtype = KINDS[x.shape[1]]
    cells = wanted.pop("cells", None)
    sources = seers(x.astype(dtype), f.astype(dtype), device)
    targets = sources if targets is None else targets
    found = met(kernel.using(lw.StaticGrid(sight=sight, cells=cells, **wanted))(targets, sources))
    every = met(kernel.using(lw.AllPairs(sight=sight, **wanted))(targets, sources))
    assert np.array_equal(found, every)


@pytest.mark.slow_cases("uniform-cpu")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CLOUDS)
def test_every_cloud(name: str, device: str) -> None:
    x, radius = cloud(name, 250, 3, "f4", seed=1)
    f = headings(250, 3, 2)
    for cosine, near in ((-0.7, 0.2), (0.0, 0.0), (0.6, 0.1)):
        sight = lw.Sight(heading="looks", cosine=cosine, near=near * radius)
        check(x, f, sight, device, radius=radius)
        check(x, f, sight, device, radius=radius, k=3)


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(
    st.integers(0, 999), st.floats(-1, 1), st.floats(0, 0.3), st.floats(0.02, 0.8), st.integers(1, 40),
    st.sampled_from([2, 3]), st.floats(-50, 50),
)  # fmt: skip
def test_random_clouds(
    device: str, seed: int, cosine: float, near: float, radius: float, cells: int, axes: int, away: float
) -> None:
    x = np.random.default_rng(seed).random((120, axes)) + away
    sight = lw.Sight(heading="looks", cosine=cosine, near=near)
    f = headings(120, axes, seed)
    check(x, f, sight, device, radius=radius, cells=cells)
    box = lw.Bounded((away - 1,) * axes, (away + 2,) * axes)
    check(x, f, sight, device, radius=radius, world=box)


def test_as_in_float64() -> None:
    x, f = np.random.default_rng(1).random((200, 2)), headings(200, 2, 1)
    sight = lw.Sight(heading="looks", cosine=-0.3, near=0.05)
    flock = seers(x, f)
    count, *_ = meet_flat.using(lw.StaticGrid(radius=0.3, sight=sight))(flock, flock)
    off = x[None] - x[:, None]
    d = np.linalg.norm(off, axis=2)
    ahead = np.einsum("ia,ija->ij", f, off)
    wanted = (d < 0.3) & ((d < 0.05) | (ahead >= -0.3 * d))
    assert np.array_equal(count, wanted.sum(axis=1))


@pytest.mark.parametrize("device", DEVICES)
def test_periodic_worlds_and_other_targets(device: str) -> None:
    x, f = np.random.default_rng(2).random((200, 3)), headings(200, 3, 3)
    sight = lw.Sight(heading="looks", cosine=-0.5)
    check(x, f, sight, device, radius=0.2, world=lw.Periodic((1, 1, 1)))
    y = np.random.default_rng(4).normal(size=(90, 3)).astype("f4") * 2
    targets = seers(y, headings(90, 3, 5).astype("f4"), device)
    check(x, f, sight, device, targets, radius=0.4)


@lw.pairwise
def pull(target: Seer, source: Seer) -> lw.f32:
    d = source.position - target.position
    return lw.f32(source.number) * lw.exp(-lw.dot(d, d)) * target.position.x


@pytest.mark.parametrize("search", [lw.AllPairs, lw.StaticGrid])
def test_gradients_are_those_of_float64_or_refused(search: Any) -> None:
    x, f = np.random.default_rng(1).random((120, 3)), headings(120, 3, 1)
    flock, others = seers(x.astype("f4"), f.astype("f4")), seers(x[::-1].astype("f4"), f.astype("f4"))
    kernel = pull.using(search(radius=0.4, sight=lw.Sight(heading="looks", cosine=0.3)))
    off = x[None] - x[:, None]
    d = np.linalg.norm(off, axis=2)
    seen = (d < 0.4) & (np.einsum("ia,ija->ij", f, off) >= 0.3 * d)
    each = seen * np.exp(-(d**2)) * np.arange(120)
    wanted = 2 * np.einsum("ij,ija->ia", each * x[:, :1], off)
    wanted[:, 0] += each.sum(axis=1)
    found = kernel.gradient("target.position")(flock, flock)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())
    text = (
        "pull.gradient: a search for sources seen from 'looks' with a cosine of 0.3 at least gives each target its own "
        "sources, and a source does not know who sees it; take the gradient with respect to fields of target, or search without sight"
    )
    for wrt, sources in (("position", flock), ("source.position", flock), ("source.position", others)):
        with pytest.raises(ArgumentError, match=text):
            kernel.gradient(wrt)(flock, sources)


def test_it_compiles_for_a_gpu() -> None:
    flock = seers(np.zeros((4, 3), "f4"), np.ones((4, 3), "f4"))
    sight = lw.Sight(heading="looks", cosine=-0.5)
    for more in ({}, {"k": 4}):
        program = cuda_program(meet, lw.StaticGrid(radius=0.5, sight=sight, **more), flock, flock)
        (cubin,) = build_executable(program, "cuda", "sm_90").cubins
        assert cubin.resources.spill_stores <= 16


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="wanted a radius as well"):
        lw.StaticGrid(k=3, sight=lw.Sight(heading="looks", cosine=0))
    with pytest.raises(ArgumentError, match=r"cosine=2\): wanted a number from -1 to 1"):
        lw.Sight(heading="looks", cosine=2)
    with pytest.raises(ArgumentError, match=r"near=-1\): wanted a length, 0 or more"):
        lw.Sight(heading="looks", cosine=0, near=-1)
    flock = seers(np.zeros((4, 3), "f4"), np.ones((4, 3), "f4"))
    for field in ("number", "nothing"):
        sight = lw.Sight(heading=field, cosine=0)
        with pytest.raises(ArgumentError, match=f"the targets have no field '{field}' with as many components"):
            meet.using(lw.AllPairs(radius=1.0, sight=sight))(flock, flock)
    search = lw.StaticGrid(radius=1.0, sight=lw.Sight(heading="looks", cosine=0))
    with pytest.raises(ArgumentError, match="points look nowhere; wanted a search without sight"):
        lw.neighbors(np.zeros((4, 3)), 1.0, search=search)
    with pytest.raises(ArgumentError, match=r"StaticGrid\(sight=3\): wanted lw\.Sight"):
        lw.StaticGrid(radius=1.0, sight=3)  # type: ignore[arg-type]

"""Arrays without elements go through every kernel, search, layout, device and file that arrays go through."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.sims import boids, gravity
from lanewise.support.errors import ArgumentError, InputError
from tests.test_array_views import LAYOUTS, Grain, host

SEARCHES = (
    lw.Neighbors(radius=0.5), lw.Neighbors(radius=0.4, world=lw.Periodic((1, 1, 1))), lw.StaticGrid(radius=0.5),
    lw.DynamicGrid(radius=0.5), lw.AllPairs(radius=0.5), lw.AllPairs(), lw.Nearest(k=3), lw.DynamicGrid(k=2),
)  # fmt: skip


@lw.elementwise
def scale(grain: Grain, by: lw.f32) -> lw.f32:
    grain.mass *= by
    return grain.mass


@lw.elementwise
def double(x: lw.f32) -> lw.f32:
    return 2 * x


@lw.pairwise
def pull(target: Grain, source: Grain) -> lw.vec3:
    return (source.position - target.position) * source.mass


@lw.threadwise
def fill(i: lw.index, a: lw.Array1[lw.f32]):
    a[i] = 2.0


@pytest.fixture(params=["cpu", "python", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def some(n: int, layout: lw.Layout, device: str) -> Any:
    return Grain.array(position=np.random.default_rng(0).random((n, 3)), mass=np.ones(n), layout=layout, device=device)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_arrays(layout: lw.Layout, device: str) -> None:
    empty = Grain.zeros(0, layout=layout, device=device)
    assert len(empty) == len(list(empty)) == empty.capacity == 0
    for other in (empty.copy(), empty.to("cpu"), empty.with_layout(lw.AoS()), pickle.loads(pickle.dumps(empty)), empty[:], empty[::2],
                  empty[[]], empty[np.zeros(0, bool)], lw.concatenate([empty, empty]), some(4, layout, device)[2:2]):  # fmt: skip
        assert {n: (a.shape, a.dtype) for n, a in other.numpy().items()} == {
            "position": ((0, 3), np.dtype("f4")), "mass": ((0,), np.dtype("f4")), "serial": ((0,), np.dtype("i8")), "alive": ((0,), np.dtype("?")),
        }  # fmt: skip
    empty.mass, empty.position = 3, np.zeros((0, 3))
    assert empty.compact(np.zeros(0, bool)) == 0
    empty.append(some(3, layout, device))
    assert host(empty.mass).tolist() == [1, 1, 1]
    with pytest.raises(IndexError, match="record 0 of 0"):
        Grain.zeros(0)[0]
    assert len(Grain.array(mass=[])) == 0


def test_elementwise(device: str) -> None:
    empty = Grain.zeros(0, device=device)
    for _ in range(2):
        assert scale(empty, 2.0).shape == (0,)
        assert scale.sum(empty, 2.0) == 0
        for name in ("min", "max"):
            with pytest.raises(ArgumentError) as error:
                getattr(scale, name)(empty, 2.0)
            assert str(error.value) == f"scale.{name}: an array without elements has no smallest and no largest one"
    scale.bind(empty, 2.0)()
    with lw.device(device):
        assert double(np.zeros(0, "f4")).shape == (0,)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoSoA(4)], ids=str)
def test_pairs_and_searches(layout: lw.Layout, device: str) -> None:
    empty, full = Grain.zeros(0, layout=layout, device=device), some(9, layout, device)
    for search in SEARCHES:
        kernel = pull.using(search)
        for target, source in ((empty, full), (full, empty), (empty, empty)):
            for _ in range(2):
                if search.k and source is empty:
                    with pytest.raises(ArgumentError, match=f"the {search.k} nearest: there are only 0 sources"):
                        kernel(target, source)
                    continue
                result = host(kernel(target, source))
                assert result.shape == (len(target), 3)
                assert not result.any()
                kernel.bind(target, source)()
    grown = Grain.zeros(0, layout=layout, device=device)
    near = pull.using(lw.Neighbors(radius=0.5))
    near(grown, full)
    grown.append(full)
    np.testing.assert_array_equal(host(near(grown, full)), host(near(full.copy(), full)))


def test_queries(device: str) -> None:
    nothing, points = np.zeros((0, 3), "f4"), np.random.default_rng(0).random((7, 3)).astype("f4")
    with lw.device(device):
        assert len(lw.neighbors(nothing, 0.5)) == 0
        assert host(lw.neighbors(nothing, 0.5, queries=points).counts).tolist() == [0] * 7
        assert len(lw.neighbors(points, 0.5, queries=nothing)) == 0
        assert lw.nearest(points, 2, queries=nothing)[0].shape == (0, 2)


def test_products(device: str) -> None:
    simulation = gravity.Simulation(gravity.Body.zeros(0, device=device), softening=0.1)
    simulation.run(2, dt=0.1)
    assert (simulation.step, simulation.energy()) == (2, 0)


@pytest.mark.quick("sync", "obstacles")
@pytest.mark.parametrize(
    "settings",
    [{}, {"semantics": "seq"}, {"think_every": 3, "boundary": "bounded"}, {"search": "dynamic-grid", "boundary": "open"},
     {"obstacles": [boids.Sphere((0, 0, 0), 3)], "precision": "f64"}],
    ids=["sync", "seq", "thinkers", "open", "obstacles"],
)  # fmt: skip
def test_a_flock_of_nobody(settings: dict[str, Any], tmp_path: Path) -> None:
    flock = boids.Flock(0, **settings).run(35)
    flock.cohesion_weight = 3
    flock.checkpoint(tmp_path / "nobody.h5")
    resumed = boids.Flock.resume(tmp_path / "nobody.h5").run(1)
    assert (len(resumed), resumed.step, resumed.position.shape) == (0, 36, (0, 3))
    said = resumed.statistics().as_dict()
    assert (said.pop("cells"), said.pop("cell_min"), said.pop("cell_max")) == (0, 0, 0)
    assert all(math.isnan(v) for v in [*said.values(), resumed.polarisation()])


def test_nobody_has_no_nearest_flockmates() -> None:
    with pytest.raises(InputError, match="k is 7; there are only 0 agents"):
        boids.Flock(0, semantics="thesis")


def test_threads_and_collective_calls() -> None:
    fill(np.zeros(0, "f4"), grid=0)
    assert lw.cumsum(np.zeros(0, "i4")).shape == (0,)
    assert lw.histogram(np.zeros(0, "i4"), bins=3).tolist() == [0, 0, 0]

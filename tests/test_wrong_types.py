"""Arguments of wrong types end in lanewise's own errors, word by word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.sims import boids, gravity, lbm
from lanewise.support.errors import ArgumentError, ArgumentTypeError, DeviceError, InputError, PlanError, RecordError
from lanewise.support.installation import install
from tests.pickled_kernels import Grain, attract, grow


def flow(**changed: Any) -> Any:
    return lbm.Simulation(**{"shape": (5, 5), "viscosity": 0.1, **changed})


def grains() -> Any:
    return Grain.array(mass=np.ones(3))


class Raising:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError("not today")


class Nameless:
    def __call__(self) -> None:
        pass

    def __repr__(self) -> str:
        return "a nameless one"


class OnGPU:
    __cuda_array_interface__ = {"shape": (3,), "typestr": "<f8", "data": (0, False), "version": 3}  # noqa: RUF012


class DLPackOnGPU:
    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, **named: Any) -> Any:
        raise AssertionError("nobody can read it")


REDUCED = "a reduction takes an array of numbers with at least one axis, found "
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "obstacles": (lambda: boids.Flock(obstacles="a"), InputError,
        "Flock(obstacles='a'): wanted a list of Sphere or Box or Rectangle or Plane"),
    "bodies": (lambda: gravity.Simulation(None), InputError, "Simulation(bodies=None): wanted a RecordArray"),
    "bodies of another record": (lambda: gravity.Simulation(grains()), InputError, None),
    "tile": (lambda: lw.Plan(tile=float("nan")), PlanError, "Plan(tile=nan): wanted an integer"),
    "hoist": (lambda: lw.Plan(hoist=[]), PlanError, "Plan(hoist=[]): wanted True or False"),
    "targets": (lambda: lw.Plan(targets="native"), PlanError, "Plan(targets='native'): wanted an integer"),
    "prefetch": (lambda: lw.Plan(prefetch="all"), PlanError,
        "Plan(prefetch='all'): wanted one of 'none', 'registers', 'async', 'async3', 'async4'"),
    "plan": (lambda: grow.bind(grains(), 1.0, plan="fast"), PlanError, "grow: plan takes lw.Plan(...), found 'fast'"),
    "plan of pairs": (lambda: attract.compile(grains(), grains(), plan=3), PlanError, "attract: plan takes lw.Plan(...), found 3"),
    "dictionary": (lambda: grow(grains(), {"a": 1}), ArgumentError,
        "grow: 'by' must be an f64, found dict {'a': 1}"),
    "array that raises": (lambda: Grain.array(mass=Raising()), ArgumentError,
        "Grain.mass: Raising cannot be read as an array (not today)"),
    "sum of text": (lambda: lw.sum(np.array(["a"])), ArgumentError, REDUCED + "<array of <U1 with shape (1,)>"),
    "sum of dates": (lambda: lw.sum(np.zeros(2, "M8[s]")), ArgumentError, REDUCED + "<array of datetime64[s] with shape (2,)>"),
    "sum of records": (lambda: lw.sum(np.zeros(2, [("a", "f4")])), ArgumentError, REDUCED + "<array of [('a', '<f4')] with shape (2,)>"),
    "sum of one": (lambda: lw.sum(np.array(5.0)), ArgumentError, REDUCED + "array(5.); .reshape(1) is one of one element"),
    "sum of an array of records": (lambda: lw.sum(grains()), ArgumentError, "a reduction takes an array of values, found an array of Grain: name a field of it, or write an @lw.elementwise "
        "function, whose kernel.sum, .min and .max reduce its results"),
    "viscosity": (lambda: flow(viscosity="a"), InputError, "Simulation(viscosity='a'): wanted a number"),
    "kinds": (lambda: flow(kinds="x"), InputError, "Simulation(kinds='x'): wanted a dictionary of integers and Wall or Open"),
    "edges": (lambda: flow(edges=5), InputError, "Simulation(edges=5): wanted a dictionary of strings and strings or groups of 2 strings"),
    "lattice": (lambda: flow(lattice={}), InputError, "Simulation(lattice={}): wanted a string or a Lattice"),
    "storage": (lambda: flow(storage=np.zeros(2)), InputError, "Simulation(storage=<array of float64 with shape (2,)>): wanted a string"),
    "smagorinsky": (lambda: flow(smagorinsky=[]), InputError, "Simulation(smagorinsky=[]): wanted a number"),
    "density": (lambda: flow(density="a"), InputError, "the density holds <U1; wanted numbers"),
    "mass": (lambda: boids.Flock(mass="a"), InputError, "Flock(mass='a'): wanted a number"),
    "seed": (lambda: boids.Flock(seed=[]), InputError, "Flock(seed=[]): wanted an integer"),
    "world": (lambda: boids.Flock(world=None), InputError, "Flock(world=None): wanted a number"),
    "layout": (lambda: boids.Flock(layout=1.5), InputError, "Flock(layout=1.5): wanted a string"),
    "search": (lambda: boids.Flock(search=5), InputError, "Flock(search=5): wanted a string or a Search"),
    "steps": (lambda: boids.Flock.run(None, 1.5), InputError, "Flock.run(steps=1.5): wanted an integer"),
    "sphere": (lambda: boids.Sphere((1, 2), 3), InputError, "Sphere(center=(1, 2)): wanted 3 numbers"),
    "neighbors of records": (lambda: lw.neighbors(grains(), 1.0), ArgumentError,
        "neighbors: 'points': an array of Grain is no array of numbers; take a field, for "
        "example .position, or .to_structured()"),
    "decorated object": (lambda: lw.pairwise(Nameless()), ArgumentError, "@lw.pairwise stands above a function, found a nameless one"),
    "decorated": (lambda: lw.elementwise(5), ArgumentError, "@lw.elementwise stands above a function, found 5"),
    "a setting": (lambda: setattr(gravity.Simulation.__new__(gravity.Simulation), "softening", "a"), InputError,
        "Simulation.softening(value='a'): wanted a number"),
    "width": (lambda: lw.AoSoA([]), RecordError, "AoSoA(width=[]): the width must be a power of two from 1 to 1024"),
    "groups": (lambda: lw.SoAoAS(5), RecordError,
        'SoAoAS(5): wanted groups of names of fields, as in (("position", "mass"), ("velocity",))'),
    "number": (lambda: lw.f32("a"), ArgumentTypeError, "lw.f32 takes a number, found 'a'"),
    "sine": (lambda: lw.sin("a"), ArgumentTypeError, "lw.sin takes numbers and vectors, found 'a'"),
    "dot": (lambda: lw.dot(1, 2), ArgumentTypeError, "lw.dot takes vectors, found 1"),
    "row": (lambda: grains()["mass"], ArgumentTypeError,
        "records are taken with an integer, a slice, a mask or integers, found 'mass'; fields are arrays: .position[...]"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, kind, text = REFUSED[name]
    with pytest.raises(kind) as caught:
        call()
    assert text is None or str(caught.value) == text


@pytest.mark.parametrize("value", [OnGPU(), DLPackOnGPU()], ids=["interface", "DLPack"])
def test_memory_of_a_gpu_without_cupy(value, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceError) as caught:
        Grain.array(mass=value)
    assert str(caught.value) == f"memory of a GPU is reached through CuPy, which is not installed: {install('cuda')}"


def test_cells_that_cannot_be_allocated(monkeypatch):
    from lanewise.patterns.search import static_grid
    from lanewise.runtime.host_device import HostDevice

    def refuse(*arguments: Any, **named: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(HostDevice, "allocate", refuse)
    monkeypatch.setattr(HostDevice, "free_memory", lambda device: 1 << 40)
    monkeypatch.setattr(static_grid, "available_memory", lambda device: 1 << 40)
    x = np.random.default_rng(0).random((5, 3))
    with pytest.raises(DeviceError) as caught:
        lw.nearest(x, 2, search=lw.StaticGrid(k=2, cells=1290))
    assert str(caught.value) == (
        "a grid of 2,146,689,000 cells needs 8,586,756,352 bytes on 'cpu', which cannot be allocated"
    )


def test_numbers_of_numpy_are_numbers():
    assert lw.StaticGrid(radius=np.float32(0.5), k=np.int64(3)) == lw.StaticGrid(radius=0.5, k=3)
    assert lw.Plan(tile=np.int32(64)).tile == 64
    assert type(boids.make_state(np.int64(3), seed=np.int32(1)).speed[0]) is np.float64
    assert boids.Sphere(np.array([1.0, 2, 3]), np.float32(2)) == boids.Sphere((1.0, 2.0, 3.0), 2.0)


@pytest.mark.parametrize("steps", [-1, -(10**40), 10**40])
def test_no_product_goes_backwards(steps):
    flock = boids.Flock.__new__(boids.Flock)  # refused before anything of it is used
    with pytest.raises(InputError, match="the number of steps is"):
        flock.advance(steps)


def test_python_refuses_what_is_missing_or_unknown():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'bodies'"):
        gravity.Simulation()
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        lbm.Simulation(shape=(5, 5), colour=3)

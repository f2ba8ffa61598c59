"""What the host does of calls on a GPU, shown without one: what it launches, how often it captures graphs, what it
gives back and refuses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.launch.own_memory import OwnMemory
from lanewise.runtime import cuda
from lanewise.runtime.cuda_device import Cuda
from lanewise.support.errors import ArgumentError, DeviceError
from tests.launch.stand_in_gpu import DEVICE, Array, Launches, put_in

pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")


@lw.record
class Body:
    """A point mass."""

    position: lw.vec3
    mass: lw.f32
    density: lw.f32


@lw.record
class Mass:
    mass: lw.f32


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Launches:
    return put_in(monkeypatch)


def make_axpy() -> Any:
    @lw.elementwise
    def axpy(a: lw.f32, x: lw.f32, y: lw.f32) -> lw.f32:
        return a * x + y

    return axpy


def array(*shape: int) -> Array:
    return Array(np.random.default_rng(1).random(shape).astype("f4"))


def test_calls_like_an_earlier_one_launch_their_kernels_and_nothing_else(gpu: Launches) -> None:
    @lw.pairwise
    def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
        d = source.position - target.position
        return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d

    @lw.elementwise
    def heavier(body: Body, x: lw.f32):
        body.mass += x

    @lw.pairwise
    def mass_of_all(target: Body, source: Body) -> lw.f32:
        return source.mass

    with lw.device(DEVICE):
        bodies = Body.array(position=np.ones((300, 3)), mass=np.ones(300), layout=lw.SoA())
        more = array(300)
        gpu.since()
        for _ in range(3):
            assert gravity(bodies, bodies, softening2=0.1).shape == (300, 3)
            assert gpu.since() == ["gravity", "gravity_combine"]
            assert gravity(bodies[3:9], bodies, 0.1).shape == (6, 3)
            assert gpu.since() == ["gravity", "gravity_combine"]
            heavier(bodies, more)
            assert gpu.since() == ["heavier"]
            mass_of_all(bodies, bodies, out=bodies.density)
            gpu.since()
            with pytest.raises(ArgumentError, match=r"mass_of_all: out shares memory with source\.mass"):
                mass_of_all(bodies, bodies, out=bodies.mass)
            assert gpu.since() == []


@pytest.mark.parametrize("shape", [(300,), (6, 50), (2, 3, 50)], ids=str)
def test_arrays_of_any_shape_are_taken_where_they_lie(gpu: Launches, shape: tuple[int, ...]) -> None:
    axpy = make_axpy()
    x, y, out = (array(*shape) for _ in range(3))
    with lw.device(DEVICE):
        for _ in range(3):
            result = axpy(2.0, x, y)
            assert (type(result), result.shape) == (Array, shape)
            assert axpy(2.0, x, y, out=out) is out
            assert axpy(2.0, x, y, out=x) is x  # each element has its own place
            turned = array(*shape[::-1])
            assert axpy(2.0, turned, turned).shape == shape[::-1]
            assert gpu.since() == ["axpy"] * 4
        assert axpy.bind(2.0, x, y)().shape == shape
        assert axpy(2.0, array(0, *shape), array(0, *shape)).shape == (0, *shape)
        assert gpu.since() == ["axpy"]


@pytest.mark.parametrize(
    "search", [None, lw.StaticGrid(radius=0.2, cells=8, world=lw.Periodic((1, 1, 1)))], ids=["pairs", "grid"]
)
def test_what_a_call_needs_is_refused_before_anything_is_allocated(
    gpu: Launches, search: lw.Search | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results and partial sums, or results, a structure and a sorted copy: in sum, and once."""

    @lw.pairwise
    def pull(target: Body, source: Body) -> lw.vec3:
        return source.mass * (source.position - target.position)

    taken, free = list[int](), [1 << 40]

    def allocate(device: str, nbytes: int) -> Array:
        taken.append(nbytes)
        return Array(np.zeros(nbytes, np.uint8))

    monkeypatch.setattr(cuda, "allocate", allocate)
    monkeypatch.setattr(cuda, "free_memory", lambda device: free[0])
    monkeypatch.setattr(Cuda, "asks_from", property(lambda _: 0))
    kernel = pull if search is None else pull.using(search=search)
    with lw.device(DEVICE):
        bodies = Body.array(position=np.full((300, 3), 0.5), mass=np.ones(300), layout=lw.SoA())
        taken.clear()
        free[0] = 5000
        with pytest.raises(DeviceError, match=r"a call of pull needs [\d,]+ bytes on 'cuda:98'.*the result") as caught:
            kernel.bind(bodies, bodies)
        look = sum(taken)  # a sample of positions, which says what the structure will be like
        assert look <= (0 if search is None else 4096)
        taken.clear()
        needed = int(str(caught.value).split("needs ")[1].split(" bytes")[0].replace(",", ""))
        free[0] = needed
        kernel.bind(bodies, bodies)
        own = sum(taken) - look
        assert 0 <= needed - 12 * 300 - own <= 1024, (needed, taken)  # besides the result


def test_results_over_values_of_other_elements_are_refused(gpu: Launches) -> None:
    axpy, x, y = make_axpy(), array(300), array(300)
    with lw.device(DEVICE):
        for _ in range(2):  # also where an earlier call was like this one
            axpy(2.0, x[:-1], y[:-1], out=y[:-1])
            gpu.since()
            with pytest.raises(ArgumentError, match="axpy: out shares memory with 'x'"):
                axpy(2.0, x[:-1], y[:-1], out=x[1:])
            assert gpu.since() == []
        with pytest.raises(ArgumentError, match=r"x has \(300,\), y has \(20, 15\); nothing is broadcast"):
            axpy(2.0, x, array(20, 15))


def test_single_steps_replay_what_was_captured(gpu: Launches) -> None:
    @lw.stencil(lw.D2Q5)
    def heat(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
        return t[0] + rate * (t[1] + t[2] + t[3] + t[4] - 4 * t[0])

    @lw.sitewise(lw.D2Q9)
    def flow(f: lw.populations, omega: lw.f32):
        total = lw.f32(0)
        for q in lw.D2Q9:
            total += f[q]
        for q in lw.D2Q9:
            f[q] += omega * (q.weight * total - f[q])

    plate, sites = heat.sites((16, 16), t=1.0, device=DEVICE), flow.sites((16, 16), device=DEVICE)
    flow.set_populations(sites, np.ones((9, 16, 16)))
    for kernel, box, values in ((heat, plate, {"rate": 0.2}), (flow, sites, {"omega": 0.5})):
        for _ in range(4):  # the first step, and each of the two copies
            kernel(box, **values)
        gpu.since()
        for _ in range(4):
            kernel(box, **values)
        assert gpu.since() == ["replay"] * 4
    heat.set_fields(plate, t=2.0)
    heat(plate, rate=0.2)
    assert gpu.since() == ["replay"]
    best = heat.kernels.default_plan(plate, heat.kinds.values(plate, {"rate": 0.2}))
    heat.kernels.adopt(plate, heat.kinds.values(plate, {"rate": 0.2}), replace(best, block=64))
    heat(plate, rate=0.2)  # by the plan that was tuned meanwhile
    assert gpu.since() == ["heat", "graph", "replay"]


def test_sizes_are_numbers_of_a_launch(gpu: Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grids, counts and places follow from sizes; partial sums of all sizes lie in one memory, which grows by a quarter
    at least.
    """

    @lw.pairwise
    def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
        d = source.position - target.position
        return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d

    seen: list[tuple[tuple[int, int], tuple[Any, ...]]] = []

    def launch(self: Any, grid: tuple[int, int], arguments: tuple[Any, ...]) -> None:
        seen.append((grid, arguments))

    monkeypatch.setattr(cuda.CudaKernel, "launch", launch)
    asked: dict[OwnMemory, int] = {}
    taken: dict[OwnMemory, dict[str, int]] = {}
    reserve = OwnMemory.reserve

    def watched(self: OwnMemory, name: str, nbytes: int, what: str, *, zeroed: bool) -> Any:
        asked[self] = max(asked.get(self, 0), nbytes)
        data = reserve(self, name, nbytes, what, zeroed=zeroed)
        taken.setdefault(self, {})[name] = data.nbytes
        return data

    with lw.device(DEVICE):
        arrays = {n: Body.array(position=np.ones((n, 3)), layout=lw.SoA()) for n in (*range(300, 330), 2000, 2100)}
        for n, bodies in arrays.items():
            seen.clear()
            gravity.bind(bodies, bodies, 0.1)()
            wanted = list(seen)
            seen.clear()
            with monkeypatch.context() as patched:
                patched.setattr(OwnMemory, "reserve", watched)
                gravity(bodies, bodies, 0.1)
            assert [(grid, shape_of(arguments)) for grid, arguments in seen[-len(wanted) :]] == [
                (grid, shape_of(arguments)) for grid, arguments in wanted
            ], n
        (kind,) = gravity._calls.repeated[None]._entries
        texts = len(gravity._calls.compiled)
        for n in (300, 2100, 320):
            gravity(arrays[n], arrays[n], 0.1)
    assert 0 < len(kind._sizes) <= len(arrays)
    assert texts == len(gravity._calls.compiled) < 6
    assert 0 < len(asked) <= texts + 1  # one memory for all sizes of a program, and one of the first call
    assert all(sum(taken[own].values()) <= 1.25 * most for own, most in asked.items())


def shape_of(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The numbers among the arguments of a launch, without addresses."""
    return tuple(a for a in arguments if isinstance(a, np.generic))


def test_parts_of_the_sources_are_counted_apart(gpu: Launches) -> None:
    """A launch counts the sums of all parts, and the sources: not the sources of every part."""

    @lw.pairwise
    def mass_of_all(target: Mass, source: Mass) -> lw.f32:
        return source.mass

    with lw.device(DEVICE):
        sources, targets = Mass.zeros(40_000_000, layout=lw.SoA()), Mass.zeros(1000, layout=lw.SoA())
        gpu.since()
        mass_of_all(targets, sources, plan=lw.Plan(parts=64))
        assert gpu.since() == ["mass_of_all", "mass_of_all_combine"]
        with pytest.raises(lw.PlanError, match=r"keeps 2,560,000,000 partial sums|more than 2,147,418,112 elements"):
            mass_of_all(sources, targets, plan=lw.Plan(parts=64))

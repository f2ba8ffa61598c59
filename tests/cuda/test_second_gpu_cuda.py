"""Two GPUs: results lie where the arguments lie, in order with the current stream, whatever device is the
current one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.support.errors import ArgumentError

pytestmark = pytest.mark.cuda


class Body(lw.Record):
    position: lw.vec3
    mass: lw.f32


@lw.pairwise
def gravity(a: Body, b: Body, softening2: lw.f32) -> lw.vec3:
    d = b.position - a.position
    return b.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


@lw.pairwise(search=lw.Neighbors(radius=0.5))
def near(a: Body, b: Body) -> lw.i32:
    return 1


@lw.elementwise
def energy(a: Body) -> lw.f32:
    return 0.5 * a.mass * lw.dot(a.position, a.position)


@lw.elementwise
def scaled(x: lw.f32, factor: lw.f32) -> lw.f32:
    return x * factor


@lw.threadwise
def squares(i: lw.index, x: lw.Array1[lw.f32], y: lw.Array1[lw.f32]):
    y[i] = x[i] * x[i]


@pytest.fixture
def cp() -> Any:
    cupy = pytest.importorskip("cupy")
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")
    before = cupy.cuda.runtime.getDevice()
    yield cupy
    assert cupy.cuda.runtime.getDevice() == before


def other(cp: Any) -> str:
    """The device that is not the current one."""
    from lanewise.runtime.devices import cuda_name

    return cuda_name(1 - cp.cuda.runtime.getDevice())


def bodies(count: int, device: str) -> Any:
    rng = np.random.default_rng(3)
    return Body.array(position=rng.normal(size=(count, 3)), mass=rng.uniform(0.5, 1, count), device=device)


CALLS: dict[str, Callable[[Any, str], Any]] = {
    "pairs": lambda b, device: gravity(b, b, softening2=1e-2),
    "bound pairs": lambda b, device: gravity.bind(b, b, softening2=1e-2)(),
    "search": lambda b, device: near(b, b),
    "bound search": lambda b, device: near.bind(b, b)(),
    "elements": lambda b, device: energy(b),
    "sum": lambda b, device: np.float64(energy.sum(b)),
    "nearest": lambda b, device: lw.nearest(b.position, 3)[1],
    "neighbours": lambda b, device: lw.neighbors(b.position, 0.5).indices,
    "compacted": lambda b, device: lw.compact(b.contiguous("mass"), b.contiguous("mass") > 0.7),
    "copy of a field": lambda b, device: b.contiguous("position"),
    "records by a mask": lambda b, device: b[np.arange(len(b)) % 3 == 0].contiguous("mass"),
}


@pytest.mark.parametrize("call", CALLS)
def test_results_lie_where_the_arguments_lie(call, cp):
    device = other(cp)
    here, there = bodies(3000, "cpu"), bodies(3000, device)
    for _ in range(3):  # a first call, one like it, and the very same one again
        found = CALLS[call](there, device) if "compacted" not in call else None
        if found is None:
            with cp.cuda.Device(1 - cp.cuda.runtime.getDevice()):
                found = CALLS[call](there, device)
        if isinstance(found, cp.ndarray):
            assert int(found.device.id) == 1 - cp.cuda.runtime.getDevice()
            found = found.get()
        wanted = CALLS[call](here, "cpu")
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_naive_kernels_run_where_their_arrays_lie(cp):
    with cp.cuda.Device(1 - cp.cuda.runtime.getDevice()):
        x = cp.arange(1000, dtype=cp.float32)
        y = cp.zeros_like(x)
    squares(x, y, grid=1000)
    np.testing.assert_array_equal(y.get(), x.get() ** 2)
    z = scaled(x, 3.0)
    assert int(z.device.id) == int(x.device.id)
    np.testing.assert_array_equal(z.get(), x.get() * 3)


def test_what_is_read_at_once_is_there(cp):
    """Long kernels one after the other, each read at once, on the current stream of the current device: numbers and
    arithmetic.
    """
    there = bodies(60_000, other(cp))
    wanted = gravity(there, there, softening2=1e-2).get()
    for _ in range(20):
        np.testing.assert_array_equal(gravity(there, there, softening2=1e-2).get(), wanted)
    with cp.cuda.Stream(non_blocking=True):
        for _ in range(20):
            np.testing.assert_array_equal(gravity(there, there, softening2=1e-2).get(), wanted)


def test_values_come_from_the_other_gpu(cp):
    there = bodies(1000, other(cp))
    force = cp.asarray(np.random.default_rng(1).normal(size=(1000, 3)).astype(np.float32))
    there.position = force
    np.testing.assert_array_equal(there.contiguous("position").get(), force.get())


def test_records_go_from_one_gpu_to_the_other(cp):
    there = bodies(1000, other(cp))
    from lanewise.runtime.devices import cuda_name

    back = there.to(cuda_name(cp.cuda.runtime.getDevice()))
    np.testing.assert_array_equal(back.contiguous("position").get(), bodies(1000, "cpu").position)


def test_two_gpus_in_one_call_are_refused(cp):
    there, here = bodies(10, other(cp)), cp.zeros((10, 3), cp.float32)
    with pytest.raises(ArgumentError, match="out must lie on"):
        gravity(there, there, softening2=1e-2, out=here)
    with cp.cuda.Device(1 - cp.cuda.runtime.getDevice()):
        x = cp.arange(5, dtype=cp.float32)
    with pytest.raises(ArgumentError, match="lie on different devices"):
        squares(x, cp.zeros(5, cp.float32), grid=5)


@pytest.mark.parametrize("devices", ["cuda:*", ["cuda:1", "cuda"]])
def test_a_mesh_of_two_gpus_has_the_bits_of_one(cp: Any, devices: Any) -> None:
    def run(mesh: lw.Mesh) -> list[Any]:
        rng = np.random.default_rng(5)
        bodies = Body.array(position=rng.standard_normal((5001, 3)), mass=rng.random(5001), device=mesh)
        left = [energy(bodies).numpy()]
        force = gravity.bind(bodies, bodies, softening2=1e-2)
        for _ in range(5):
            bodies.position += 1e-3 * force()
            left.append(gravity(bodies, bodies, softening2=1e-2).numpy())
        return [*left, bodies.position.numpy()]

    for found, wanted in zip(run(lw.Mesh(devices)), run(lw.Mesh(["cuda:0"] * 2)), strict=True):
        np.testing.assert_array_equal(found, wanted)


@lw.elementwise
def push(a: Body, force: lw.vec3, dt: lw.f32):
    a.position += force * dt


def drifting(mesh: lw.Mesh, count: int, steps: int, how: str, layout: lw.Layout) -> list[Any]:
    """Positions after some steps, each of which overwrites what the other GPU has just been sent."""
    rng = np.random.default_rng(7)
    b = Body.array(position=rng.normal(size=(count, 3)), mass=rng.random(count), layout=layout, device=mesh)
    force = gravity.bind(b, b, softening2=1e-2)
    kick = push.bind(b, force.results[0], dt=1e-3)
    left: list[Any] = []
    if how == "loop":
        lw.steps([force, kick]).run(steps)
    for _ in range(0 if how == "loop" else steps):
        if how == "bound":
            force()
            kick()
        else:
            push(b, gravity(b, b, softening2=1e-2), dt=1e-3)
            left.append(b.position.numpy())  # at once, behind everything
            b.position = b.position * 1.0
    return [*left, b.position.numpy()]


@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoS(), lw.AoSoA(32)], ids=str)
@pytest.mark.parametrize("how", ["loop", "bound", "calls"])
@pytest.mark.parametrize("count", [1001, 40_000])
def test_exchanges_wait_for_writers_and_readers(cp: Any, count: int, how: str, layout: lw.Layout) -> None:
    wanted = drifting(lw.Mesh(["cuda:0"] * 2), count, 30, how, layout)
    for devices in (["cuda:0", "cuda:1"], ["cuda:1", "cuda:0"], ["cuda:1", "cuda:0", "cuda:1"]):
        if len(devices) == 3:
            wanted = drifting(lw.Mesh(["cuda:0"] * 3), count, 30, how, layout)
        mesh = lw.Mesh(devices)
        for number in (0, 1):  # whatever device is the current one, and on streams of one's own
            with cp.cuda.Device(number):
                found = drifting(mesh, count, 30, how, layout)
                with cp.cuda.Stream(non_blocking=True):
                    found += drifting(mesh, count, 30, how, layout)
            for one, other in zip(found, wanted * 2, strict=True):
                np.testing.assert_array_equal(one, other)


def test_a_busy_gpu_holds_up_what_reads_from_it(cp: Any) -> None:
    """One GPU is late with what a caller put on its stream: the other one must not read what is not written yet, and
    the caller may write at once to what is being read.
    """

    def run(devices: list[str], late: int) -> list[Any]:
        rng = np.random.default_rng(1)
        mesh = lw.Mesh(devices)
        b = Body.array(position=rng.normal(size=(4001, 3)), mass=rng.random(4001), layout=lw.SoA(), device=mesh)
        force = gravity.bind(b, b, softening2=1e-2)
        mine = b.mass.parts[late]
        left: list[Any] = []
        with cp.cuda.Device(mine.device.id):
            busy = cp.ones((6000, 6000), cp.float32)
        for _ in range(10):
            with cp.cuda.Device(mine.device.id):
                mine *= 1 + 0 * (busy @ busy)[0, 0]  # some milliseconds
                mine *= 0.9
            left.append(force())
            with cp.cuda.Device(mine.device.id):
                mine *= 0.5
            left[-1] = left[-1].numpy()
        return left

    for late in (0, 1):
        for found, wanted in zip(run(["cuda:0", "cuda:1"], late), run(["cuda:0"] * 2, late), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_explanations_name_the_link(cp: Any) -> None:
    b = bodies(1000, "cuda:*")
    said = str(gravity.compile(b, b, softening2=1e-2).explain(measure_resources=False))
    mesh = lw.Mesh("cuda:*")
    first, second = mesh.devices
    assert f"2 parts ({mesh}), 500 rows each" in said
    can = cp.cuda.runtime.deviceCanAccessPeer(0, 1)
    links = ("NVLink", "PCIe, peer access") if can else ("no peer access",)
    assert any(
        re.search(rf"{first} to {second}: [\d,]+ bytes per call, {link}, [\d.,]+ GB/s", said) for link in links
    ), said


@contextmanager
def without_peer_access(cp: Any) -> Iterator[None]:
    """GPUs 0 and 1 do not reach each other: the driver forbids it, and answers so. Fails if anything allows it
    meanwhile.

    CuPy allows it with each of its copies between GPUs that have it; here the same copies are made without that.
    How fast copies go then says nothing: a driver may take them over NVLink all the same, as one of NVIDIA H200 does.
    """
    from cuda.bindings import runtime

    from lanewise.runtime import cuda

    off = runtime.cudaError_t.cudaErrorPeerAccessNotEnabled

    def at_each(work: Callable[[int], tuple[Any]], allowed: tuple[Any, ...]) -> None:
        for here in (0, 1):
            with cp.cuda.Device(here):
                cp.cuda.Device(here).synchronize()
                status = work(1 - here)[0]
                runtime.cudaGetLastError()
                assert status in allowed, f"GPU {here}: {status.name}"

    def copied(to: Any, source: Any) -> None:
        rt, stream = cp.cuda.runtime, cp.cuda.get_current_stream()
        rt.memcpyAsync(to.data.ptr, source.data.ptr, int(source.nbytes), rt.memcpyDefault, stream.ptr)
        made.append(int(source.nbytes))

    made: list[int] = []
    at_each(runtime.cudaDeviceDisablePeerAccess, (runtime.cudaError_t.cudaSuccess, off))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cp.cuda.runtime, "deviceCanAccessPeer", lambda one, other: 0)
        patch.setattr(cuda, "receive", copied)
        cuda._has_peer.cache_clear()
        try:
            yield
            at_each(runtime.cudaDeviceDisablePeerAccess, (off,))
            assert made
        finally:
            already = runtime.cudaError_t.cudaErrorPeerAccessAlreadyEnabled
            at_each(
                lambda other: runtime.cudaDeviceEnablePeerAccess(other, 0), (runtime.cudaError_t.cudaSuccess, already)
            )
            cuda._has_peer.cache_clear()


def test_without_peer_access_bits_are_the_same(cp: Any) -> None:
    from tests.mesh.test_lattices import case, follow

    if not cp.cuda.runtime.deviceCanAccessPeer(0, 1):
        pytest.skip("these GPUs have no peer access to switch off")
    mesh, c = lw.Mesh(["cuda:0", "cuda:1"]), case(301, "cuda:0")

    def left() -> list[Any]:
        b: Any = bodies(20_011, mesh)  # pyright: ignore[reportArgumentType]
        return [gravity(b, b, softening2=1e-2).numpy(), *follow(c, mesh)]

    wanted = left()
    with without_peer_access(cp):
        for found, want in zip(left(), wanted, strict=True):
            np.testing.assert_array_equal(found, want)
        b: Any = bodies(1000, mesh)  # pyright: ignore[reportArgumentType]
        said = str(gravity.compile(b, b, softening2=1e-2).explain(measure_resources=False))
        assert "through the host, no peer access" in said
    for found, want in zip(left(), wanted, strict=True):
        np.testing.assert_array_equal(found, want)


def test_links_have_a_rate(cp: Any) -> None:
    from lanewise.runtime.links import copy_rate

    before = cp.cuda.runtime.getDevice()
    for pair in (("cuda", "cuda:1"), ("cuda:1", "cuda"), ("cuda", "cpu"), ("cpu", "cuda:1")):
        assert 1e9 < copy_rate(*pair) < 1e13
    assert cp.cuda.runtime.getDevice() == before


@pytest.mark.parametrize("seed", range(300, 312))
def test_flows_on_two_gpus_have_the_bits_of_one(cp: Any, seed: int) -> None:
    from tests.mesh.test_lattices import case, follow

    c = case(seed, "cuda:0")
    wanted = follow(c, "cuda:0")
    for devices in (["cuda:0", "cuda:1"], ["cuda:1", "cuda:0", "cuda:1"]):
        for number in (0, 1):
            with cp.cuda.Device(number):
                for one, other in zip(follow(c, lw.Mesh(devices)), wanted, strict=True):
                    np.testing.assert_array_equal(one, other, err_msg=str(c))


@pytest.mark.parametrize("streaming", ["pull", "push", "in-place"])
@pytest.mark.parametrize("storage", ["f16", "f32"])
def test_a_large_flow_on_two_gpus_has_the_bits_of_one(cp: Any, streaming: str, storage: str) -> None:
    from lanewise.sims.lbm import Simulation

    def run(device: Any) -> list[Any]:
        s = Simulation(
            shape=(130, 96, 128), omega=1.7, collision="trt", storage=storage, streaming=streaming, device=device,
            edges={"y": "wall", "z": ("wall", "lid")},
            kinds={1: lw.sims.lbm.Wall("wall"), 2: lw.sims.lbm.Wall("lid", velocity=(0.1, 0.0, 0.0))},
        )  # fmt: skip
        s.run(200)
        return [s.density.get(), s.velocity.get(), s.force_on("lid"), s.mass]

    for one, other in zip(run("cuda:0,1"), run("cuda:0"), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("count", [6_001, 20_000, 70_001])
@pytest.mark.parametrize("accumulate", [None, "f64"])
def test_parts_share_pairs_with_the_bits_of_one_gpu(cp: Any, count: int, accumulate: Any) -> None:
    """Each pair is computed once for both bodies, on any GPUs, and when other devices are current."""
    plan = lw.Plan(reciprocity="grouped", accumulate=accumulate)

    def left(place: str) -> list[Any]:
        b = bodies(count, place)
        force: Any = gravity.bind(b, b, softening2=1e-2, plan=plan)
        found = [np.asarray(force().get() if place == "cuda" else force().numpy()) for _ in range(2)]
        np.testing.assert_array_equal(found[0], found[1])
        return found

    wanted = left("cuda")
    exact = gravity.bind(b := bodies(count, "cuda"), b, softening2=1e-2, plan=lw.Plan(reciprocity="off"))().get()
    np.testing.assert_allclose(wanted[0], exact, rtol=2e-3, atol=2e-5 * np.abs(exact).max())
    for number, place in ((0, "cuda:0*1"), (0, "cuda:0*3"), (0, "cuda:0,1"), (1, "cuda:1,0"), (1, "cuda:*")):
        with cp.cuda.Device(number):
            np.testing.assert_array_equal(left(place)[0], wanted[0])
    default = gravity.bind(b := bodies(count, "cuda:0,1"), b, softening2=1e-2).compiled.plan
    assert default.reciprocity == "grouped"

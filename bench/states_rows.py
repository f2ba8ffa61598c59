"""The calls that `bench.states` compares, and the process that runs them for one state.

Only names that both states have: this file is run by both.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.ladders.compiler_kernels import histogram, matmul, softmax, total, transpose

Made = tuple[Callable[[], Any], Callable[[], Any]]  # what is timed; what it computed


class Body(lw.Record):
    """A point mass."""

    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32


class Body64(lw.Record):
    """The same in float64."""

    position: lw.dvec3
    mass: lw.f64


@lw.pairwise
def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


@lw.pairwise
def gravity64(target: Body64, source: Body64, softening2: lw.f64) -> lw.dvec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


@lw.pairwise
def gauss(target: Body, source: Body) -> lw.f32:
    d = source.position - target.position
    return source.mass * lw.exp(-lw.dot(d, d))


@lw.pairwise
def lennard_jones(target: Body, source: Body, cutoff2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    r2 = lw.dot(d, d)
    if lw.same(target, source) or r2 >= cutoff2:
        return lw.vec3(0, 0, 0)
    s2 = 1.0 / r2
    s6 = s2 * s2 * s2
    return (48.0 * s6 - 24.0) * s6 * s2 * d


@lw.elementwise
def kick_drift(body: Body, dt: lw.f32):
    body.velocity -= body.position * dt
    body.position += body.velocity * dt


@lw.elementwise
def total_mass(body: Body) -> lw.f32:
    return body.mass * lw.dot(body.velocity, body.velocity)


@lw.elementwise
def draw(body: Body, step: lw.i32):
    body.velocity = lw.vec3(
        lw.normal(3, step, lw.index_of(body)), lw.random(4, step, lw.index_of(body)), 0.0
    )


@lw.threadwise
def rows(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array1[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k]
    c[y] = s


@lw.threadwise
def columns(x: lw.index, a: lw.Array2[lw.f32], c: lw.Array1[lw.f32]):
    s = 0.0
    for k in range(a.shape[0]):
        s += a[k, x]
    c[x] = s


@lw.threadwise
def heat(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    h, w = a.shape
    if 0 < y < h - 1 and 0 < x < w - 1:
        around = a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1]
        c[y, x] = a[y, x] + 0.1 * (around - 4.0 * a[y, x])


def host(value: Any) -> Any:
    return value.get() if hasattr(value, "get") else np.asarray(value)


def some(value: Any) -> list[float]:
    """Every so many numbers of a result, float64."""
    numbers = np.asarray(host(value), np.float64).ravel()
    return numbers[:: max(1, len(numbers) // 64)][:64].tolist()


def bodies(count: int, device: str, record: Any = Body, edge: float = 1.0) -> Any:
    rng = np.random.default_rng(1)
    fields = {"position": rng.random((count, 3)) * edge, "mass": rng.random(count)}
    if record is Body:
        fields["velocity"] = rng.standard_normal((count, 3))
    kind = np.float32 if record is Body else np.float64
    return record.array(**{k: v.astype(kind) for k, v in fields.items()}, device=device)


def on(device: str, *arrays: Any) -> list[Any]:
    if device == "cpu":
        return list(arrays)
    import cupy

    return [cupy.asarray(a) for a in arrays]


def bound(call: Any) -> Made:
    return call, lambda: call.results[0] if hasattr(call, "results") else call()


def pairs(kernel: Any, count: int, device: str, *values: float, record: Any = Body) -> Made:
    array = bodies(count, device, record)
    call = kernel.bind(array, array, *values)
    return call, call


def over_grid(count: int, device: str) -> Made:
    array = bodies(count, device, edge=float(count) ** (1 / 3))
    call = lennard_jones.using(lw.Neighbors(radius=2.0)).bind(array, array, 4.0)
    return call, call


def grid_plain(count: int, device: str) -> Made:
    array = bodies(count, device, edge=float(count) ** (1 / 3))
    kernel = lennard_jones.using(lw.Neighbors(radius=2.0))
    return lambda: kernel(array, array, 4.0), lambda: kernel(array, array, 4.0)


def element(kernel: Any, count: int, device: str, layout: Any, *values: float) -> Made:
    array = bodies(count, device).with_layout(layout)
    call = kernel.bind(array, *values)
    if kernel is total_mass:
        return call, call
    return call, lambda: (call(), array.velocity)[1]


def array_kernel(kernel: Any, grid: tuple[int, ...], device: str, *shapes: Any) -> Made:
    rng = np.random.default_rng(2)
    arrays = on(device, *(rng.random(s, np.float32) for s in shapes))
    call = kernel.bind(*arrays, grid=grid)
    return call, lambda: (call(), arrays[-1])[1]


def summed(n: int, device: str) -> Made:
    (a,) = on(device, np.random.default_rng(2).random((n, n), np.float32))
    call = total.bind(a, grid=(n, n))
    return call, call


def counted(n: int, device: str) -> Made:
    rng = np.random.default_rng(2)
    places, counts = on(device, rng.integers(0, 4096, n).astype(np.int32), np.zeros(4096, np.int32))
    call = histogram.bind(places, counts, grid=(n,))

    def result() -> Any:
        counts[...] = 0
        call()
        return counts

    return call, result


def gradient(count: int, device: str) -> Made:
    array = bodies(count, device)
    call = gauss.gradient(wrt="position").bind(array, array)
    return call, call


def leapfrog(count: int, steps: int, device: str) -> Made:
    from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions

    made = make_bodies(make_initial_conditions("plummer", count, 1), device=device)
    simulation = Simulation(made, softening=0.02)
    simulation.advance(steps, 1e-5)
    first = some(simulation.acceleration)
    return lambda: simulation.advance(steps, 1e-5), lambda: first


def flock(agents: int, search: str, steps: int, device: str) -> Made:
    from lanewise.sims.boids import Flock

    made = Flock(agents=agents, start="world", world=200.0 * (agents / 2**17) ** (1 / 3),
                 semantics="thesis", k=7, search=search, seed=1, device=device)  # fmt: skip
    made.advance(steps)
    first = some(made.state.position)
    return lambda: made.advance(steps), lambda: first


def flow(lattice: str, shape: tuple[int, ...], steps: int, device: str, **options: Any) -> Made:
    from lanewise.sims.lbm import Simulation

    rng = np.random.default_rng(1)
    velocity = (rng.standard_normal((*shape[::-1], len(shape))) * 1e-3).astype(np.float32)
    made = Simulation(shape=shape, lattice=lattice, omega=1.7, velocity=velocity,
                      edges={"y": "wall"}, device=device, **options)  # fmt: skip
    made.run(steps)
    first = some(made.velocity)
    return lambda: made.run(steps), lambda: first


def search(device: str) -> Made:
    import tempfile

    from lanewise.sims import waves

    starts = 1238166018 + 1800 * np.arange(45)
    with tempfile.TemporaryDirectory() as folder:
        made = waves.make_data({"H1": starts, "L1": starts}, (99.8, 100.4),
                               sqrt_s={"H1": 1e-23, "L1": 1e-23}, seed=1)  # fmt: skip
        waves.write_sfts(folder, made)
        sfts = waves.load_sfts(f"{folder}/*.sft", (99.95, 100.25), margin=waves.search_margin())
    data, ephemeris = waves.prepare(sfts, (99.95, 100.25)), waves.Ephemeris.load("DE405")
    templates = waves.Templates(100.0 + 1e-5 * np.arange(20_000), 2.0, 0.3,
                                reference=1238166018 * 10**9)  # fmt: skip

    def run() -> Any:
        return waves.f_statistic(data, templates, ephemeris, device=device)

    return run, lambda: run().two_f[0]


def nearest(count: int, device: str) -> Made:
    (points,) = on(device, np.random.default_rng(1).random((count, 3), np.float32))

    def run() -> Any:
        return lw.nearest(points, k=8)

    return run, lambda: run()[1]


def listed(count: int, device: str) -> Made:
    (points,) = on(device, np.random.default_rng(1).random((count, 3), np.float32))
    radius = (8 / count) ** (1 / 3)

    def run() -> Any:
        return lw.neighbors(points, radius=radius)

    return run, lambda: run().offsets


def plain(kernel: Any, count: int, device: str, *values: float) -> Made:
    array = bodies(count, device)
    return lambda: kernel(array, array, *values), lambda: kernel(array, array, *values)


def table(device: str) -> dict[str, Callable[[], Made]]:
    """Every row by its name."""
    gpu = device == "cuda"
    n, m = (65_536, 2_048) if gpu else (8_192, 512)
    many = 2**22 if gpu else 2**20
    side = 4_096 if gpu else 1_024
    small, large = (1_024, 16_384) if gpu else (512, 2_048)
    agents = 2**20 if gpu else 2**15
    made: dict[str, Callable[[], Made]] = {
        f"gravity, {k:,} f32": lambda k=k: pairs(gravity, k, device, 1e-4)
        for k in (small, large, n)
    }
    made |= {
        f"gravity, {large:,} f64": lambda: pairs(gravity64, large, device, 1e-4, record=Body64),
        f"Gaussian sum, {large:,}": lambda: pairs(gauss, large, device),
        f"gradient of it, {large:,}": lambda: gradient(large, device),
        f"Lennard-Jones over a grid, {n:,}": lambda: over_grid(n, device),
        f"the same, {n:,}, a plain call": lambda: grid_plain(n, device),
        f"gravity, {small:,}, a plain call": lambda: plain(gravity, small, device, 1e-4),
        f"kick and drift, {many:,}, SoA": lambda: element(kick_drift, many, device, lw.SoA(), 1e-6),
        f"kick and drift, {many:,}, AoS": lambda: element(kick_drift, many, device, lw.AoS(), 1e-6),
        f"an element's result, {many:,}": lambda: element(total_mass, many, device, lw.SoA()),
        f"normal numbers, {many:,}": lambda: element(draw, many, device, lw.SoA(), 3),
        f"product, {m} squared": lambda: array_kernel(matmul, (m, m), device, *[(m, m)] * 3),
        f"transpose, {side} squared": lambda: array_kernel(
            transpose, (side, side), device, *[(side, side)] * 2
        ),
        f"sums of rows, {side} squared": lambda: array_kernel(
            rows, (side,), device, (side, side), (side,)
        ),
        f"sums of columns, {side} squared": lambda: array_kernel(
            columns, (side,), device, (side, side), (side,)
        ),
        f"softmax, {side} squared": lambda: array_kernel(
            softmax, (side,), device, *[(side, side)] * 2
        ),
        f"heat, {side} squared": lambda: array_kernel(
            heat, (side, side), device, *[(side, side)] * 2
        ),
        f"a sum of all, {side} squared": lambda: summed(side, device),
        f"histogram, {many:,}": lambda: counted(many, device),
        f"leapfrog, {large:,}, 16 steps": lambda: leapfrog(large, 16, device),
        f"leapfrog, {small:,}, 64 steps": lambda: leapfrog(small, 64, device),
        f"flock, {agents:,}, static grid": lambda: flock(agents, "static-grid", 32, device),
        f"flock, {agents:,}, dynamic grid": lambda: flock(agents, "dynamic-grid", 32, device),
        f"flock, {agents // 64:,}, auto": lambda: flock(agents // 64, "auto", 64, device),
        f"nearest 8, {agents // 8:,}": lambda: nearest(agents // 8, device),
        f"lists of neighbours, {agents // 8:,}": lambda: listed(agents // 8, device),
        "F-statistic, 20,000 templates": lambda: search(device),
    }
    box = (256, 256, 256) if gpu else (64, 64, 64)
    plane = (4096, 4096) if gpu else (512, 512)
    storages = ("f32", "f16") if gpu else ("f32",)
    made |= {
        f"D3Q19 {s} {way}, {box[0]} cubed": lambda s=s, way=way: flow(
            "D3Q19", box, 32, device, storage=s, streaming=way
        )
        for s in storages
        for way in ("pull", "in-place")
    }
    made |= {
        f"D2Q9 {way}, {plane[0]} squared": lambda way=way: flow(
            "D2Q9", plane, 32, device, streaming=way
        )
        for way in ("pull", "in-place")
    }
    return made


def synchronize(device: str) -> None:
    if device == "cuda":
        import cupy

        cupy.cuda.Device().synchronize()


def timed(call: Callable[[], Any], seconds: float, device: str) -> float:
    """Seconds of a call, of as many in a row as fill the time."""
    begin, count = time.perf_counter(), 0
    synchronize(device)
    begin = time.perf_counter()
    call()
    synchronize(device)
    once = time.perf_counter() - begin
    count = max(1, min(2_000, round(seconds / max(once, 1e-7))))
    begin = time.perf_counter()
    for _ in range(count):
        call()
    synchronize(device)
    return (time.perf_counter() - begin) / count


def main() -> None:
    device, answers = sys.argv[1], sys.stdout
    sys.stdout = sys.stderr  # what the library prints is no answer
    known, call = table(device), None
    for line in sys.stdin:
        message = json.loads(line)
        if "rows" in message:
            answer: dict[str, Any] = {"rows": list(known)}
        elif "prepare" in message:
            call = None
            try:
                begin = time.perf_counter()
                call, result = known[message["prepare"]]()
                answer = {"result": some(result())}
                answer["first"] = time.perf_counter() - begin
            except Exception as problem:  # a row that one state cannot run says so
                answer = {"error": f"{type(problem).__name__}: {problem}"}
        else:
            assert call is not None
            answer = {"seconds": timed(call, message["measure"], device)}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()

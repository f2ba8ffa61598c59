"""How fast do stencils and Shan-Chen's two phases run on this GPU, beside a copy and beside flow of
one phase?

`python -m bench.gpu_stencil [--quick]` writes bench/results/gpu_stencil.{md,json}, or into the
folder that the variable OUT names. Every version of a stencil is held against array expressions in
float64 before it is timed: ten steps of a small box by NumPy, with the plan of the large one, and a
step of the large one by CuPy. Flows are held against the CPU. Rounds go through all versions in
turn, the copy of the same bytes among them; times are medians.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import describe_machine, interleave
from lanewise.runtime import cuda

ROUNDS, SECONDS = 9, 0.03


@lw.stencil(lw.D2Q5)
def heat2(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
    return t[0] + rate * (t[1] + t[2] + t[3] + t[4] - 4 * t[0])


@lw.stencil(lw.D3Q7)
def heat3(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
    return t[0] + rate * (t[1] + t[2] + t[3] + t[4] + t[5] + t[6] - 6 * t[0])


@lw.stencil(lw.D1Q3)
def heat1(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
    return t[0] + rate * (t[1] + t[2] - 2 * t[0])


@lw.stencil(lw.D2Q5)
def react(
    u: lw.Field[lw.f32], v: lw.Field[lw.f32], feed: lw.f32, kill: lw.f32
) -> tuple[lw.f32, lw.f32]:
    spread_u = u[1] + u[2] + u[3] + u[4] - 4 * u[0]
    spread_v = v[1] + v[2] + v[3] + v[4] - 4 * v[0]
    eaten = u[0] * v[0] * v[0]
    return u[0] + 0.2 * spread_u - eaten + feed * (1 - u[0]), v[0] + 0.1 * spread_v + eaten - (
        feed + kill
    ) * v[0]


@lw.function
def sums(f):
    density, momentum = lw.f32(0), lw.vec2(0)
    for q in lw.D2Q9:
        density += f[q]
        momentum += f[q] * q.velocity
    return density, momentum


@lw.sitewise(lw.D2Q9)
def one_phase(f: lw.populations, omega: lw.f32):
    density, momentum = sums(f)
    u = momentum / density
    for q in lw.D2Q9:
        c = q.along(u)
        f[q] += omega * (q.weight * density * (1 + 3 * c + 4.5 * c * c - 1.5 * lw.dot(u, u)) - f[q])


@lw.sitewise(lw.D2Q9)
def two_phases(f: lw.populations, psi: lw.Field[lw.f32], omega: lw.f32, attraction: lw.f32):
    density, momentum = sums(f)
    force = lw.vec2(0)
    for q in lw.D2Q9:
        force -= attraction * psi[0] * q.weight * psi[q] * q.velocity
    u = (momentum + force / omega) / density
    for q in lw.D2Q9:
        c = q.along(u)
        f[q] += omega * (q.weight * density * (1 + 3 * c + 4.5 * c * c - 1.5 * lw.dot(u, u)) - f[q])


@two_phases.field("psi")
def potential(f: lw.populations) -> lw.f32:
    density, _ = sums(f)
    return 1 - lw.exp(-density)


@lw.stencil(lw.D2Q5)
def heat2_f64(t: lw.Field[lw.f64], rate: lw.f64) -> lw.f64:
    return t[0] + rate * (t[1] + t[2] + t[3] + t[4] - 4 * t[0])


@lw.stencil(lw.D3Q7)
def heat3_f64(t: lw.Field[lw.f64], rate: lw.f64) -> lw.f64:
    return t[0] + rate * (t[1] + t[2] + t[3] + t[4] + t[5] + t[6] - 6 * t[0])


@lw.stencil(lw.D2Q5)
def jacobi(t: lw.Field[lw.f32]) -> lw.f32:
    return 0.25 * (t[1] + t[2] + t[3] + t[4])


@lw.stencil(lw.D2Q9)
def smooth2(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
    mean = lw.f32(0)
    for q in lw.D2Q9:
        mean += q.weight * t[q]
    return t[0] + rate * (mean - t[0])


@lw.stencil(lw.D3Q19)
def smooth3(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
    mean = lw.f32(0)
    for q in lw.D3Q19:
        mean += q.weight * t[q]
    return t[0] + rate * (mean - t[0])


def diffused(t: Any, at: Any, rate: float) -> tuple[Any, ...]:
    """Of heat in arrays: `at(a, q)` is what lies in direction q."""
    directions = range(1, 2 * t.ndim + 1)
    return (t + rate * (sum(at(t, q) for q in directions) - len(directions) * t),)


def averaged(t: Any, at: Any) -> tuple[Any, ...]:
    return (0.25 * sum(at(t, q) for q in range(1, 5)),)


def smoothed(t: Any, at: Any, rate: float) -> tuple[Any, ...]:
    lattice = {2: lw.D2Q9, 3: lw.D3Q19}[t.ndim]
    return (t + rate * (sum(float(q.weight) * at(t, q.index) for q in lattice) - t),)


def reacted(u: Any, v: Any, at: Any, feed: float, kill: float) -> tuple[Any, ...]:
    spread_u, spread_v = (sum(at(a, q) for q in range(1, 5)) - 4 * a for a in (u, v))
    return u + 0.2 * spread_u - u * v * v + feed * (1 - u), v + 0.1 * spread_v + u * v * v - (
        feed + kill
    ) * v


STENCILS: dict[str, tuple[Any, dict[str, float], Callable[..., tuple[Any, ...]]]] = {
    "heat, D1Q3": (heat1, {"rate": 0.3}, diffused),
    "heat, D2Q5": (heat2, {"rate": 0.2}, diffused),
    "heat, D2Q5, float64": (heat2_f64, {"rate": 0.2}, diffused),
    "Jacobi, D2Q5": (jacobi, {}, averaged),
    "smoothing, D2Q9": (smooth2, {"rate": 0.5}, smoothed),
    "heat, D3Q7": (heat3, {"rate": 0.1}, diffused),
    "heat, D3Q7, float64": (heat3_f64, {"rate": 0.1}, diffused),
    "smoothing, D3Q19": (smooth3, {"rate": 0.5}, smoothed),
    "Gray-Scott, D2Q5": (react, {"feed": 0.03, "kill": 0.06}, reacted),
}
FLOWS: dict[str, tuple[Any, dict[str, float]]] = {
    "one phase, D2Q9": (one_phase, {"omega": 1.0}),
    "Shan-Chen, D2Q9": (two_phases, {"omega": 1.0, "attraction": -5.0}),
}
COPY = """extern "C" __global__ void copy(const float4 *from, float4 *to, long long count)
{ const long long i = blockIdx.x * 256LL + threadIdx.x; if (i < count) to[i] = from[i]; }"""


def check_stencil(name: str, sites: Any, plan: Any, storage: str, steps: int, xp: Any) -> float:
    """The largest difference of some steps from array expressions in float64, of NumPy or CuPy."""
    kernel, values, formula = STENCILS[name]
    rng, velocities = np.random.default_rng(1), kernel.lattice.velocities
    # so little reacts slowly
    begin = {n: 0.3 * rng.random(sites.shape, np.float32) for n in kernel.fields}
    begin = {n: a.astype(storage_type(storage)) for n, a in begin.items()}
    kernel.set_fields(sites, **begin)
    kernel.run(sites, steps, plan=plan, **values)
    arrays = tuple(xp.asarray(a).astype(xp.float64) for a in begin.values())

    def at(a: Any, q: int) -> Any:
        return xp.roll(a, tuple(-c for c in reversed(velocities[q])), tuple(range(a.ndim)))

    for _ in range(steps):
        arrays = formula(*arrays, at, **values)
    worst = 0.0
    for n, expected in zip(kernel.fields, arrays, strict=True):
        found = kernel.field(sites, n)
        worst = max(worst, float(abs((found.get() if xp is np else found) - expected).max()))
    limit = {"f16": 1e-2, "f32": 1e-5, "f64": 1e-13}[storage]
    if not worst < limit:
        raise ValueError(f"{name}: wrong by {worst:.1e}")
    return worst


def storage_type(storage: str) -> Any:
    return {"f16": np.float16, "f32": np.float32, "f64": np.float64}[storage]


def begin_flow(shape: tuple[int, int]) -> Any:
    """Populations at rest of a density that separates."""
    weights = np.array([q.weight for q in lw.D2Q9], np.float32).reshape(9, 1, 1)
    return weights * (0.7 + 0.05 * np.random.default_rng(1).random(shape, np.float32))


def check_flow(name: str, storage: str, plan: Any) -> float:
    flow, values = FLOWS[name]
    found = []
    for device, stored in (("cuda", storage), ("cpu", "f32")):
        sites = flow.sites((96, 128), device=device, storage=stored)
        flow.set_populations(sites, begin_flow((96, 128)))
        flow.run(sites, 30, plan=plan if device == "cuda" else None, **values)
        found.append(flow.populations(sites))
    error = float(np.abs(found[0] - found[1]).max() / np.abs(found[1]).max())
    if not error < (3e-2 if storage == "f16" else 1e-4):
        raise ValueError(f"{name}: wrong by {error:.1e}")
    return error


def timed(run: Callable[[int], None]) -> Callable[[], None]:
    """So many steps that they take a while."""
    run(4)
    cuda.synchronize("cuda:0")
    begin = time.perf_counter()
    run(16)
    steps = max(4, 2 * int(SECONDS / 2 / ((time.perf_counter() - begin) / 16)))
    run(steps)
    call = lambda: run(steps)  # noqa: E731
    call.steps = steps  # type: ignore[attr-defined]
    return call


def copy_of(nbytes: int) -> Callable[[int], None]:
    """Copies of an array of that many bytes, there and back."""
    cupy = cuda.cupy()
    kernel, count = cupy.RawKernel(COPY, "copy"), nbytes // 16
    arrays = [cupy.zeros(nbytes // 4, cupy.float32) for _ in range(2)]

    def run(steps: int) -> None:
        for n in range(steps):
            kernel((-(-count // 256),), (256,), (arrays[n % 2], arrays[1 - n % 2], np.int64(count)))
        cupy.cuda.Device().synchronize()

    return run


def compare(
    versions: dict[str, tuple[Callable[[int], None], float]], sites: int
) -> list[dict[str, Any]]:
    """A row for each version: (what runs, bytes of a step), the first the copy."""
    calls = {name: timed(run) for name, (run, _) in versions.items()}
    times = interleave(calls, ROUNDS)
    seconds = {name: statistics.median(times[name]) / calls[name].steps for name in versions}  # type: ignore[attr-defined]
    copied = next(iter(versions))
    bandwidth = versions[copied][1] / seconds[copied]
    return [
        {
            "name": name,
            "us": seconds[name] * 1e6,
            "GSites/s": sites / seconds[name] / 1e9,
            "GB/s": nbytes / seconds[name] / 1e9,
            "share of the copy": nbytes / seconds[name] / bandwidth,
        }
        for name, (_, nbytes) in versions.items()
    ]


def stencil_rows(
    name: str, shape: tuple[int, ...], plans: dict[str, Any], storage: str = "f32"
) -> list[dict[str, Any]]:
    kernel, values, _ = STENCILS[name]
    # that groups of rows and layers do not divide
    small = {1: (4096,), 2: (98, 128), 3: (26, 42, 64)}[len(shape)]
    size, count = {"f16": 2, "f32": 4, "f64": 8}[storage], int(np.prod(shape))
    nbytes = 2 * size * count * len(kernel.fields)
    box = " x ".join(map(str, reversed(shape)))
    versions: dict[str, tuple[Callable[[int], None], float]] = {
        f"copy, {nbytes // 2 >> 20} MiB": (copy_of(nbytes // 2), nbytes)
    }
    sites = kernel.sites(shape, device="cuda", storage=storage)
    for label, plan in plans.items():
        used = kernel.compile(sites, plan=plan, **values).plan
        if shape[-1] % 4 == 0:
            check_stencil(
                name, kernel.sites(small, device="cuda", storage=storage), used, storage, 10, np
            )
        error = check_stencil(name, sites, plan, storage, 1, cuda.cupy())
        stepper = kernel.stepper(sites, plan=plan, **values)
        sites_a_thread = " x ".join(
            str(n) for n in (used.targets, used.rows, used.layers)[: len(shape)]
        )
        versions[
            f"{name}, {box}, {storage}, {label} ({sites_a_thread} sites a thread), off by "
            f"{error:.0e}"
        ] = (
            stepper.run,
            nbytes,
        )
    return compare(versions, count)


def flow_rows(side: int, plans: dict[str, Any], storage: str = "f32") -> list[dict[str, Any]]:
    size, count = {"f16": 2, "f32": 4}[storage], side * side
    base = 2 * 9 * size * count
    versions: dict[str, tuple[Callable[[int], None], float]] = {
        f"copy, {base // 2 >> 20} MiB": (copy_of(base // 2), base)
    }
    line = begin_flow((1, side))
    for name, (flow, values) in FLOWS.items():
        for label, plan in plans.items():
            if plan is not None and flow is one_phase:
                continue
            error = check_flow(name, storage, plan)
            sites = flow.sites((side, side), device="cuda", storage=storage)
            for q in range(9):
                setattr(
                    sites.current,
                    f"q{q}",
                    cuda.cupy().asarray(np.tile(line[q, 0].astype(sites.storage.dtype), side)),
                )
            nbytes = base if flow is one_phase else base + base / 2 + 8 * count
            versions[f"{name}, {side}^2, {storage}, {label}, off by {error:.0e}"] = (
                flow.stepper(sites, plan=plan, **values).run,
                nbytes,
            )
    return compare(versions, count)


def main() -> None:
    quick = "--quick" in sys.argv
    default = {"default": None}
    row = default | {"sites of a row": lw.Plan(targets=4)}
    groups = [
        lambda: stencil_rows("heat, D2Q5", (8192, 8192), row),
        lambda: stencil_rows("heat, D3Q7", (512, 512, 512), row),
        lambda: stencil_rows("heat, D2Q5, float64", (8192, 8192), default, "f64"),
        lambda: stencil_rows("heat, D3Q7, float64", (512, 512, 512), default, "f64"),
        lambda: stencil_rows("smoothing, D2Q9", (8192, 8192), row),
        lambda: stencil_rows("smoothing, D3Q19", (512, 512, 512), row),
        lambda: stencil_rows("Jacobi, D2Q5", (8192, 8192), row),
        lambda: stencil_rows("Gray-Scott, D2Q5", (8192, 8192), row),
        lambda: stencil_rows("heat, D2Q5", (8191, 8191), default),
        lambda: stencil_rows("heat, D2Q5", (8192, 8192), default, "f16"),
        lambda: stencil_rows("heat, D3Q7", (511, 509, 500), default),
    ]
    if not quick:
        groups += [
            lambda: flow_rows(8192, default | {"targets=1": lw.Plan(targets=1)}),
            lambda: flow_rows(8192, default, "f16"),
            lambda: stencil_rows("heat, D1Q3", (1 << 26,), default),
        ]
    done: list[list[dict[str, Any]]] = []
    for group in groups:  # what was measured is written at once
        done.append(group())
        print(write(done))


def write(groups: list[list[dict[str, Any]]]) -> str:
    """The table as text; it is also a file, beside the same numbers as JSON."""
    folder = Path(os.environ.get("OUT", "bench/results"))
    machine = describe_machine()
    lines = ["# Stencils and fields at neighbours on a GPU", ""]
    lines += [
        "| version | us a step | GSites/s | GB/s | share of the copy |",
        "|---|---:|---:|---:|---:|",
    ]
    for rows in groups:
        for r in rows:
            numbers = (
                f"{r['us']:.1f} | {r['GSites/s']:.1f} | {r['GB/s']:.0f} | "
                f"{r['share of the copy']:.3f}"
            )
            lines.append(f"| {r['name']} | {numbers} |")
    lines += ["", *(f"- {k}: {v}" for k, v in machine.items()), ""]
    (folder / "gpu_stencil.md").write_text("\n".join(lines), encoding="utf-8")
    (folder / "gpu_stencil.json").write_text(
        json.dumps({"machine": machine, "groups": groups}, indent=1), encoding="utf-8"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()

"""How fast does lattice Boltzmann flow run on this GPU, for each lattice, storage type, streaming
form and layout?

`python -m bench.gpu_lbm [folder with compiled anchor programs]` writes
bench/results/gpu_lbm.{md,json}. Every version is held against float64 on the CPU, in a small box of
the same rules, before it is timed. The bound is the measured bandwidth of a copy divided by the
bytes that a site reads and writes.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import Measurement, describe_machine, write_results
from lanewise.patterns.sitewise import sites as array
from lanewise.planning.plan import Plan
from lanewise.runtime import cuda
from lanewise.runtime.device import get_device
from lanewise.sims.lbm.obstacles.surfaces import porous
from lanewise.sims.lbm.operators import find_operator

RESULT = Path("bench/results/gpu_lbm.md")
WALL, LID = 2, 3
SHARE = array.DENSE
ROUNDS = 7


@dataclass(frozen=True, slots=True)
class Case:
    """One row: what is solved, and how."""

    lattice: Any
    shape: tuple[int, ...]
    storage: str = "f32"
    streaming: str = "pull"
    layout: Any = None
    plan: Plan | None = None
    walls: bool = True
    solid_fraction: float = 0.0
    radius: float = 8.0  # of the grains
    operator: str = "bgk"
    dense: bool = True

    @property
    def name(self) -> str:
        size = "x".join(map(str, reversed(self.shape)))
        parts = [
            self.lattice.name,
            self.storage,
            size,
            self.streaming,
            str(self.layout or "default"),
        ]
        parts += [self.operator] if self.operator != "bgk" else []
        parts += (
            [f"{self.solid_fraction:.0%} solid, grains of {self.radius:g}"]
            if self.solid_fraction
            else []
        )
        parts += [] if self.walls else ["periodic"]
        parts += [] if self.dense else ["marks"]
        parts += [self.plan.short()] if self.plan is not None else []
        return ", ".join(parts)

    @property
    def site_bytes(self) -> int:
        return 2 * self.lattice.size * {"f16": 2, "f32": 4, "f64": 8}[self.storage]


def make_flow(lattice: Any, precision: str, operator: str = "bgk") -> Any:
    flow = lw.sitewise(lattice)(find_operator(operator).make(lattice, precision))
    flow.wall(WALL, "wall")
    flow.wall(LID, "lid", velocity="lid_velocity")
    return flow


def make_sites(case: Case, flow: Any, device: str, storage: str) -> Any:
    array.DENSE = SHARE if case.dense else 2.0
    edges = {"x": "wall", "y": ("wall", "lid"), "z": "wall"} if case.walls else {}
    mask = grains(case.shape, case.solid_fraction, case.radius) if case.solid_fraction else None
    sites = flow.sites(
        case.shape,
        mask=mask,
        edges={a: e for a, e in edges.items() if a in "xyz"[: case.lattice.dimension]},
        storage=storage,
        streaming=case.streaming,
        layout=case.layout if device == "cuda" else None,
        device=device,
    )
    return sites


@lru_cache(1)
def grains(shape: tuple[int, ...], fraction: float, radius: float) -> Any:
    """The mask of overlapping grains; cases that follow each other share it."""
    return (
        porous(shape, solid_fraction=fraction, radius=min(radius, min(shape) / 4)).astype(np.uint8)
        * WALL
    )


def values_of(case: Case) -> dict[str, Any]:
    lid = (0.05,) + (0.0,) * (case.lattice.dimension - 1)
    known = {"trt": {"magic": 3 / 16}}.get(case.operator, {})
    return {"omega": 1.7, "lid_velocity": lid} | known


def check(case: Case) -> float:
    """The largest difference from float64 on the CPU after 30 steps of a small box, relative to the
    largest population.
    """
    small = replace(case, shape=(24, 40, 128) if case.lattice.dimension == 3 else (520, 128))
    start = np.random.default_rng(1).standard_normal((case.lattice.size, *small.shape)) * 1e-3
    found = []
    for device, precision, storage in (("cuda", "f32", case.storage), ("cpu", "f64", "f64")):
        flow = make_flow(case.lattice, precision, case.operator)
        sites = make_sites(small, flow, device, storage)
        flow.set_populations(
            sites,
            np.where(sites.kinds == 0, start, 0.0).astype("f4" if precision == "f32" else "f8"),
        )
        flow.run(sites, 30, plan=case.plan if device == "cuda" else None, **values_of(small))
        found.append(flow.populations(sites, lid_velocity=values_of(small)["lid_velocity"]))
    error = float(np.abs(found[0] - found[1]).max() / np.abs(found[1]).max())
    if not error < (2e-2 if case.storage == "f16" else 1e-4):
        raise ValueError(f"{case.name}: wrong by {error:.1e}")
    return error


def prepare(case: Case) -> tuple[Callable[[int], None], Any]:
    flow = make_flow(case.lattice, "f32", case.operator)
    sites = make_sites(case, flow, "cuda", case.storage)
    random = cuda.cupy().random.default_rng(1)
    line = random.standard_normal(sites.count, dtype=np.float32) * 1e-3
    for q in range(case.lattice.size):
        setattr(sites.current, f"q{q}", line.astype(sites.storage.dtype))
    stepper = flow.stepper(sites, plan=case.plan, **values_of(case))
    stepper.run(2 * 32 + 1)  # graphs are made, and the first step is behind
    return stepper.run, sites


CASES = (
    Case(lw.D3Q19, (256, 512, 512)),
    Case(lw.D3Q19, (256, 512, 512), streaming="in-place"),
    Case(lw.D3Q19, (256, 512, 512), layout=lw.SoA()),
    Case(lw.D3Q19, (256, 512, 512), storage="f16"),
    Case(lw.D3Q19, (256, 512, 512), storage="f16", plan=Plan(targets=1)),
    Case(lw.D3Q19, (256, 512, 512), storage="f16", layout=lw.AoSoA(32), plan=Plan(targets=1)),
    Case(lw.D3Q19, (256, 512, 512), storage="f16", streaming="in-place"),
    Case(lw.D3Q19, (256, 512, 512), storage="f16", layout=lw.SoA()),
    Case(lw.D2Q9, (8192, 8192)),
    Case(lw.D2Q9, (8192, 8192), streaming="in-place"),
    Case(lw.D2Q9, (4096, 4096)),
    Case(lw.D2Q9, (8192, 8192), storage="f16"),
    *(
        Case(lw.D3Q19, (256, 512, 512), solid_fraction=0.3, radius=r)
        for r in (32.0, 24.0, 16.0, 8.0)
    ),
    Case(lw.D3Q19, (256, 512, 512), streaming="in-place", solid_fraction=0.3),
    Case(lw.D3Q19, (256, 512, 512), storage="f16", solid_fraction=0.3),
    Case(lw.D2Q9, (4096, 8192), solid_fraction=0.3, radius=24.0),
    Case(lw.D2Q9, (4096, 8192), solid_fraction=0.3),
    Case(lw.D3Q19, (256, 512, 512), operator="trt"),
    Case(lw.D3Q27, (256, 512, 256)),
)
EXPLORE = (  # what the defaults were chosen from
    *(
        Case(lw.D3Q19, (256, 512, 512), storage="f16", plan=Plan(targets=t, block=b))
        for t, b in ((2, 32), (2, 128), (4, 64))
    ),
    Case(lw.D3Q19, (256, 512, 512), plan=Plan(block=128)),
    Case(lw.D3Q19, (256, 512, 512), streaming="in-place", plan=Plan(block=128)),
    *(Case(lw.D3Q19, (256, 512, 512), solid_fraction=0.3, plan=Plan(block=b)) for b in (64, 128)),
    Case(lw.D3Q19, (256, 512, 512), solid_fraction=0.3, dense=False),
    Case(lw.D3Q19, (256, 512, 512), solid_fraction=0.3, dense=False, plan=Plan(branches="apart")),
)


def main() -> None:
    cases = CASES + (EXPLORE if "--explore" in sys.argv else ())
    bandwidth = copy_kernel_bandwidth()
    notes: dict[str, str] = {"copy": f"{bandwidth / 1e12:.3f} TB/s"}
    errors: dict[Case, float] = {}
    for case in cases:
        try:
            errors[case] = check(case)
        except Exception as problem:  # the other rows are still worth having
            print(f"{case.name}: {type(problem).__name__}: {problem}", flush=True)
    rows = [
        row for part in batches(tuple(errors)) for row in measure(part, errors, bandwidth, notes)
    ]
    small(notes)
    # whatever else happens
    write_results(RESULT, "Lattice Boltzmann flow on one GPU", rows, describe_machine() | notes)
    for program in sys.argv[1:]:
        if not program.startswith("--"):
            notes[Path(program).name] = subprocess.run(
                [program], capture_output=True, text=True, check=False
            ).stdout
    print(
        write_results(RESULT, "Lattice Boltzmann flow on one GPU", rows, describe_machine() | notes)
    )


def batches(cases: tuple[Case, ...]) -> list[list[Case]]:
    """Cases that fit the device together."""
    free = 0.85 * cuda.cupy().cuda.runtime.memGetInfo()[0]
    found: list[list[Case]] = [[]]
    taken = 0.0
    for case in cases:
        need = np.prod(case.shape) * (
            case.site_bytes / (2 if case.streaming == "in-place" else 1) + 8
        )
        if taken + need > free:
            found.append([])
            taken = 0.0
        found[-1].append(case)
        taken += need
    return found


def measure(
    cases: list[Case], errors: dict[Case, float], bandwidth: float, notes: dict[str, str]
) -> list[Measurement]:
    """The rows of some cases, interleaved."""
    began = time.perf_counter()
    prepared = {case: prepare(case) for case in cases}
    print(f"{len(cases)} cases prepared in {time.perf_counter() - began:.0f} s", flush=True)
    steps = {
        c: max(64, round(0.05 * bandwidth / (c.site_bytes * np.prod(c.shape))) // 64 * 64)
        for c in cases
    }
    seconds: dict[Case, list[float]] = {case: [] for case in cases}
    for _ in range(ROUNDS):
        for case, (run, _) in prepared.items():
            start = time.perf_counter()
            run(int(steps[case]))
            seconds[case].append((time.perf_counter() - start) / steps[case])
    rows: list[Measurement] = []
    for case, (_, sites) in prepared.items():
        fluid = sites.count - sites.wall_sites
        row = Measurement(
            case.name, seconds[case], fluid, "fluid sites", bandwidth / case.site_bytes
        )
        notes[case.name] = (
            f"{sites.layout}, {sites.nbytes / sites.count:.2f} bytes a site; relative difference "
            f"from float64 {errors[case]:.1e}"
        )
        print(
            f"{row.rate / 1e6:8.0f} MLUPS {row.rate / row.bound:.3f}  {case.name}  "
            f"{notes[case.name]}",
            flush=True,
        )
        rows.append(row)
    del prepared
    cuda.cupy().get_default_memory_pool().free_all_blocks()
    return rows


def copy_kernel_bandwidth() -> float:
    """Bytes a second of a copy of 4 GiB by a kernel of 16-byte loads and stores, read and written
    bytes together.
    """
    module, nbytes = cuda.cupy(), 4 << 30
    text = """extern "C" __global__ void copy(const float4 *from, float4 *to, long long n)
    { const long long i = blockIdx.x * 256LL + threadIdx.x; if (i < n) to[i] = from[i]; }"""
    kernel = module.RawKernel(text, "copy")
    source, target = module.zeros(nbytes, "u1"), module.zeros(nbytes, "u1")
    timed, count = get_device("cuda").seconds, nbytes // 16
    seconds = [
        timed(lambda: kernel((-(-count // 256),), (256,), (source, target, np.int64(count))))
        for _ in range(ROUNDS + 2)
    ]
    return 2 * nbytes / sorted(seconds)[len(seconds) // 2]


def small(notes: dict[str, str]) -> None:
    """256 x 256 D2Q9: steps in graphs against steps launched one by one from Python."""
    case = Case(lw.D2Q9, (256, 256))
    run, sites = prepare(case)
    flow = make_flow(lw.D2Q9, "f32")
    times: dict[str, list[float]] = {
        "in graphs": [],
        "bound calls one by one": [],
        "step by step from Python": [],
    }
    single = make_sites(case, flow, "cuda", "f32")
    flow(single, **values_of(case))
    flow(single, **values_of(case))
    call = flow.compile(single, **values_of(case))
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run(4096)
        times["in graphs"].append((time.perf_counter() - start) / 4096)
        start = time.perf_counter()
        for _ in range(256):
            flow(single, **values_of(case))
        times["step by step from Python"].append((time.perf_counter() - start) / 256)
        start = time.perf_counter()
        for _ in range(4096):
            call()
        cuda.synchronize("cuda")
        times["bound calls one by one"].append((time.perf_counter() - start) / 4096)
    for name, seconds in times.items():
        middle = sorted(seconds)[len(seconds) // 2]
        notes[f"D2Q9 256x256 {name}"] = (
            f"{middle * 1e6:.2f} us a step, {sites.count / middle / 1e6:.0f} MLUPS"
        )
        print(name, notes[f"D2Q9 256x256 {name}"], flush=True)


if __name__ == "__main__":
    main()

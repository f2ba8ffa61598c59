"""How fast is direct gravity on this GPU, per kernel and per leapfrog step, and what memory does a body take?

`python -m bench.gpu_gravity [folder with compiled anchor programs]` writes bench/results/gpu_gravity.{md,json}.
Results are held against float64
before they are timed. The bound is 13 FP32 issue slots an interaction on every FP32 lane at the maximum clock.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Measurement, describe_machine, write_results
from lanewise.runtime import cuda
from lanewise.runtime.memory import to_host
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions

SLOTS, SOFTENING = 13, 0.02


def check(simulation: Simulation, particles: Any, tolerance: float) -> float:
    """The relative error of some accelerations against float64."""
    chosen = np.linspace(0, len(particles.mass) - 1, 48).astype(int)
    found = to_host(simulation.acceleration)[chosen]
    truth = []
    for i in chosen:
        d = particles.position - particles.position[i]
        weight = particles.mass / ((d * d).sum(axis=1) + SOFTENING**2) ** 1.5
        truth.append((weight[:, None] * d).sum(axis=0))
    error = float(np.linalg.norm(found - np.array(truth)) / np.linalg.norm(truth))
    if not error < tolerance:
        raise ValueError(f"wrong by {error:.2e}, allowed is {tolerance:.0e}")
    return error


def main() -> None:
    rows: list[Measurement] = []
    timed = cuda.timer("cuda")
    versions: dict[str, tuple[Callable[[], Any], float, str]] = {}
    notes: dict[str, str] = {}
    for bodies, precision, steps in (
        (524_288, "f32", 2),
        (65_536, "f32", 8),
        (16_384, "f32", 64),
        (16_384, "mixed", 32),
        (16_384, "f64", 16),
        (1_024, "f32", 256),
    ):
        pool = cuda.cupy().get_default_memory_pool()
        pool.free_all_blocks()
        before = pool.used_bytes()
        particles = make_initial_conditions("plummer", bodies, 1)
        simulation = Simulation(make_bodies(particles, precision=precision, device="cuda"), softening=SOFTENING)
        error = check(simulation, particles, 1e-13 if precision == "f64" else 3e-5)
        simulation.advance(steps, 1e-5)
        simulation.diagnostics()
        name = f"{bodies:,} {precision}"
        force = simulation._force
        notes[name] = (
            f"plan {force.compiled.plan}; {force.compiled.resources}; error {error:.1e}; "
            f"{(pool.used_bytes() - before) / bodies:.1f} bytes a body in use"
        )
        versions[f"{name}: force kernel"] = (force, float(bodies) ** 2, "pairs")
        versions[f"{name}: leapfrog step in a graph ({steps} steps)"] = (
            lambda s=simulation, k=steps: s.advance(k, 1e-5), float(bodies) ** 2 * steps, "pairs",
        )  # fmt: skip
    times: dict[str, list[float]] = {name: [] for name in versions}
    for turn in range(7):
        for name in list(versions)[:: -1 if turn % 2 else 1]:
            work = versions[name][0]
            times[name].append(wall(work) if "graph" in name else timed(work))
    lanes = cuda.multiprocessors("cuda") * 128 * 1.98e9
    rows = [
        Measurement(name, seconds, versions[name][1], versions[name][2], lanes / SLOTS if " f32:" in name else 0.0)
        for name, seconds in times.items()
    ]
    machine = describe_machine()
    machine["bound"] = f"{lanes / SLOTS:.3e} pairs/s in float32 ({SLOTS} issue slots, 1.98 GHz)"
    text = write_results(Path("bench/results/gpu_gravity.md"), "Direct gravity on a GPU", rows, machine | notes)
    print(text)
    for program in sys.argv[1:]:
        output = subprocess.run([program], capture_output=True, text=True, check=False).stdout
        print(f"--- {Path(program).name}\n{output}")


def wall(work: Callable[[], Any]) -> float:
    """Seconds of something that waits for its own end."""
    import time

    cuda.synchronize("cuda")
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

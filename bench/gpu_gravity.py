"""How fast is direct gravity on this GPU, per kernel and per leapfrog step, and what memory does a
body take?

`python -m bench.gpu_gravity [folder with compiled anchor programs]` writes
bench/results/gpu_gravity.{md,json}. Results are held against float64 before they are timed. The
bound of each row is that of its plan's busiest unit.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Measurement, describe_machine, write_results
from lanewise.models.devices import device_model
from lanewise.models.least import least_time
from lanewise.planning.plan import Plan
from lanewise.runtime import cuda
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import to_host
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions

SOFTENING = 0.02
RESULT = Path("bench/results/gpu_gravity.md")


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
    timed = get_device("cuda").seconds
    versions: dict[str, tuple[Callable[[], Any], float, str]] = {}
    notes: dict[str, str] = {}
    bounds: dict[str, float] = {}
    for bodies, precision, steps, plan in (
        (524_288, "f32", 2, None),
        (524_288, "f32", 2, Plan(reciprocity="off", block=512, unroll=32)),
        (65_536, "f32", 8, None),
        (16_384, "f32", 64, None),
        (16_384, "f32", 64, Plan(reciprocity="off")),
        (16_384, "mixed", 32, None),
        (16_384, "f64", 16, None),
        (131_072, "f64", 1, None),
        (1_024, "f32", 256, None),
    ):
        pool = cuda.cupy().get_default_memory_pool()
        pool.free_all_blocks()
        before = pool.used_bytes()
        particles = make_initial_conditions("plummer", bodies, 1)
        bodies_there = make_bodies(particles, precision=precision, device="cuda")
        simulation = Simulation(bodies_there, softening=SOFTENING, plan=plan)
        error = check(simulation, particles, 1e-13 if precision == "f64" else 3e-5)
        simulation.advance(steps, 1e-5)
        simulation.diagnostics()
        name = f"{bodies:,} {precision}" + (" from one side" if plan else "")
        force = simulation._law.gravity
        counts = {"$target.count": bodies, "$source.count": bodies, "softening2": SOFTENING**2}
        bounds[name] = least_time(
            force.compiled.executable.program, counts, device_model("cuda")
        ).seconds
        notes[name] = (
            f"plan {force.compiled.plan.short()}; {force.compiled.resources}; error {error:.1e}; "
            f"{(pool.used_bytes() - before) / bodies:.1f} bytes a body in use"
        )
        versions[f"{name}: force kernel"] = (force, float(bodies) ** 2, "pairs")
        versions[f"{name}: leapfrog step in a graph ({steps} steps)"] = (
            lambda s=simulation, k=steps: s.advance(k, 1e-5),
            float(bodies) ** 2 * steps,
            "pairs",
        )
    times: dict[str, list[float]] = {name: [] for name in versions}
    for turn in range(7):
        for name in list(versions)[:: -1 if turn % 2 else 1]:
            work = versions[name][0]
            times[name].append(wall(work) if "graph" in name else timed(work))
    rows: list[Measurement] = []
    for name, seconds in times.items():
        subject = name.partition(":")[0]
        count = float(subject.split()[0].replace(",", ""))
        rows.append(
            Measurement(
                name, seconds, versions[name][1], versions[name][2], count**2 / bounds[subject]
            )
        )
    machine = describe_machine()
    machine["bound"] = (
        "of the plan's own instructions and bytes (models/roofline.py), at the highest clock"
    )
    text = write_results(RESULT, "Direct gravity on a GPU", rows, machine | notes)
    print(text)
    for program in sys.argv[1:]:
        output = subprocess.run([program], capture_output=True, text=True, check=False).stdout
        text += f"\n{Path(program).name}, run right after:\n\n```text\n{output}```\n"
    RESULT.write_text(text, encoding="utf-8")


def wall(work: Callable[[], Any]) -> float:
    """Seconds of something that waits for its own end."""
    import time

    cuda.synchronize("cuda")
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

"""Steps of a direct sum of gravity on two GPUs beside one: `python -m bench.mesh [--bodies 262144 1048576]`.

Versions take turns in one process: one GPU with its own default plan, which computes each pair once; a
mesh of one part, which takes pairs one way, as every mesh does; two parts on one GPU; two GPUs. Positions
after the same steps have to have the same bits on all meshes. Writes bench/results/mesh_gravity_cuda.md,
or into the folder that the variable OUT names.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path
from typing import Any

import cupy
import numpy as np

import lanewise as lw
from bench.harness import describe_machine

ROUNDS, PAIRS = 5, 3e12  # pairs that a round has at least


class Body(lw.Record):
    """A body, and how it moves."""

    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32


@lw.pairwise
def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


@lw.elementwise
def kick_drift(body: Body, acceleration: lw.vec3, dt: lw.f32):
    body.velocity += acceleration * dt
    body.position += body.velocity * dt


PLACES: dict[str, Any] = {
    "one GPU": "cuda",
    "mesh of one part": "cuda:0*1",
    "two parts on one GPU": "cuda:0*2",
    "two GPUs": "cuda:0,1",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bodies", type=int, nargs="*", default=[1 << 18, 1 << 20])
    lines = [
        "# Direct sums of gravity on meshes, milliseconds a step",
        "",
        f"{describe_machine()}",
        "",
    ]
    lines += [
        f"| bodies | {' | '.join(PLACES)} | two GPUs: share of twice a part | of twice one GPU |"
    ]
    lines += [f"|---:|{'---:|' * (len(PLACES) + 2)}"]
    for count in parser.parse_args().bodies:
        lines.append(_row(count))
        print(lines[-1], flush=True)
    out = Path(os.environ.get("OUT") or Path(__file__).parent / "results")
    (out / "mesh_gravity_cuda.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _row(count: int) -> str:
    rng = np.random.default_rng(1)
    position = rng.standard_normal((count, 3)).astype(np.float32)
    mass = np.full(count, 1 / count, np.float32)
    loops: dict[str, Any] = {}
    left: dict[str, Any] = {}
    for name, place in PLACES.items():
        bodies = Body.array(position=position, mass=mass, device=place)
        force = gravity.bind(bodies, bodies, softening2=1e-4)
        loops[name] = lw.steps([force, kick_drift.bind(bodies, force.results[0], dt=1e-3)])
        loops[name].run(2)
        left[name] = bodies.numpy()["position"].copy()
    meshes = [n for n in PLACES if n != "one GPU"]
    if not all(np.array_equal(left[n], left[meshes[0]]) for n in meshes):
        raise SystemExit(f"{count:,} bodies: the bits of meshes differ")
    steps = max(1, int(PAIRS / count**2))
    times: dict[str, list[float]] = {n: [] for n in PLACES}
    for _ in range(ROUNDS):
        for name, loop in loops.items():
            _settled()
            begin = time.perf_counter()
            loop.run(steps)
            _settled()
            times[name].append((time.perf_counter() - begin) / steps)
    ms = {n: statistics.median(t) * 1e3 for n, t in times.items()}
    two = ms["two GPUs"]
    shares = (ms["mesh of one part"] / two / 2, ms["one GPU"] / two / 2)
    cells = [f"{count:,}", *(f"{ms[n]:.2f}" for n in PLACES), *(f"{100 * s:.1f} %" for s in shares)]
    return f"| {' | '.join(cells)} |"


def _settled() -> None:
    for number in range(cupy.cuda.runtime.getDeviceCount()):
        with cupy.cuda.Device(number):
            cupy.cuda.get_current_stream().synchronize()
            cupy.cuda.Device(number).synchronize()


if __name__ == "__main__":
    main()

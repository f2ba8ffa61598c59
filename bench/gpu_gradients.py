"""Gradients against their forward kernels, in turns: the force of gravity's potential energy, and
of a Lennard-Jones cut-off.

    python bench/gpu_gradients.py [--bodies 65536] [--rounds 15] [--device cuda]
Every round times each kernel once, in turns; the median of the rounds is shown, and the gradient's
time over the forward kernel's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import lanewise as lw


@lw.record
class Body:
    """A place and a mass."""

    position: lw.vec3
    mass: lw.f32


@lw.pairwise
def potential_energy(target: Body, source: Body, softening2: lw.f32) -> lw.f32:
    d = source.position - target.position
    return -0.5 * target.mass * source.mass * lw.rsqrt(lw.dot(d, d) + softening2)


@lw.pairwise
def lennard_jones(target: Body, source: Body, sigma2: lw.f32, cutoff2: lw.f32) -> lw.f32:
    d = source.position - target.position
    r2 = lw.dot(d, d)
    if lw.same(target, source) or r2 >= cutoff2:
        return 0.0
    s2 = sigma2 / r2
    s6 = s2 * s2 * s2
    return 2.0 * (s6 * s6 - s6)


def bodies(n: int, device: str) -> Any:
    """On a jittered grid with a spacing of 1: no two are very near."""
    side = round(n ** (1 / 3) + 0.5)
    rng = np.random.default_rng(1)
    grid = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)[:n]
    position = (grid + rng.uniform(-0.1, 0.1, grid.shape)).astype("f4")
    return Body.array(
        position=position, mass=rng.uniform(0.5, 1.5, len(position)).astype("f4"), device=device
    )


def timed(call: Callable[[], Any], device: str, repeats: int) -> float:
    """Seconds of one call."""
    if device == "cpu":
        begin = time.perf_counter()
        for _ in range(repeats):
            call()
        return (time.perf_counter() - begin) / repeats
    import cupy

    first, last = cupy.cuda.Event(), cupy.cuda.Event()
    first.record()
    for _ in range(repeats):
        call()
    last.record()
    last.synchronize()
    return float(cupy.cuda.get_elapsed_time(first, last)) / 1e3 / repeats


def pairs(n: int, device: str) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Forward and gradient by name, each ready to run."""
    a = bodies(n, device)
    near = lennard_jones.using(lw.Neighbors(radius=2.5))
    values = {"sigma2": 1.0, "cutoff2": 6.25}
    cotangent = np.random.default_rng(2).normal(size=len(a)).astype("f4")
    if device != "cpu":
        import cupy

        cotangent = cupy.asarray(cotangent)
    energy, force = (
        potential_energy.bind(a, a, softening2=0.01),
        potential_energy.gradient(wrt="position"),
    )
    target, weighed = (
        potential_energy.gradient(wrt="target.position"),
        potential_energy.gradient(wrt="position"),
    )
    softening = potential_energy.gradient(wrt="softening2")
    return {
        "gravity, both roles": (energy, force.bind(a, a, softening2=0.01)),
        "gravity, targets": (energy, target.bind(a, a, softening2=0.01)),
        "gravity, softening": (energy, softening.bind(a, a, softening2=0.01)),
        "gravity, cotangents": (
            lambda: potential_energy(a, a, softening2=0.01),
            lambda: weighed(a, a, softening2=0.01, cotangent=cotangent),
        ),
        "Lennard-Jones, all pairs": (
            lennard_jones.bind(a, a, **values),
            lennard_jones.gradient(wrt="position").bind(a, a, **values),
        ),
        "Lennard-Jones, neighbours": (
            near.bind(a, a, **values),
            near.gradient(wrt="position").bind(a, a, **values),
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bodies", type=int, default=65536)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    cases = pairs(options.bodies, options.device)
    times: dict[str, tuple[list[float], list[float]]] = {n: ([], []) for n in cases}
    for round_ in range(options.rounds + 2):
        for name, calls in cases.items():
            seconds = [timed(c, options.device, options.repeats) for c in calls]
            if round_ >= 2:
                for kept, s in zip(times[name], seconds, strict=True):
                    kept.append(s)
    rows = {n: [statistics.median(x) for x in both] for n, both in times.items()}
    print(
        f"{options.bodies} bodies on {options.device}, median of {options.rounds} rounds in turns"
    )
    for name, (forward, gradient) in rows.items():
        print(
            f"{name:28} {forward * 1e3:9.3f} ms  {gradient * 1e3:9.3f} ms  "
            f"{gradient / forward:5.2f}"
        )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(
                {"bodies": options.bodies, "device": options.device, "seconds": rows},
                file,
                indent=1,
            )


if __name__ == "__main__":
    main()

"""Other laws than gravity over lw.Tree: what does a force of each cost beside one of gravity?

`python -m bench.far_field_kernels [--device cuda] [--bodies 4194304]` writes
bench/results/far_field_kernels_DEVICE_BODIES.{md,json}: gravity softened by Plummer, the screened
force of Yukawa, a regularised Stokeslet (weights of three components) and gravity with a softening
of each target, whose expansions are interpolated (tier P); one Plummer sphere, one angle.
Stokeslets also with an order less, whose errors are still below those of gravity. Whole calls, all
versions in turns in one run. Errors are those of 1,024 bodies against all pairs in float64; no
version whose errors are above the limit is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.far_field import cloud
from bench.harness import Errors, Measurement, describe_machine, interleave, write_results
from lanewise.runtime.device import get_device

THETA, ORDER = 0.7, 4
SOFTENING2 = 1e-6
LIMIT = 0.02  # of the 99 % error


@lw.record
class Particle:
    """A weight and a vector at a place."""

    position: lw.vec3
    mass: lw.f32
    softening: lw.f32
    strength: lw.vec3


@lw.pairwise
def gravity(target: Particle, source: Particle, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.mass * inv**3 * d


@lw.pairwise
def yukawa(target: Particle, source: Particle, kappa: lw.f32, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    r = lw.dot(d, d) * inv
    return source.mass * lw.exp(-kappa * r) * (1.0 + kappa * r) * inv**3 * d


@lw.pairwise
def stokeslet(target: Particle, source: Particle, softening2: lw.f32) -> lw.vec3:
    """Cortez, Fauci and Medovikov (2005)."""
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    near = (lw.dot(d, d) + 2.0 * softening2) * source.strength
    return (near + lw.dot(source.strength, d) * d) * inv**3


@lw.pairwise
def adaptive(target: Particle, source: Particle) -> lw.vec3:
    """Gravity with a softening of each target: linear in the sources, and not radial."""
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + target.softening * target.softening)
    return source.mass * inv**3 * d


LAWS: dict[str, tuple[Any, dict[str, float]]] = {
    "gravity": (gravity, {"softening2": SOFTENING2}),
    "Yukawa, kappa 1": (yukawa, {"kappa": 1.0, "softening2": SOFTENING2}),
    "Stokeslet": (stokeslet, {"softening2": SOFTENING2}),
    "softening of each target": (adaptive, {}),
}


def versions() -> dict[str, tuple[Any, dict[str, float], int]]:
    """By names: the law, its numbers, the order."""
    made = {name: (law, values, ORDER) for name, (law, values) in LAWS.items()}
    law, values = LAWS["Stokeslet"]
    return made | {f"Stokeslet, order {ORDER - 1}": (law, values, ORDER - 1)}


def whole(law: Any, particles: Any, values: dict[str, float], device: str) -> None:
    """One call, its tree included, to its end."""
    law(particles, particles, **values)
    get_device(device).synchronize()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bodies", type=float, default=2**22)
    options.add_argument("--device", default="cuda")
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    count, rng = int(given.bodies), np.random.default_rng(3)
    made: Any = Particle
    particles = made.array(
        position=cloud("plummer", count, np.random.default_rng(1)),
        mass=np.full(count, 1 / count),
        softening=rng.uniform(0.5e-3, 2e-3, count),
        strength=np.array([1.0, 0.5, 0.25]) / count,
        device=given.device,
    )
    runs: dict[str, Callable[[], None]] = {}
    errors: dict[str, Errors] = {}
    for name, (function, values, order) in versions().items():
        tier = lw.far_field(function).tier
        law = function.using(search=lw.Tree(theta=THETA, order=order))
        found = lw.far_errors(law, particles, particles, **values)
        if not found.most < LIMIT:
            raise ValueError(
                f"{name}: 99 % of the errors are below {found.most:.1e}, not {LIMIT:g}"
            )
        title = f"{name} (tier {tier})"
        errors[title] = Errors(found.median, found.most, found.largest, found.targets)
        runs[title] = partial(whole, law, particles, values, given.device)
    times = interleave(runs, given.rounds)
    rows = [Measurement(name, seconds, count, "bodies") for name, seconds in times.items()]
    device = "cpu" if given.device == "cpu" else "cuda"
    path = Path(f"bench/results/far_field_kernels_{device}_{count}.md")
    title = f"Forces over lw.Tree(theta={THETA:g}, order={ORDER}), {count:,} bodies, float32"
    print(write_results(path, title, rows, describe_machine(), errors))


if __name__ == "__main__":
    main()

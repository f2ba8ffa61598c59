"""Sitewise kernels for all lattices, each with its twin for the reference: NumPy functions that say the same.

The exact ones move and count integers, so that every type of storage holds them; a population in a wrong place shows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import lanewise as lw
from tests.lbm.boxes import LID, WALL
from tests.lbm.operators import Moments
from tests.lbm.reference import Operator

REVERSED, SOURCE, NEGATED = 1, 2, 5
"""Kinds of the exact kernel besides 0."""
INLET = 7
"""The kind of the colliding kernel besides 0."""


@dataclass(frozen=True)
class Pair:
    """A kernel and what it means. `values` are the uniforms that it takes; `twins` makes the operators of the reference."""

    flow: Any
    values: Mapping[str, Any]
    twins: Callable[[Mapping[str, Any]], dict[int, Operator]]
    kinds: tuple[int, ...]
    deviations: bool

    def wall_velocity(self) -> tuple[float, ...]:
        return self.values["lid_velocity"]


def types_of(lattice: lw.Lattice, real: str) -> tuple[Any, Any, Any]:
    """Numbers, vectors and populations of this precision."""
    vectors = {"f32": (lw.vec2, lw.vec3), "f64": (lw.dvec2, lw.dvec3)}[real]
    number, populations = {"f32": (lw.f32, lw.populations), "f64": (lw.f64, lw.dpopulations)}[real]
    return number, vectors[lattice.dimension - 2], populations


def add_walls(flow: Any) -> None:
    flow.wall(WALL, "wall")
    flow.wall(LID, "lid", velocity="lid_velocity")


@cache
def exact(lattice: lw.Lattice, real: str = "f32") -> Pair:
    """Four kinds that permute populations or count."""
    number, _, populations = types_of(lattice, real)
    half = tuple(q for q in lattice if q.index < q.opposite.index)

    @lw.sitewise(lattice)
    def mix(f: populations):  # type: ignore[valid-type]
        kept = f[1]
        f[1] = f[3]
        f[3] = kept
        f[0] = 50 - f[0]

    @mix.kind(REVERSED, "reversed")
    def reverse(f: populations):  # type: ignore[valid-type]
        for q in half:
            kept = f[q]
            f[q] = f[q.opposite]
            f[q.opposite] = kept

    @mix.kind(SOURCE, "source")
    def source(f: populations, level: number):  # type: ignore[valid-type]
        for q in lattice:
            f[q] = 2 * q.index + level

    @mix.kind(NEGATED, "negated")
    def negate(f: populations):  # type: ignore[valid-type]
        for q in lattice:
            f[q] = 40 - f[q]

    add_walls(mix)
    opposite = Moments.of(lattice).opposite

    def twins(values: Mapping[str, Any]) -> dict[int, Operator]:
        def mixed(f: Any) -> None:
            f[[1, 3]] = f[[3, 1]]
            f[0] = 50 - f[0]

        def turned(f: Any) -> None:
            f[...] = f[opposite]

        def filled(f: Any) -> None:
            f[...] = 2 * np.arange(len(f))[:, None] + values["level"]

        def negated(f: Any) -> None:
            f[...] = 40 - f

        return {0: mixed, REVERSED: turned, SOURCE: filled, NEGATED: negated}

    lid = (36.0, 72.0, -36.0)[: lattice.dimension]  # 6 w e.u is an integer on every lattice here
    return Pair(mix, {"level": 3.0, "lid_velocity": lid}, twins, (0, REVERSED, SOURCE, NEGATED), False)


@cache
def colliding(lattice: lw.Lattice, real: str = "f32") -> Pair:
    """BGK of deviations f - w, and a kind that prescribes a velocity and extrapolates the density."""
    number, vector, populations = types_of(lattice, real)

    @lw.sitewise(lattice)
    def collide(f: populations, omega: number):  # type: ignore[valid-type]
        density = number(1)
        momentum = vector(0)
        for q in lattice:
            density += f[q]
        for q in lattice:
            momentum += f[q] * q.velocity
        u = momentum / density
        for q in lattice:
            c = q.along(u)
            f[q] += omega * (q.weight * (density - 1 + density * (3 * c + 4.5 * c * c - 1.5 * lw.dot(u, u))) - f[q])

    @collide.kind(INLET, "inlet")
    def inlet(f: populations, inflow: vector):  # type: ignore[valid-type]
        density = number(1)
        for q in lattice:
            density += f[q]
        for q in lattice:
            c = q.along(inflow)
            f[q] = q.weight * (density - 1 + density * (3 * c + 4.5 * c * c - 1.5 * lw.dot(inflow, inflow)))

    add_walls(collide)
    m = Moments.of(lattice)

    def twins(values: Mapping[str, Any]) -> dict[int, Operator]:
        def collided(f: Any) -> None:
            w = m.w.astype(f.dtype)[:, None]
            density, u = m.macroscopic(f + w)
            f += np.asarray(values["omega"], f.dtype) * (m.equilibrium(density, u) - w - f)

        def prescribed(f: Any) -> None:
            w = m.w.astype(f.dtype)[:, None]
            f[...] = m.equilibrium((f + w).sum(axis=0), np.asarray(values["inflow"], f.dtype)[:, None]) - w

        return {0: collided, INLET: prescribed}

    dimension = lattice.dimension
    values = {"omega": 1.3, "inflow": (0.04, -0.03, 0.02)[:dimension], "lid_velocity": (0.05, -0.02, 0.03)[:dimension]}
    return Pair(collide, values, twins, (0, INLET), True)


@cache
def moments_of(lattice: lw.Lattice, real: str = "f32") -> Callable[..., Any]:
    """What an observer sees: density and momentum of deviations."""
    number, vector, populations = types_of(lattice, real)

    def moments(f: populations) -> tuple[number, vector]:  # type: ignore[valid-type]
        density = number(1)
        momentum = vector(0)
        for q in lattice:
            density += f[q]
            momentum += f[q] * q.velocity
        return density, momentum

    return moments

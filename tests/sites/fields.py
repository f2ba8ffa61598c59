"""Flows and stencils that read fields of neighbours, and what they compute according to NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import lanewise as lw

ATTRACTION = -5.0


@lw.function
def sums(f):
    density, momentum = 0 * f[0], 0 * f[0] * lw.D2Q9[1].velocity
    for q in lw.D2Q9:
        density += f[q]
        momentum += f[q] * q.velocity
    return density, momentum


@lw.sitewise(lw.D2Q9)
def two_phases(f: lw.populations, psi: lw.Field[lw.f32], attraction: lw.f32):
    density, momentum = sums(f)
    force = lw.vec2(0)
    for q in lw.D2Q9:
        force -= attraction * psi[0] * q.weight * psi[q] * q.velocity
    u = (momentum + force) / density
    for q in lw.D2Q9:
        c = q.along(u)
        f[q] = q.weight * density * (1 + 3 * c + 4.5 * c * c - 1.5 * lw.dot(u, u))


@two_phases.field("psi")
def potential(f: lw.populations) -> lw.f32:
    density, _ = sums(f)
    return 1 - lw.exp(-density)


two_phases.wall(1, "dry")
two_phases.wall(2, "wet", psi="wetting")


@two_phases.observer
def density(f: lw.populations) -> lw.f32:
    total, _ = sums(f)
    return total


def near(
    values: Any, velocity: tuple[int, ...], edges: dict[str, Any] | None = None, fixed: dict[str, float] | None = None
) -> Any:
    """Each site's neighbour along a velocity (x first): around periodic edges, the mirror image at slip edges, itself
    or a fixed value at walls.
    """
    edges, fixed, here = edges or {}, fixed or {}, values
    result, walls = values, {}
    for axis, step in enumerate(velocity):
        place = values.ndim - 1 - axis
        rule = edges.get("xyz"[axis], "periodic")
        face = rule if isinstance(rule, str) else rule[step > 0]
        if not step:
            continue
        moved = np.roll(result, -step, place)
        layer = tuple(
            slice(None) if a != place else (slice(-1, None) if step > 0 else slice(0, 1)) for a in range(values.ndim)
        )
        if face == "slip":
            moved[layer] = result[layer]
        elif face != "periodic":
            walls[axis] = (layer, face)
        result = moved
    names = [face for _, face in walls.values()]
    for layer, face in walls.values():  # a corner where two different walls meet is at rest: it has no value
        value = np.where(np.full_like(here[layer], True, bool), fixed[face], 0) if face in fixed else here[layer]
        result[layer] = value
    if len(set(names)) > 1:
        both = np.zeros(values.shape, int)
        for layer, _ in walls.values():
            both[layer] += 1
        result = np.where(both > 1, here, result)
    return result


def shan_chen_step(f: Any) -> Any:
    """A step of `two_phases` on arriving populations (9, ny, nx), periodic; what arrives next."""
    e = np.array(lw.D2Q9.velocities, float)
    w = np.array([q.weight for q in lw.D2Q9])
    rho = f.sum(0)
    psi = 1 - np.exp(-rho)
    force = -ATTRACTION * psi * sum(w[q] * near(psi, lw.D2Q9.velocities[q]) * e[q][:, None, None] for q in range(9))
    u = (np.einsum("qyx,qa->ayx", f, e) + force) / rho
    c = np.einsum("qa,ayx->qyx", e, u)
    after = w[:, None, None] * rho * (1 + 3 * c + 4.5 * c * c - 1.5 * (u**2).sum(0))
    return np.stack([np.roll(after[q], lw.D2Q9.velocities[q][::-1], (0, 1)) for q in range(9)])


@lw.stencil(lw.D2Q9)
def blur(u: lw.Field[lw.f32], v: lw.Field[lw.f32], rate: lw.f32) -> tuple[lw.f32, lw.f32]:
    spread, drift = lw.f32(0), lw.f32(0)
    for q in lw.D2Q9:
        spread += q.weight * u[q]
        drift += q.weight * q.x * v[q]
    return u[0] + rate * (spread - u[0]) + lw.f32(0.1) * drift, v[0] + rate * (u[3] - v[4])


blur.wall(1, "insulated")
blur.wall(2, "hot", u="hot")


def blurred(u: Any, v: Any, rate: float, edges: dict[str, Any], hot: float) -> tuple[Any, Any]:
    """One step of `blur`."""
    fixed, lattice = {"hot": hot}, lw.D2Q9

    def at(values: Any, q: int, has: dict[str, float]) -> Any:
        return near(values, lattice.velocities[q], edges, has)

    spread = sum(q.weight * at(u, q.index, fixed) for q in lattice)
    drift = sum(q.weight * q.x * at(v, q.index, {}) for q in lattice)
    return u + rate * (spread - u) + 0.1 * drift, v + rate * (at(u, 3, fixed) - at(v, 4, {}))

"""Collision operators for the reference, on populations of shape (Q, n): independent of those that lanewise ships."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.lbm.links import find_direction
from tests.lbm.reference import Lattice, Operator

Array = NDArray[Any]


@dataclass(frozen=True)
class Moments:
    """Velocities and weights as arrays, and what is computed from them."""

    e: Array
    w: Array
    opposite: list[int]

    @classmethod
    def of(cls, lattice: Lattice) -> Moments:
        e = np.array([[int(c) for c in row] for row in lattice.velocities])
        return cls(e, np.array([float(w) for w in lattice.weights]), [find_direction(e, -row) for row in e])

    def equilibrium(self, density: Any, u: Array) -> Array:
        """w rho (1 + 3 e.u + 9/2 (e.u)^2 - 3/2 u.u) for u of shape (D, ...): (Q, ...)."""
        c = np.tensordot(self.e.astype(u.dtype), u, axes=(1, 0))
        w = self.w.astype(u.dtype).reshape(-1, *[1] * (u.ndim - 1))
        return w * density * (1 + 3 * c + 4.5 * c * c - 1.5 * (u * u).sum(axis=0))

    def macroscopic(self, f: Array, force: Array | None = None) -> tuple[Array, Array]:
        """Density and velocity; half a time step of the force belongs to the velocity."""
        density = f.sum(axis=0)
        momentum = np.tensordot(self.e.astype(f.dtype), f, axes=(0, 0))
        if force is not None:
            momentum = momentum + 0.5 * force.reshape(-1, *[1] * (f.ndim - 1))
        return density, momentum / density

    def guo(self, u: Array, force: Array) -> Array:
        """w (3 (e - u) + 9 (e.u) e) . F: Guo, Zheng and Shi, Phys. Rev. E 65 (2002) 046308, without its prefactor."""
        ef = (self.e @ force).reshape(-1, *[1] * (u.ndim - 1))
        eu = np.tensordot(self.e.astype(u.dtype), u, axes=(1, 0))
        uf = np.tensordot(force, u, axes=(0, 0))
        return self.w.reshape(-1, *[1] * (u.ndim - 1)) * (3 * ef - 3 * uf + 9 * eu * ef)


def bgk(lattice: Lattice, omega: float, *, deviations: bool = False) -> Operator:
    """f += omega (feq - f), for whole populations or for deviations f - w."""
    m = Moments.of(lattice)

    def collide(f: Array) -> None:
        w = m.w.astype(f.dtype)[:, None] if deviations else f.dtype.type(0)
        density, u = m.macroscopic(f + w)
        f += f.dtype.type(omega) * (m.equilibrium(density, u) - w - f)

    return collide


def trt(lattice: Lattice, tau: float, magic: float = 3 / 16, force: Sequence[float] | None = None) -> Operator:
    """Two relaxation times, (tau - 1/2)(tau_minus - 1/2) = magic, with a body force (Guo's, relaxed by parity)."""
    m = Moments.of(lattice)
    plus, minus = 1 / tau, 1 / (0.5 + magic / (tau - 0.5))
    g = None if force is None else np.array(force)

    def collide(f: Array) -> None:
        density, u = m.macroscopic(f, g)
        away = m.equilibrium(density, u) - f
        push = np.zeros_like(f) if g is None else m.guo(u, g)
        for q, o in enumerate(m.opposite):
            if q > o:
                continue
            even, odd = (away[q] + away[o]) / 2, (away[q] - away[o]) / 2
            even_push, odd_push = (push[q] + push[o]) / 2, (push[q] - push[o]) / 2
            s = plus * even + (1 - plus / 2) * even_push
            a = minus * odd + (1 - minus / 2) * odd_push
            f[q] += s + a
            if o != q:
                f[o] += s - a

    return collide


def swap(first: int, second: int) -> Operator:
    """Exchange two populations: exact in every type."""

    def exchange(f: Array) -> None:
        f[[first, second]] = f[[second, first]]

    return exchange

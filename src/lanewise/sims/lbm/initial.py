"""Populations of a given density and velocity: equilibrium, and the part by which a sheared flow differs from it.

f_i = w_i rho [1 + 3 e.u + 9/2 (e.u)^2 - 3/2 u.u] - 3 tau rho w_i sum_ab (e_a e_b - delta_ab / 3) d_a u_b, the second part to
first order of the Chapman-Enskog expansion (Krueger et al. 2017, The Lattice Boltzmann Method, eq. 4.35 and section 5.5). Without it
the stress needs about tau steps to build up, and the flow that then decays is a slightly different one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lanewise.lattices import Lattice


def deviations(
    lattice: Lattice, shape: tuple[int, ...], density: Any, velocity: Any, *, gradient: Any = None, tau: float = 0.5,
    force: tuple[float, ...] = (), dtype: DTypeLike = np.float64,
) -> NDArray[Any]:  # fmt: skip
    """Populations less their weights, (Q, *shape): one direction at a time in float64, then rounded to `dtype`.

    density: a number or an array of `shape`; velocity: a vector or an array (*shape, D); gradient: d_a u_b in [..., a, b] or None.
    The velocity holds half a step of the force (Guo, Zheng and Shi 2002), so the momentum of the populations is less by that.
    """
    dimension = len(shape)
    rho = np.asarray(density, np.float64)
    u = [np.asarray(velocity, np.float64)[..., a] for a in range(dimension)]
    square = sum(component * component for component in u)
    result = np.empty((len(lattice), *shape), dtype)
    for q in lattice:
        e = lattice.velocities[q.index]
        along = sum(c * component for c, component in zip(e, u, strict=True))
        part = rho - 1 + rho * (3 * along + 4.5 * along * along - 1.5 * square)
        part = part - 1.5 * sum(c * g for c, g in zip(e, force, strict=False))
        if gradient is not None:
            part = part - 3 * tau * rho * _stretching(e, np.asarray(gradient))
        result[q.index] = q.weight * part
    return result


def _stretching(e: tuple[int, ...], gradient: NDArray[Any]) -> Any:
    """sum_ab (e_a e_b - delta_ab / 3) d_a u_b."""
    total: Any = 0.0
    for a, ea in enumerate(e):
        for b, eb in enumerate(e):
            factor = ea * eb - (1 / 3 if a == b else 0)
            if factor:
                total = total + factor * gradient[..., a, b]
    return total

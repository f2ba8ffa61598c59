"""Populations of a given density and velocity: equilibrium, and the part by which a sheared flow
differs from it.

f_i = w_i rho [1 + 3 e.u + 9/2 (e.u)^2 - 3/2 u.u] - 3 tau rho w_i sum_ab (e_a e_b - delta_ab / 3)
d_a u_b, the second part to first order of the Chapman-Enskog expansion (Krueger et al. 2017, The
Lattice Boltzmann Method, eq. 4.35 and section 5.5). Without it the stress needs about tau steps to
build up, and the flow that then decays is a slightly different one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

import lanewise as lw

SLAB = 1 << 15  # sites at a time: what is computed of them stays in the caches


def deviations(
    lattice: lw.Lattice,
    shape: tuple[int, ...],
    density: Any,
    velocity: Any,
    *,
    gradient: Any = None,
    tau: float = 0.5,
    force: tuple[float, ...] = (),
    dtype: DTypeLike = np.float64,
) -> NDArray[Any]:
    """Populations less their weights, (Q, *shape): one direction at a time in float64, then rounded
    to `dtype`.

    density: a number or an array of `shape`; velocity: a vector or an array (*shape, D); gradient:
    d_a u_b in [..., a, b] or None. The velocity holds half a step of the force (Guo, Zheng and Shi
    2002), so the momentum of the populations is less by that.
    """
    rho, flow = np.asarray(density, np.float64), np.asarray(velocity, np.float64)
    steep = None if gradient is None else np.asarray(gradient)
    result = np.empty((len(lattice), *shape), dtype)
    rows = max(1, SLAB * shape[0] // math.prod(shape))
    for first in range(0, shape[0], rows):
        slab = slice(first, first + rows)
        some = rho[slab] if rho.ndim else rho
        u = [(flow[slab] if flow.ndim > 1 else flow)[..., a] for a in range(len(shape))]
        square = sum(component * component for component in u)
        for q in lattice:
            e = lattice.velocities[q.index]
            along = sum(
                (c * component for c, component in zip(e, u, strict=True) if c), np.float64(0)
            )
            part = some - 1 + some * (3 * along + 4.5 * along * along - 1.5 * square)
            part = part - 1.5 * sum(c * g for c, g in zip(e, force, strict=False))
            if steep is not None:
                part = part - 3 * tau * some * _stretching(
                    e, steep[slab] if steep.ndim > 2 else steep
                )
            result[q.index, slab] = q.weight * part
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

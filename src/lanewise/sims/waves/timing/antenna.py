"""How strongly a detector answers to the two polarisations from a direction: a(t) and b(t).

Jaranowski, Krolak and Schutz, Phys. Rev. D 58, 063001 (1998), in the tensor form of LIGO-T0900149:
with the response tensor D turned about the Earth's axis by the mean sidereal time, a = xi.D.xi -
eta.D.eta and b = 2 xi.D.eta, xi = (-sin alpha, cos alpha, 0), eta = (sin delta cos alpha, sin delta
sin alpha, -cos delta).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.sims.waves.detectors import Detector
from lanewise.sims.waves.timing.arrival import sky_positions
from lanewise.sims.waves.timing.earth import EarthState
from lanewise.support.checks import checked
from lanewise.support.errors import InputError

Floats = NDArray[np.float64]


@checked(InputError)
def antenna_patterns(
    earth: EarthState, detector: Detector, alpha: ArrayLike, delta: ArrayLike
) -> tuple[Floats, Floats]:
    """The functions a and b, (p, n) each: p sky positions in radians, n times of `earth`."""
    return patterns_of(turned_response(earth, detector), alpha, delta)


def patterns_of(response: Floats, alpha: ArrayLike, delta: ArrayLike) -> tuple[Floats, Floats]:
    """The functions a and b of a detector's response (n, 3, 3), see `turned_response`, which does
    not depend on the directions.
    """
    alpha, delta = sky_positions(alpha, delta)
    zero = np.zeros_like(alpha)
    xi = np.stack([-np.sin(alpha), np.cos(alpha), zero], axis=-1)
    eta = np.stack(
        [np.sin(delta) * np.cos(alpha), np.sin(delta) * np.sin(alpha), -np.cos(delta)], axis=-1
    )
    # A scalar product of tensors is one of vectors of nine numbers: p x 9 times 9 x n.
    plus = xi[:, :, None] * xi[:, None, :] - eta[:, :, None] * eta[:, None, :]
    cross = 2 * xi[:, :, None] * eta[:, None, :]
    flat = response.reshape(len(response), 9).T
    # each by itself: the same bits in any company
    a, b = ((x.reshape(-1, 1, 9) @ flat)[:, 0] for x in (plus, cross))
    return a, b


def turned_response(earth: EarthState, detector: Detector) -> Floats:
    """(n, 3, 3): the response tensor in celestial coordinates."""
    s, c = np.sin(earth.mean_sidereal), np.cos(earth.mean_sidereal)
    zero, one = np.zeros_like(s), np.ones_like(s)
    turn = np.stack([c, -s, zero, s, c, zero, zero, zero, one], axis=-1).reshape(-1, 3, 3)
    return turn @ detector.response @ turn.transpose(0, 2, 1)

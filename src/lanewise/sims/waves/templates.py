"""What a signal is sought with: frequency, direction, spin-downs, at a reference time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.sims.waves.ranges import check_setting, check_values, numbers_of
from lanewise.sims.waves.timing import Orbit
from lanewise.support.attributes import frozen
from lanewise.support.checks import checked
from lanewise.support.errors import InputError

Floats = NDArray[np.float64]
SPINS = ("freq", "f1dot", "f2dot", "f3dot")


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Templates:
    """The parameters of n templates; numbers stand for all of them.

    Attributes:
        freq: (n) Hz, at the barycentre (or the source, with an orbit) at the reference time
        alpha: (n) right ascension, radians; delta: declination
        f1dot, ...: (n) Hz/s, Hz/s^2, Hz/s^3
        reference: GPS nanoseconds at the barycentre, see `gps_time`
        orbit: of the source, one for all templates
    """

    freq: Floats
    alpha: Floats
    delta: Floats
    f1dot: Floats
    f2dot: Floats
    f3dot: Floats
    reference: int
    orbit: Orbit | None

    @checked(InputError)
    def __init__(
        self,
        freq: ArrayLike,
        alpha: ArrayLike,
        delta: ArrayLike,
        f1dot: ArrayLike = 0.0,
        f2dot: ArrayLike = 0.0,
        f3dot: ArrayLike = 0.0,
        *,
        reference: int,
        orbit: Orbit | None = None,
    ) -> None:
        columns = dict(
            zip(
                (*SPINS[:1], "alpha", "delta", *SPINS[1:]),
                (freq, alpha, delta, f1dot, f2dot, f3dot),
                strict=True,
            )
        )
        numbers = {
            k: np.atleast_1d(numbers_of(f"{k} of the templates", v)) for k, v in columns.items()
        }
        try:
            arrays = np.broadcast_arrays(*numbers.values())
        except ValueError as error:
            shapes = ", ".join(f"{k} {v.shape}" for k, v in numbers.items())
            raise InputError(
                f"templates have different lengths: {shapes}; wanted one length, or single numbers"
            ) from error
        if arrays[0].size == 0:
            raise InputError("there are no templates; wanted at least one")
        if arrays[0].ndim != 1:
            raise InputError(f"templates have the shape {arrays[0].shape}; wanted one dimension")
        for name, array in zip(columns, arrays, strict=True):
            check_values("template", name, array)
            object.__setattr__(self, name, array)
        check_setting("reference", reference)
        object.__setattr__(self, "reference", reference)
        object.__setattr__(self, "orbit", orbit)

    def __len__(self) -> int:
        return len(self.freq)

    @property
    def spins(self) -> Floats:
        """(n, k): frequency and derivatives, up to the last that is not zero for all."""
        all_of_them = np.stack([getattr(self, s) for s in SPINS], axis=1)
        used = np.flatnonzero((all_of_them != 0).any(axis=0))
        return all_of_them[:, : max(1, int(used[-1]) + 1 if len(used) else 1)]

    def directions(self) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """The different directions: alpha (p), delta (p), and which of them each template has
        (n).
        """
        if (self.alpha == self.alpha[0]).all() and (
            self.delta == self.delta[0]
        ).all():  # a band: sorting it takes longer
            return self.alpha[:1], self.delta[:1], np.zeros(len(self), np.int64)
        both, which = np.unique(
            np.stack([self.alpha, self.delta], axis=1), axis=0, return_inverse=True
        )
        return both[:, 0], both[:, 1], which.reshape(-1)

"""Where walls cut links: not half-way, but at a known fraction of them. The weights with which bounce-back is interpolated.

    f_a(x, t+1) = f*_o(x, t) + k (f_o(x, t+1) - f*_a(x, t) + 6 w (e_a . u)) + 6 w (e_a . u),   k = (1 - 2 d) / (1 + 2 d)
a arrives through a link that a wall with velocity u cuts at the fraction d, counted from the site, and o is opposite to it; f* is
what departs. It is the linear interpolation that is central (CLI): where the wall lies does not depend on the viscosity,
if the magic parameter does not (I. Ginzburg, F. Verhaeghe, D. d'Humieres, Two-relaxation-time lattice Boltzmann scheme: about
parametrization, velocity, pressure and mixed boundary conditions, Communications in Computational Physics 3 (2008), 427-478).
It looks at populations of x only, so any streaming form does it; k = 0 is half-way bounce-back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanewise.arrays import RecordArray
from lanewise.errors import ArgumentError
from lanewise.lattices.base import Lattice
from lanewise.layouts import SoA
from lanewise.record import Field, Leaf, Record, RecordValue
from lanewise.runtime.memory import bring, require_memory
from lanewise.sites.words import KIND_MASK, KIND_SHIFT
from lanewise.types import Scalar

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class WallFractions:
    """Links that walls cut elsewhere than half-way.

    places: sites that are no walls, their numbers (x fastest), ascending, shape (n,). fractions: of the link on which a
    population of direction q arrives at the site, from the site to the wall, 0 to 1, shape (n, Q); NaN for half-way.
    """

    places: Whole
    fractions: Floats

    @property
    def links(self) -> int:
        """Those whose fraction is known."""
        return int(np.count_nonzero(~np.isnan(self.fractions)))


@dataclass(frozen=True, slots=True, eq=False)
class Interpolation:
    """The interpolated links of some sites, on their device.

    places: the sites; weights: a record a site, k of every direction but 0. links: how many have a weight; left: how many
    fractions stay half-way, since a wall cuts the link on the other side of the site, too.
    """

    places: Any
    weights: RecordArray
    links: int
    left: int

    @property
    def nbytes(self) -> int:
        return int(self.places.nbytes) + self.weights.nbytes


def weight_leaves(lattice: Lattice, real: Scalar) -> tuple[Leaf, ...]:
    """The record of a site: the weight of each direction but 0."""
    return weight_record(lattice, real).leaves


def weight_record(lattice: Lattice, real: Scalar) -> Record:
    """As `weight_leaves`, with its name."""
    return Record("Weights", tuple(Field(f"q{q}", real) for q in range(1, lattice.size)))


def interpolation_weights(
    lattice: Lattice, given: WallFractions, words: npt.NDArray[np.uint32], walls: frozenset[int]
) -> tuple[Floats, int]:
    """The k of every place and direction, (n, Q), and how many links with a fraction stay half-way (k = 0).

    Raises `ArgumentError` for places that do not exist or are walls, fractions out of range, and links that no wall cuts.
    """
    _check(lattice, given, len(words), words, walls)
    known = ~np.isnan(given.fractions)
    mine = words[given.places]
    cut = np.stack([_cut(mine, q) for q in range(lattice.size)], axis=1)
    if (wrong := known & ~cut).any():
        n, q = (int(i) for i in np.argwhere(wrong)[0])
        raise ArgumentError(
            f"{int(np.count_nonzero(wrong)):,} links have a fraction and no wall cuts them, first direction {q} at site "
            f"{int(given.places[n])}; wanted NaN there"
        )
    both = known & cut[:, list(lattice.opposite)]
    d = np.where(known & ~both, given.fractions, 0.5)
    return (1 - 2 * d) / (1 + 2 * d), int(np.count_nonzero(both))


def _cut(words: npt.NDArray[np.uint32], q: int) -> npt.NDArray[np.bool_]:
    return (words >> np.uint32(q - 1) & np.uint32(1)).astype(np.bool_) if q else np.zeros(len(words), np.bool_)


def _check(
    lattice: Lattice, given: WallFractions, count: int, words: npt.NDArray[np.uint32], walls: frozenset[int]
) -> None:
    places, fractions = given.places, given.fractions
    if places.ndim != 1 or fractions.shape != (len(places), lattice.size):
        raise ArgumentError(
            f"fractions have the shape (places, {lattice.size}) on {lattice.name}; found {fractions.shape} for places of shape "
            f"{places.shape}"
        )
    if len(places) and (places.min() < 0 or places.max() >= count or (np.diff(places) <= 0).any()):
        raise ArgumentError(f"places of fractions are numbers of sites, 0 to {count - 1:,}, ascending and different")
    kinds = (words[places] >> np.uint32(KIND_SHIFT)) & np.uint32(KIND_MASK)
    if (solid := np.isin(kinds, sorted(walls))).any():
        raise ArgumentError(
            f"site {int(places[int(np.argmax(solid))])} has fractions and is a wall; wanted sites beside it"
        )
    if ((fractions < 0) | (fractions > 1)).any():  # NaN is neither
        found = fractions[(fractions < 0) | (fractions > 1)][0]
        raise ArgumentError(
            f"a fraction of a link is {found:g}; wanted 0 (at the site) to 1 (at its neighbour), or NaN"
        )


def make_interpolation(
    lattice: Lattice,
    given: WallFractions,
    words: npt.NDArray[np.uint32],
    walls: frozenset[int],
    real: Scalar,
    device: str,
) -> Interpolation | None:
    """The weights on the device, of the sites that have any; None when all links are half-way."""
    weights, left = interpolation_weights(lattice, given, words, walls)
    used = (weights != 0).any(axis=1)
    if not used.any():
        return None
    places, weights = given.places[used], weights[used]
    return Interpolation(
        place_array(places, device), weight_array(lattice, weights, real, device), int(np.count_nonzero(weights)), left
    )


def place_array(places: Whole, device: str) -> Any:
    """Numbers of sites on the device, in the type that its kernels count in."""
    index = np.int32 if device.startswith("cuda") else np.int64
    return bring(np.ascontiguousarray(places.astype(index)), device)


def weight_array(lattice: Lattice, weights: Floats, real: Scalar, device: str) -> RecordArray:
    """A record a row of `weights`, (n, Q)."""
    record = weight_record(lattice, real)
    require_memory(
        device, SoA().arrange(record.leaves).nbytes(len(weights)), f"the cut links of {len(weights):,} sites"
    )
    array = RecordArray.zeros(
        record,
        len(weights),
        layout=SoA(),
        device=device,
        python_class=type("Weights", (RecordValue,), {"__record__": record}),
    )
    for q in range(1, lattice.size):
        setattr(array, f"q{q}", bring(np.ascontiguousarray(weights[:, q].astype(real.dtype)), device))
    return array

"""Where walls cut links: not half-way, but at a known fraction of them.

The weights with which bounce-back is interpolated.

    f_a(x, t+1) = b + k (f_o(x, t+1) - f*_a(x, t) + 6 w (e_a . u)) + s (f*_a(x, t) - b),   b =
    f*_o(x, t) + 6 w (e_a . u)
a arrives through a link that a wall with velocity u cuts at the fraction d, counted from the site,
and o is opposite to it; f* is what departs and b is half-way bounce-back. It looks at populations
of x only, so any streaming form does it. These are all the linear rules of three populations. The
wall lies at d, to second order, when (1 + 2 d) k = 1 - 2 d + 2 d s (I. Ginzburg, F. Verhaeghe, D.
d'Humieres, Two-relaxation-time lattice Boltzmann scheme: about parametrization, velocity, pressure
and mixed boundary conditions, Communications in Computational Physics 3 (2008), 427-478). One
number is left to choose: k - s, the part of what departs along a that the wall sends back with its
sign turned. At a site on the wall (d = 0) momentum is multiplied by s - k in every step.

s = 0 is the rule that is central (CLI): where the wall lies does not depend on the viscosity, if
the magic parameter does not. But k - s = (1 - 2 d) / (1 + 2 d) is 1 for d = 0: the momentum of a
site on the wall then changes its sign with every step and never decays. k - s = 0 is the upwind
rule of M. Bouzidi, M. Firdaouss, P. Lallemand, Momentum transfer of a Boltzmann-lattice fluid with
boundaries, Physics of Fluids 13 (2001), 3452-3459, which damps best; where its wall lies depends on
the viscosity, to second order. So links are central from d = 1/4 on, and below that k - s stays
what it is there, 1/3 (`MOST_REFLECTED`): k = 1 - 8 d / 3 and s = 2/3 - 8 d / 3. Half-way
bounce-back is k = s = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanewise.language.lattices.base import Lattice
from lanewise.language.record import Field, Leaf, Record, RecordValue
from lanewise.language.target import target_of
from lanewise.language.types import Scalar
from lanewise.layouts import SoA
from lanewise.patterns.sitewise.flags import KIND_MASK, KIND_SHIFT
from lanewise.records.arrays import RecordArray
from lanewise.runtime.memory import bring, require_memory
from lanewise.support.checks import host_array
from lanewise.support.errors import ArgumentError

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

MOST_REFLECTED = 1 / 3
"""The largest part of what departs along a link that comes back with its sign turned (k - s).

That of CLI at a quarter of the link.
"""
CENTRAL = (1 - MOST_REFLECTED) / (1 + MOST_REFLECTED) / 2
"""The fraction from which links are central: a quarter."""
WEIGHTS = ("k", "s")
"""The two weights of a link.

Fields of their record are these letters with the number of the direction.
"""


@dataclass(frozen=True, slots=True, eq=False)
class WallFractions:
    """Links that walls do not cut half-way.

    places: the numbers of sites next to walls (x fastest), ascending, shape (n,). fractions: of the
    link on which a population of direction q arrives at the site, from the site to the wall, 0 to
    1, shape (n, Q); NaN for half-way.
    """

    places: Whole
    fractions: Floats

    def __post_init__(self) -> None:
        """Arrays of anything that has numbers; other values raise `ArgumentError`."""
        for name, kinds, kept in (("places", "iu", np.int64), ("fractions", "fiu", np.float64)):
            array = host_array(f"WallFractions: {name}", getattr(self, name))
            if array.size and array.dtype.kind not in kinds:
                wanted = "numbers of sites" if name == "places" else "numbers"
                raise ArgumentError(f"WallFractions: {name} hold {array.dtype}; wanted {wanted}")
            object.__setattr__(self, name, array.astype(kept, copy=False))

    @property
    def links(self) -> int:
        """The links whose fraction is known."""
        return int(np.count_nonzero(~np.isnan(self.fractions)))


@dataclass(frozen=True, slots=True, eq=False)
class Interpolation:
    """The interpolated links of some sites, on their device.

    places: the sites; weights: a record a site, k and s of every direction but 0. links: how many
    have a weight; left: how many fractions stay half-way, since a wall cuts the link on the other
    side of the site as well.
    """

    places: Any
    weights: RecordArray
    links: int
    left: int

    @property
    def nbytes(self) -> int:
        return int(self.places.nbytes) + self.weights.nbytes


def weight_leaves(lattice: Lattice, real: Scalar) -> tuple[Leaf, ...]:
    """The record of a site: k of each direction but 0, then s."""
    return weight_record(lattice, real).leaves


def weight_record(lattice: Lattice, real: Scalar) -> Record:
    """As `weight_leaves`, with its name."""
    return Record(
        "Weights",
        tuple(Field(f"{name}{q}", real) for name in WEIGHTS for q in range(1, lattice.size)),
    )


def interpolation_weights(
    lattice: Lattice, table: WallFractions, flags: npt.NDArray[np.uint32], walls: frozenset[int]
) -> tuple[Floats, int]:
    """The weights k and s of every place and direction, (2, n, Q), and how many links with a
    fraction stay half-way (k = s = 0).

    Raises `ArgumentError` for places that do not exist or are walls, fractions out of range, and
    links that no wall cuts.
    """
    _check(lattice, table, len(flags), flags, walls)
    measured = ~np.isnan(table.fractions)
    mine = flags[table.places]
    cut = np.stack([_cut(mine, q) for q in range(lattice.size)], axis=1)
    if (wrong := measured & ~cut).any():
        n, q = (int(i) for i in np.argwhere(wrong)[0])
        raise ArgumentError(
            f"{int(np.count_nonzero(wrong)):,} links have a fraction and no wall cuts them, first "
            f"direction {q} at site "
            f"{int(table.places[n])}; wanted NaN there"
        )
    both = measured & cut[:, list(lattice.opposite)]
    d = np.where(measured & ~both, table.fractions, 0.5)
    return link_weights(d), int(np.count_nonzero(both))


def link_weights(fractions: Floats) -> Floats:
    """The weights k and s of links that are cut at these fractions, (2, ...)."""
    d, most = fractions, MOST_REFLECTED
    central = (1 - 2 * d) / (1 + 2 * d)
    damped = np.where(central > most, 1 - most - 2 * d * (1 + most), 0.0)
    return np.stack([np.where(central > most, most + damped, central), damped])


def _cut(flags: npt.NDArray[np.uint32], q: int) -> npt.NDArray[np.bool_]:
    return (
        (flags >> np.uint32(q - 1) & np.uint32(1)).astype(np.bool_)
        if q
        else np.zeros(len(flags), np.bool_)
    )


def _check(
    lattice: Lattice,
    table: WallFractions,
    count: int,
    flags: npt.NDArray[np.uint32],
    walls: frozenset[int],
) -> None:
    places, fractions = table.places, table.fractions
    if places.ndim != 1 or fractions.shape != (len(places), lattice.size):
        raise ArgumentError(
            f"fractions have the shape (places, {lattice.size}) on {lattice.name}; found "
            f"{fractions.shape} for places of shape "
            f"{places.shape}"
        )
    if len(places) and (places.min() < 0 or places.max() >= count or (np.diff(places) <= 0).any()):
        raise ArgumentError(
            f"places of fractions are numbers of sites, 0 to {count - 1:,}, ascending and different"
        )
    kinds = (flags[places] >> np.uint32(KIND_SHIFT)) & np.uint32(KIND_MASK)
    if (solid := np.isin(kinds, sorted(walls))).any():
        raise ArgumentError(
            f"site {int(places[int(np.argmax(solid))])} has fractions and is a wall; wanted sites "
            "next to it"
        )
    if ((fractions < 0) | (fractions > 1)).any():  # NaN is neither
        outside = fractions[(fractions < 0) | (fractions > 1)][0]
        raise ArgumentError(
            f"a fraction of a link is {outside:g}; wanted 0 (at the site) to 1 (at its neighbour), "
            "or NaN"
        )


def make_interpolation(
    lattice: Lattice,
    table: WallFractions,
    flags: npt.NDArray[np.uint32],
    walls: frozenset[int],
    real: Scalar,
    device: str,
) -> Interpolation | None:
    """The weights on the device, of the sites that have any; None when all links are half-way."""
    weights, left = interpolation_weights(lattice, table, flags, walls)
    used = weights.any(axis=(0, 2))
    if not used.any():
        return None
    places, weights = table.places[used], weights[:, used]
    return Interpolation(
        place_array(places, device),
        weight_array(lattice, weights, real, device),
        int(np.count_nonzero(weights[0])),
        left,
    )


def place_array(places: Whole, device: str) -> Any:
    """Numbers of sites on the device, in the type that its kernels count in."""
    index = target_of(device).index.dtype
    return bring(np.ascontiguousarray(places.astype(index)), device)


def weight_array(lattice: Lattice, weights: Floats, real: Scalar, device: str) -> RecordArray:
    """A record for each of n sites, of `weights`, (2, n, Q)."""
    record, count = weight_record(lattice, real), weights.shape[1]
    require_memory(
        device, SoA().arrange(record.leaves).nbytes(count), f"the cut links of {count:,} sites"
    )
    array = RecordArray.zeros(
        record,
        count,
        layout=SoA(),
        device=device,
        python_class=type("Weights", (RecordValue,), {"__record__": record}),
    )
    for name, values in zip(WEIGHTS, weights, strict=True):
        for q in range(1, lattice.size):
            setattr(
                array,
                f"{name}{q}",
                bring(np.ascontiguousarray(values[:, q].astype(real.dtype)), device),
            )
    return array

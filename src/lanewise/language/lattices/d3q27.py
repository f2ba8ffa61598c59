"""D3Q27: the velocities of D3Q19 in its order, then the eight across corners."""

from __future__ import annotations

from fractions import Fraction

from lanewise.language.lattices.base import Lattice
from lanewise.language.lattices.d3q19 import D3Q19

D3Q27 = Lattice(
    "D3Q27",
    (
        *D3Q19.velocities,
        *((1, 1, 1), (-1, -1, -1), (1, 1, -1), (-1, -1, 1)),
        *((1, -1, 1), (-1, 1, -1), (-1, 1, 1), (1, -1, -1)),
    ),
    (Fraction(8, 27), *[Fraction(2, 27)] * 6, *[Fraction(1, 54)] * 12, *[Fraction(1, 216)] * 8),
)

"""D2Q9: nine velocities in the plane. A direction and its opposite are neighbours."""

from __future__ import annotations

from fractions import Fraction

from lanewise.language.lattices.base import Lattice

D2Q9 = Lattice(
    "D2Q9",
    ((0, 0), *((1, 0), (-1, 0), (0, 1), (0, -1)), *((1, 1), (-1, -1), (1, -1), (-1, 1))),
    (Fraction(4, 9), *[Fraction(1, 9)] * 4, *[Fraction(1, 36)] * 4),
)

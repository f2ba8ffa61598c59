"""D2Q5: the four neighbours in the plane, for scalars; the square of the speed of sound is 1/3."""

from __future__ import annotations

from fractions import Fraction

from lanewise.language.lattices.base import Lattice

D2Q5 = Lattice(
    "D2Q5",
    ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)),
    (Fraction(1, 3), *[Fraction(1, 6)] * 4),
    isotropy=2,
)

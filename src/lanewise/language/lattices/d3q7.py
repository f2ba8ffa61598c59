"""D3Q7: the six neighbours in space, for scalars; the square of the speed of sound is 1/4.

With 1/3 nothing would be at rest.
"""

from __future__ import annotations

from fractions import Fraction

from lanewise.language.lattices.base import Lattice

D3Q7 = Lattice(
    "D3Q7",
    ((0, 0, 0), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)),
    (Fraction(1, 4), *[Fraction(1, 8)] * 6),
    isotropy=2,
)

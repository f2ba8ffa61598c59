"""D1Q3: both neighbours along a line."""

from __future__ import annotations

from fractions import Fraction

from lanewise.language.lattices.base import Lattice

D1Q3 = Lattice("D1Q3", ((0,), (1,), (-1,)), (Fraction(2, 3), *[Fraction(1, 6)] * 2))

"""D3Q19: rest, six neighbours along the axes, twelve across edges.

A direction and its opposite are neighbours.
"""

from __future__ import annotations

from fractions import Fraction

from lanewise.language.lattices.base import Lattice

D3Q19 = Lattice(
    "D3Q19",
    (
        (0, 0, 0),
        *((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)),
        *((1, 1, 0), (-1, -1, 0), (1, -1, 0), (-1, 1, 0)),
        *((1, 0, 1), (-1, 0, -1), (1, 0, -1), (-1, 0, 1)),
        *((0, 1, 1), (0, -1, -1), (0, 1, -1), (0, -1, 1)),
    ),
    (Fraction(1, 3), *[Fraction(1, 18)] * 6, *[Fraction(1, 36)] * 12),
)

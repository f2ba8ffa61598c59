"""Lattices: the velocities that populations have, one file a lattice."""

from lanewise.language.lattices.base import Direction, Lattice
from lanewise.language.lattices.d1q3 import D1Q3
from lanewise.language.lattices.d2q5 import D2Q5
from lanewise.language.lattices.d2q9 import D2Q9
from lanewise.language.lattices.d3q7 import D3Q7
from lanewise.language.lattices.d3q19 import D3Q19
from lanewise.language.lattices.d3q27 import D3Q27

__all__ = ["D1Q3", "D2Q5", "D2Q9", "D3Q7", "D3Q19", "D3Q27", "Direction", "Lattice"]

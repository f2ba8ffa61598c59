"""Lattices: the velocities that populations have, one file a lattice."""

from lanewise.lattices.base import Direction, Lattice
from lanewise.lattices.d2q9 import D2Q9
from lanewise.lattices.d3q19 import D3Q19
from lanewise.lattices.d3q27 import D3Q27

__all__ = ["D2Q9", "D3Q19", "D3Q27", "Direction", "Lattice"]

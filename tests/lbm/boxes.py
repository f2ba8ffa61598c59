"""Boxes that hypothesis draws: shapes, masks, edges, and populations in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

import lanewise as lw
from tests.lbm.links import EDGE

D3Q15 = lw.Lattice(
    "D3Q15",
    (
        (0, 0, 0),
        *((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)),
        *((1, 1, 1), (-1, -1, -1), (1, 1, -1), (-1, -1, 1), (1, -1, 1), (-1, 1, -1), (-1, 1, 1), (1, -1, -1)),
    ),
    (Fraction(2, 9), *[Fraction(1, 9)] * 6, *[Fraction(1, 72)] * 8),
)
"""A lattice that a user might define."""

LATTICES = (lw.D2Q9, D3Q15, lw.D3Q19, lw.D3Q27)
FACES = ("periodic", "slip", "wall", "lid")
WALL, LID = 30, 31
"""Kinds of the walls that these boxes have; masks hold them too."""


@dataclass(frozen=True, slots=True)
class Box:
    """What a simulation is made for."""

    lattice: lw.Lattice
    shape: tuple[int, ...]
    mask: NDArray[Any]
    edges: Mapping[str, EDGE]

    @property
    def axes(self) -> str:
        return "xyz"[: len(self.shape)]


def edges_of(axes: str, faces: tuple[str, ...] = FACES) -> st.SearchStrategy[dict[str, EDGE]]:
    """Edges for every axis; a periodic axis is so at both faces."""
    others = [f for f in faces if f != "periodic"]
    pairs = st.tuples(st.sampled_from(others), st.sampled_from(others)) if others else st.nothing()
    return st.fixed_dictionaries({a: st.one_of(st.sampled_from(faces), pairs) for a in axes})


def boxes(
    lattices: tuple[lw.Lattice, ...] = LATTICES,
    faces: tuple[str, ...] = FACES,
    kinds: tuple[int, ...] = (0, WALL, LID),
    most: int = 6,
    block: int = 1,
) -> st.SearchStrategy[Box]:
    """Small boxes of up to `most` sites an axis, along x of as many blocks of sites, with at least one site that is no
    wall.
    """

    @st.composite
    def draw_box(draw: st.DrawFn) -> Box:
        lattice = draw(st.sampled_from(lattices))
        shape = tuple(draw(st.lists(st.integers(1, most), min_size=lattice.dimension, max_size=lattice.dimension)))
        shape = (*shape[:-1], shape[-1] * block)
        mask = draw(arrays.arrays(np.int32, shape, elements=st.sampled_from(kinds)))
        mask[draw(st.tuples(*[st.integers(0, n - 1) for n in shape]))] = 0
        return Box(lattice, shape, mask, draw(edges_of("xyz"[: lattice.dimension], faces)))

    return draw_box()


def populations(box: Box, seed: int = 0) -> NDArray[np.float64]:
    """Positive populations near equilibrium, (Q, *shape)."""
    rng = np.random.default_rng(seed)
    w = np.array([float(w) for w in box.lattice.weights]).reshape(-1, *[1] * len(box.shape))
    return w * rng.uniform(0.8, 1.2, (len(box.lattice), *box.shape))


def numbered(box: Box) -> NDArray[np.float64]:
    """A different integer for every population: where each goes can be seen."""
    return np.arange(len(box.lattice) * int(np.prod(box.shape)), dtype=float).reshape(len(box.lattice), *box.shape)

"""Kernels over lists of sites as one launch on a CPU: slab by slab, the sites at faces and walls
while their neighbours are in the caches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.ir.names import COUNT
from lanewise.launch.forms import Environment, HostForm, Shape
from lanewise.runtime import cpu
from lanewise.runtime.prepared import Arguments, Piece

# of a lattice: enough work to hide a call, few enough to stay in a cache
SLAB_SITES, MOST_SLABS = 32_768, 64


@dataclass(frozen=True, slots=True)
class ListedKernel:
    """A kernel over a list: spans, runs or sites, in ascending order.

    where: its arguments among those of the launch. places: the position of its list there. count:
    how long the list is.
    """

    function: cpu.RangeKernel
    where: slice
    places: int
    count: int

    def bounds(self, arguments: Arguments, units: NDArray[np.int64]) -> list[int]:
        """Where the part of each slab begins in the list."""
        first = arguments[self.places].reshape(self.count, -1)[:, 0]
        return [int(x) for x in np.searchsorted(first // cpu.SLAB_UNIT, units)]


@dataclass(frozen=True, slots=True)
class SlabLaunch:
    """These kernels, of which each runs over its part of a slab. units: where slabs begin."""

    kernels: tuple[ListedKernel, ...]
    units: NDArray[np.int64]

    def __call__(self, arguments: Arguments) -> None:
        self.flat(arguments)()

    def flat(self, arguments: Arguments) -> Callable[[], None]:
        """The run with these arguments as one function, which knows the slabs of the lists."""
        work = [
            cpu.Slabbed(k.function, arguments[k.where], k.bounds(arguments, self.units))
            for k in self.kernels
        ]
        return cpu.slab_run(work)

    def prepare(self) -> None:
        """Compile the kernels."""
        for k in self.kernels:
            cpu.prepare(k.function)


def slab_piece(
    name: str,
    forms: Sequence[HostForm],
    lists: Sequence[str],
    environment: Environment,
    shapes: Mapping[str, Shape],
) -> Piece:
    """The launch for these counts and these shapes of arrays. lists: the array of each kernel that
    says where it runs. Kernels whose lists are empty do not take part.
    """
    kernels, pieces, arguments = list[ListedKernel](), list[Piece](), list[Any]()
    for form, listed in zip(forms, lists, strict=True):
        _, count = shapes[listed]
        if not count:
            continue
        piece = form.piece(environment, shapes).moved(len(arguments))
        (places,) = (where.start for array, _, where in piece.arrays if array == listed)
        arguments += piece.arguments
        where = slice(len(arguments) - len(piece.arguments), len(arguments))
        kernels.append(ListedKernel(form.function, where, places, count))
        pieces.append(piece)
    count = int(environment[COUNT])
    slabs = max(1, min(MOST_SLABS, count // SLAB_SITES))
    units = np.linspace(0, -(-count // cpu.SLAB_UNIT), slabs + 1).astype(np.int64)
    return Piece(
        SlabLaunch(tuple(kernels), units),
        tuple(arguments),
        tuple(array for p in pieces for array in p.arrays),
        tuple(value for p in pieces for value in p.values),
        uniforms=tuple(value for p in pieces for value in p.uniforms),
        name=name,
    )

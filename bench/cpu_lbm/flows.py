"""The flows of the CPU lattice Boltzmann benchmark: BGK in a periodic box, by lanewise's own collision operator."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.kernels.sitewise import Sitewise, sitewise
from lanewise.sims.lbm.operators.bgk import make_bgk

OMEGA = 1.7
FORMS = ("pull", "in-place")


@dataclass(frozen=True, slots=True)
class Box:
    """A cube or square of `edge` sites along each axis, of D2Q9 or D3Q19, computed and stored in `precision` (f32, f64)."""

    lattice: lw.Lattice
    edge: int
    precision: str

    @property
    def shape(self) -> tuple[int, ...]:
        """(nz, ny, nx) or (ny, nx)."""
        return (self.edge,) * self.lattice.dimension

    @property
    def sites(self) -> int:
        """How many sites there are."""
        return self.edge**self.lattice.dimension

    @property
    def dtype(self) -> Any:
        """NumPy's type of the precision."""
        return np.dtype({"f32": np.float32, "f64": np.float64}[self.precision])

    @property
    def bytes_per_site(self) -> int:
        """What a step must read and write: each population once."""
        return 2 * self.lattice.size * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.lattice.name} {self.edge}^{self.lattice.dimension} {self.precision}"


def random_populations(box: Box, seed: int = 1) -> NDArray[Any]:
    """(Q, *shape): arriving deviations from the weights, about a percent of them."""
    random = np.random.default_rng(seed)
    weights = np.array([float(w) for w in box.lattice.weights], box.dtype)
    row = random.uniform(-0.01, 0.01, (box.lattice.size, box.edge)).astype(box.dtype)
    scale = random.uniform(0.5, 1, box.shape[:-1]).astype(box.dtype)
    shape = (-1, *(1,) * box.lattice.dimension)
    rows = row.reshape(box.lattice.size, *(1,) * (box.lattice.dimension - 1), box.edge)
    return weights.reshape(shape) * rows * scale[None, ..., None]


def make_flow(box: Box) -> Sitewise:
    """The product's BGK operator as a sitewise kernel."""
    return sitewise(box.lattice)(make_bgk(box.lattice, box.precision))


def steps(box: Box, form: str, populations: NDArray[Any], count: int) -> NDArray[Any]:
    """(Q, *shape): the populations that arrive after `count` steps in the periodic box."""
    flow = make_flow(box)
    sites = flow.sites(box.shape, streaming=form, device="cpu")
    flow.set_populations(sites, populations)
    flow.run(sites, count, omega=OMEGA)
    return np.asarray(flow.populations(sites))


def version(box: Box, form: str, threads: int, count: int) -> Callable[[], None]:
    """`count` steps of lanewise on so many threads, compiled and bound."""
    flow = make_flow(box)
    sites = flow.sites(box.shape, streaming=form, device="cpu")
    flow.set_populations(sites, random_populations(box))
    stepper = flow.stepper(sites, omega=OMEGA)

    def run() -> None:
        os.environ["LANEWISE_THREADS"] = str(threads)
        stepper.run(count)

    run()
    return run

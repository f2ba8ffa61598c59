"""The flows of the CPU lattice Boltzmann benchmark: BGK by lanewise's own collision operator.

"alone": the sites inside a layer of sites that are left as they are, one loop that follows links
and meets no wall or face, as lbmpy's kernel without boundary handling does. "walls": the whole step
of a box with walls at rest (half-way bounce-back) all around.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.patterns.sitewise.kernel import Sitewise, sitewise
from lanewise.patterns.sitewise.passes import splitting as site_splitting
from lanewise.patterns.sitewise.sites import Sites
from lanewise.sims.lbm.operators.bgk import make_bgk

OMEGA = 1.7
FORMS = ("pull", "in-place")
WALL = 1
SETTINGS = ("alone", "walls")


@dataclass(frozen=True, slots=True)
class Box:
    """A cube or square of `edge` sites along each axis, of D2Q9 or D3Q19, computed and stored in
    `precision` (f32, f64).
    """

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
    flow = sitewise(box.lattice)(make_bgk(box.lattice, box.precision))
    flow.wall(WALL, "wall")
    return flow


def _edges(box: Box, walls: bool) -> dict[str, str]:
    return dict.fromkeys("xyz"[: box.lattice.dimension], "wall" if walls else "periodic")


def steps(
    box: Box, form: str, populations: NDArray[Any], count: int, *, walls: bool
) -> NDArray[Any]:
    """(Q, *shape): the populations that arrive after `count` steps in the box, periodic or between
    walls.
    """
    flow = make_flow(box)
    sites = flow.sites(box.shape, edges=_edges(box, walls), streaming=form, device="cpu")
    flow.set_populations(sites, populations)
    flow.run(sites, count, omega=OMEGA)
    return np.asarray(flow.populations(sites))


def version(box: Box, form: str, setting: str, threads: int, count: int) -> Callable[[], None]:
    """`count` steps of lanewise on that many threads, compiled and bound."""
    flow = make_flow(box)
    framed = box if setting == "walls" else replace(box, edge=box.edge + 2)
    sites = flow.sites(
        framed.shape, edges=_edges(box, setting == "walls"), streaming=form, device="cpu"
    )
    if setting == "alone":
        _keep_the_inside(sites)
    flow.set_populations(sites, random_populations(framed))
    stepper = flow.stepper(sites, omega=OMEGA)

    def run() -> None:
        os.environ["LANEWISE_THREADS"] = str(threads)
        stepper.run(count)

    run()
    return run


def _keep_the_inside(sites: Sites) -> None:
    """Only the sites of the bulk follow links; a phase that follows none takes all."""
    known = sites.classes
    sites._classes = replace(known, of_site=np.where(known.of_site == 0, 0, -1).astype(np.int32))  # pyright: ignore[reportPrivateUsage]
    sites._parts[site_splitting.ANY] = np.zeros(0, np.int64)  # pyright: ignore[reportPrivateUsage]

"""One description of a flow for all solvers: the NumPy reference with operators of its own, and lanewise."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
from numpy.typing import NDArray

import lanewise as lw
from lanewise.runtime.memory import to_host
from lanewise.sims.lbm import kinds
from lanewise.sims.lbm.simulation import Simulation
from tests.lbm.links import EDGE
from tests.lbm.operators import Moments, bgk, trt
from tests.lbm.reference import Reference, Wall

Array = NDArray[np.float64]
DATA = Path(__file__).parents[2] / "data" / "lbm"


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """A flow that begins with this density and velocity (D, *shape), in equilibrium. `magic` None: BGK
    instead of TRT.
    """

    lattice: lw.Lattice
    shape: tuple[int, ...]
    tau: float
    magic: float | None = 3 / 16
    force: tuple[float, ...] | None = None
    edges: Mapping[str, EDGE] = field(default_factory=dict[str, EDGE])
    walls: Mapping[int, Wall] = field(default_factory=dict[int, Wall])
    mask: Any = None
    density: Any = 1.0
    velocity: Any = None
    storage: str = "f64"

    @property
    def viscosity(self) -> float:
        return (self.tau - 0.5) / 3


class Flow(Protocol):
    """What a test asks of a solver."""

    def run(self, steps: int) -> None: ...
    def fields(self) -> tuple[Array, Array]:
        """Density, (*shape), and velocity with half a step of the force, (D, *shape)."""
        ...

    def force(self, *names: str) -> Array: ...


class ReferenceFlow:
    """The NumPy reference in float64."""

    def __init__(self, setup: Setup) -> None:
        lattice, force = setup.lattice, setup.force
        dimension = lattice.dimension
        self.force_density = np.zeros(dimension) if force is None else np.array(force)
        if setup.magic is None:
            collide = (
                bgk(lattice, 1 / setup.tau) if force is None else trt(lattice, setup.tau, (setup.tau - 0.5) ** 2, force)
            )
        else:
            collide = trt(lattice, setup.tau, setup.magic, force)
        self.reference = Reference(lattice, setup.shape, setup.mask, setup.edges, {0: collide, **setup.walls})
        velocity = np.zeros((dimension, *setup.shape)) if setup.velocity is None else setup.velocity
        half = self.force_density.reshape(-1, *[1] * dimension) / 2
        self.reference.f = Moments.of(lattice).equilibrium(setup.density, velocity - half / setup.density)

    def run(self, steps: int) -> None:
        self.reference.run(steps)

    def fields(self) -> tuple[Array, Array]:
        density, momentum = self.reference.moments()
        return density, (momentum + self.force_density.reshape(-1, *[1] * len(density.shape)) / 2) / density

    def force(self, *names: str) -> Array:
        return self.reference.force(names)


class LanewiseFlow:
    """`lw.sims.lbm.Simulation` with its own operators, on a device."""

    def __init__(self, setup: Setup, device: str, streaming: str | None = None) -> None:
        velocity = None if setup.velocity is None else np.moveaxis(np.asarray(setup.velocity), 0, -1)
        self.simulation = Simulation(
            shape=setup.shape, lattice=setup.lattice, omega=1 / setup.tau, collision="bgk" if setup.magic is None else "trt",
            parameters=None if setup.magic is None else {"magic": setup.magic}, force=setup.force, mask=setup.mask,
            kinds={k: kinds.Wall(w.name, w.velocity) for k, w in setup.walls.items()}, edges=setup.edges,
            density=setup.density, velocity=velocity, precision="f64" if setup.storage == "f64" else "f32",
            storage=setup.storage, streaming=streaming, device=device,
        )  # fmt: skip

    def run(self, steps: int) -> None:
        self.simulation.run(steps)

    def fields(self) -> tuple[Array, Array]:
        density, velocity = (to_host(a) for a in (self.simulation.density, self.simulation.velocity))
        return density.astype(np.float64), np.moveaxis(velocity, -1, 0).astype(np.float64)

    def force(self, *names: str) -> Array:
        return np.asarray(self.simulation.force_on(*names))


def start(solver: str, setup: Setup) -> Flow:
    """The flow on the reference, or on a device of lanewise."""
    return ReferenceFlow(setup) if solver == "reference" else LanewiseFlow(setup, solver)


GPU = pytest.param("cuda", marks=pytest.mark.cuda)
each_solver = pytest.mark.parametrize("solver", ["reference", "cpu", GPU])
each_solver_slowly = pytest.mark.parametrize("solver", ["reference", pytest.param("cpu", marks=pytest.mark.slow), GPU])
"""Where every case is another kernel, which takes a CPU seconds to compile."""


def table(name: str) -> list[dict[str, str]]:
    """The rows of a file of published values in tests/data/lbm."""
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))

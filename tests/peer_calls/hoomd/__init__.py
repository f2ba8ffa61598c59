"""The calls of HOOMD-blue 4.9.1 that docs/coming_from/hoomd.md uses, with their arguments and defaults; what they compute
is written anew in NumPy. None of HOOMD's code is in here.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np


class Particles:
    N: int
    types: list[str]
    position: np.ndarray
    velocity: np.ndarray
    typeid: np.ndarray

    def __init__(self) -> None:
        self.__dict__["N"] = 0

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("N", "types"):
            raise AttributeError(f"arrays of a snapshot cannot be assigned: particles.{name}[:] = ...")
        self.__dict__[name] = value
        if name == "N":
            self.__dict__.update(
                position=np.zeros((value, 3)), velocity=np.zeros((value, 3)), typeid=np.zeros(value, int)
            )


class Snapshot:
    def __init__(self, communicator: Any = None) -> None:
        self.configuration = SimpleNamespace(box=None)
        self.particles = Particles()


class OfPairs(dict[tuple[str, str], Any]):
    def __setitem__(self, pair: tuple[str, str], value: Any) -> None:
        assert len(pair) == 2
        super().__setitem__(pair, value)


class All:
    pass


class CPU:
    pass


class Cell:
    def __init__(
        self, buffer: float, exclusions: Any = ("bond",), rebuild_check_delay: int = 1, check_dist: bool = True,
        deterministic: bool = False, mesh: Any = None, default_r_cut: float = 0.0,
    ) -> None:  # fmt: skip
        pass


class LJ:
    def __init__(
        self, nlist: Cell, default_r_cut: float | None = None, default_r_on: float = 0.0, mode: str = "none",
        tail_correction: bool = False,
    ) -> None:  # fmt: skip
        assert isinstance(nlist, Cell)
        assert (mode, tail_correction) == ("none", False)
        self.params, self.r_cut = OfPairs(), OfPairs()

    def forces(self, x: np.ndarray, side: float) -> tuple[np.ndarray, float]:
        epsilon, sigma = (self.params["A", "A"][name] for name in ("epsilon", "sigma"))
        d = x[:, None] - x[None]
        d -= side * np.round(d / side)
        r2 = np.sum(d**2, -1)
        i, j = np.nonzero((r2 < self.r_cut["A", "A"] ** 2) & (r2 > 0))
        s6 = (sigma**2 / r2[i, j]) ** 3
        pairs = (24 * epsilon * (2 * s6**2 - s6) / r2[i, j])[:, None] * d[i, j]
        force = np.stack([np.bincount(i, pairs[:, axis], len(x)) for axis in range(3)], -1)
        return force, float(np.sum(4 * epsilon * (s6**2 - s6)) / 2)


class ConstantVolume:
    def __init__(self, filter: All, thermostat: Any = None) -> None:
        assert isinstance(filter, All)
        assert thermostat is None


class Integrator:
    def __init__(
        self, dt: float, integrate_rotational_dof: bool = False, forces: Any = None, constraints: Any = None,
        methods: Any = None, rigid: Any = None, half_step_hook: Any = None,
    ) -> None:  # fmt: skip
        (self.force,), (method,), self.dt = forces, methods, dt
        assert isinstance(self.force, LJ)
        assert isinstance(method, ConstantVolume)


class ThermodynamicQuantities:
    """Its values are there after a run, also of 0 steps."""

    kinetic_energy: float
    potential_energy: float

    def __init__(self, filter: All) -> None:
        assert isinstance(filter, All)


class Simulation:
    def __init__(self, device: CPU, seed: int | None = None) -> None:
        assert isinstance(device, CPU)
        self.operations = SimpleNamespace(integrator=None, computes=[])

    def create_state_from_snapshot(self, snapshot: Snapshot, domain_decomposition: Any = (None, None, None)) -> None:
        self.side, *others = snapshot.configuration.box
        assert others == [self.side, self.side, 0, 0, 0]
        assert snapshot.particles.types == ["A"]
        self.x, self.v = snapshot.particles.position.copy(), snapshot.particles.velocity.copy()
        assert np.all((-self.side / 2 <= self.x) & (self.x < self.side / 2)), "particles outside the box"

    def run(self, steps: int, write_at_start: bool = False) -> None:
        integrator = self.operations.integrator
        force, potential = integrator.force.forces(self.x, self.side)
        for _ in range(steps):
            self.v += force * integrator.dt / 2
            self.x += self.v * integrator.dt
            force, potential = integrator.force.forces(self.x, self.side)
            self.v += force * integrator.dt / 2
        for compute in self.operations.computes:
            compute.kinetic_energy, compute.potential_energy = np.sum(self.v**2) / 2, potential


device = SimpleNamespace(CPU=CPU)
filter = SimpleNamespace(All=All)
md = SimpleNamespace(
    Integrator=Integrator,
    nlist=SimpleNamespace(Cell=Cell),
    pair=SimpleNamespace(LJ=LJ),
    methods=SimpleNamespace(ConstantVolume=ConstantVolume),
    compute=SimpleNamespace(ThermodynamicQuantities=ThermodynamicQuantities),
)

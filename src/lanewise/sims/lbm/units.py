"""Lattice units and SI: a site is 1 long, a step takes 1, the density is about 1; a `Units` says
what these are in metres.

nu = (tau - 1/2) / 3 and omega = 1 / tau for every collision operator here; p = c_s^2 rho with c_s^2
= 1/3 (Krüger et al. 2017, The Lattice Boltzmann Method, sections 3.3 and 7.2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.sims.lbm.checks import SOUND_SPEED, check_tau, warn_mach, warn_tau
from lanewise.support.checks import check_fields, checked, host_array, shown
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted

Floats = NDArray[np.floating]


@checked(InputError)
def relaxation(nu: float) -> float:
    """The rate omega = 1 / (3 nu + 1/2) for the kinematic viscosity `nu`, in sites squared a step;
    raises InputError.
    """
    _check_positive("kinematic viscosity nu", nu)
    tau = 3 * nu + 0.5
    check_tau(tau)
    return 1 / tau


@checked(InputError)
def viscosity(omega: float) -> float:
    """The kinematic viscosity (1 / omega - 1/2) / 3 of the rate `omega`; raises InputError outside
    of 0 to 2 (exclusive).
    """
    if not 0 < omega < 2:
        raise InputError(f"the relaxation rate omega is {omega:g}; wanted a number between 0 and 2")
    return (1 / omega - 0.5) / 3


@checked(InputError)
def from_reynolds(reynolds: float, length: float, velocity: float) -> float:
    """The kinematic viscosity velocity * length / reynolds, in the units of length and velocity;
    raises InputError.
    """
    for name, value in (("Reynolds number", reynolds), ("length", length), ("velocity", velocity)):
        _check_positive(name, value)
    return velocity * length / reynolds


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """A flow in SI units and the lattice that computes it.

    Attributes:
        length_m: a length of the flow, for example a diameter, in metres
        velocity_m_s: a velocity of it, in metres per second
        viscosity_m2_s: kinematic viscosity, in square metres per second (water 1.0e-6, air 1.5e-5
          at 20 degrees)
        density_kg_m3: density, in kilograms per cubic metre (water 998, air 1.2)
        sites: how many sites resolve `length_m`
        lattice_velocity: what `velocity_m_s` is in sites per step: accuracy against the number of
          steps; 0.05 to 0.1 is usual

    Raises InputError for what is not positive and for a tau that is 1/2 to rounding. Warns
    (FlowWarning) above Mach 0.2.
    """

    length_m: float
    velocity_m_s: float
    viscosity_m2_s: float
    density_kg_m3: float
    sites: float
    lattice_velocity: float = 0.05

    def __post_init__(self) -> None:
        check_fields(self, InputError)
        for field in fields(self):
            _check_positive(field.name, getattr(self, field.name))
        try:
            tau = self.tau
        except (ZeroDivisionError, OverflowError):
            raise InputError(
                "these units have a site or a step beyond the numbers of float64; wanted others"
            ) from None
        check_tau(tau)
        warn_mach(self.lattice_velocity)

    @classmethod
    @checked(InputError)
    def at_reynolds(
        cls,
        reynolds: float,
        *,
        length_m: float,
        velocity_m_s: float,
        density_kg_m3: float,
        sites: float,
        lattice_velocity: float = 0.05,
    ) -> Units:
        """The flow whose viscosity follows from its Reynolds number velocity * length /
        viscosity.
        """
        return cls(
            length_m=length_m,
            velocity_m_s=velocity_m_s,
            viscosity_m2_s=from_reynolds(reynolds, length_m, velocity_m_s),
            density_kg_m3=density_kg_m3,
            sites=sites,
            lattice_velocity=lattice_velocity,
        )

    # ------------------------------------------------------------ numbers

    @property
    def cell_m(self) -> float:
        """Distance of neighbouring sites in metres."""
        return self.length_m / self.sites

    @property
    def step_s(self) -> float:
        """Time of one step in seconds."""
        return self.cell_m * self.lattice_velocity / self.velocity_m_s

    @property
    def nu(self) -> float:
        """Kinematic viscosity in sites squared per step."""
        return self.viscosity_m2_s * self.step_s / self.cell_m**2

    @property
    def tau(self) -> float:
        """Relaxation time in steps."""
        return 3 * self.nu + 0.5

    @property
    def omega(self) -> float:
        """Relaxation rate 1 / tau."""
        return 1 / self.tau

    @property
    def reynolds(self) -> float:
        """Reynolds number velocity * length / viscosity, the same on the lattice."""
        return self.velocity_m_s * self.length_m / self.viscosity_m2_s

    @property
    def mach(self) -> float:
        """Mach number of the lattice's flow, which is not the real one's: lattice velocity over 1 /
        sqrt(3).
        """
        return self.lattice_velocity / SOUND_SPEED

    @property
    def grid_reynolds(self) -> float:
        """Reynolds number of one site; above about 10 most collision operators diverge where the
        flow is not smooth.
        """
        return self.lattice_velocity / self.nu

    @checked(InputError)
    def check(self, collision: str = "bgk") -> None:
        """Warn (FlowWarning) if this tau does not suit the collision operator of that name."""
        warn_tau(self.tau, collision)

    def describe(self) -> str:
        """All of it in a few lines."""
        return (
            f"cell {self.cell_m:.6g} m, step {self.step_s:.6g} s, "
            f"{counted(self.steps(self.length_m / self.velocity_m_s), 'step', 'steps')} for the "
            f"flow to pass {self.sites:g} sites\n"
            f"nu {self.nu:.6g}, tau {self.tau:.6g}, omega {self.omega:.6g}\n"
            f"Reynolds {self.reynolds:.6g}, per site {self.grid_reynolds:.4g}, Mach {self.mach:.4g}"
        )

    # -------------------- conversion; arrays keep their shape and float type

    def length_to_si(self, sites: ArrayLike) -> Floats:
        """Sites to metres."""
        return _scaled(sites, self.cell_m)

    def length_to_lattice(self, metres: ArrayLike) -> Floats:
        """Metres to sites."""
        return _scaled(metres, 1 / self.cell_m)

    def time_to_si(self, steps: ArrayLike) -> Floats:
        """Steps to seconds."""
        return _scaled(steps, self.step_s)

    def time_to_lattice(self, seconds: ArrayLike) -> Floats:
        """Seconds to steps, with fractions."""
        return _scaled(seconds, 1 / self.step_s)

    @checked(InputError)
    def steps(self, seconds: float) -> int:
        """The nearest whole number of steps to a time in seconds."""
        if not math.isfinite(steps := seconds / self.step_s):
            raise InputError(f"the time is {seconds:g} s; wanted a finite number of steps")
        return round(steps)

    def velocity_to_si(self, velocity: ArrayLike) -> Floats:
        """Sites per step to metres per second."""
        return _scaled(velocity, self.velocity_m_s / self.lattice_velocity)

    def velocity_to_lattice(self, velocity: ArrayLike) -> Floats:
        """Metres per second to sites per step."""
        return _scaled(velocity, self.lattice_velocity / self.velocity_m_s)

    def acceleration_to_si(self, acceleration: ArrayLike) -> Floats:
        """Sites per step squared (a body force per mass) to metres per second squared."""
        return _scaled(acceleration, self.cell_m / self.step_s**2)

    def acceleration_to_lattice(self, acceleration: ArrayLike) -> Floats:
        """Metres per second squared, for example gravity, to sites per step squared."""
        return _scaled(acceleration, self.step_s**2 / self.cell_m)

    def pressure_to_si(self, density: ArrayLike) -> Floats:
        """Lattice density, about 1, to the pressure in pascals over that at rest: (rho - 1) / 3 in
        lattice units.
        """
        return _scaled(_floats(density) - 1, self._pascals / 3)

    def pressure_to_lattice(self, pressure: ArrayLike) -> Floats:
        """Pressure in pascals over that at rest to the lattice density, about 1."""
        return _scaled(pressure, 3 / self._pascals) + 1

    def density_to_si(self, density: ArrayLike) -> Floats:
        """Lattice density to kilograms per cubic metre."""
        return _scaled(density, self.density_kg_m3)

    def density_to_lattice(self, density: ArrayLike) -> Floats:
        """Kilograms per cubic metre to the lattice density."""
        return _scaled(density, 1 / self.density_kg_m3)

    @checked(InputError)
    def force_to_si(self, force: ArrayLike, dimensions: int) -> Floats:
        """Force from lattice units to newtons (`dimensions` 3), or newtons per metre of depth
        (2).
        """
        return _scaled(force, self._newtons(dimensions))

    @checked(InputError)
    def force_to_lattice(self, force: ArrayLike, dimensions: int) -> Floats:
        """Force in newtons (`dimensions` 3), or newtons per metre of depth (2), to lattice
        units.
        """
        return _scaled(force, 1 / self._newtons(dimensions))

    @property
    def _pascals(self) -> float:
        return self.density_kg_m3 * (self.velocity_m_s / self.lattice_velocity) ** 2

    def _newtons(self, dimensions: int) -> float:
        if dimensions not in (2, 3):
            raise InputError(
                f"a force in {dimensions} dimensions; wanted 2 (newtons per metre of depth) or 3 "
                "(newtons)"
            )
        return self._pascals * self.cell_m ** (dimensions - 1)


def _floats(values: ArrayLike) -> Floats:
    array = host_array("units", values, InputError)
    if array.dtype.kind not in "fiu":
        raise InputError(f"units convert numbers, found {shown(values)}")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _scaled(values: ArrayLike, factor: float) -> Floats:
    return _floats(values) * factor


def _check_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"the {name} is {value:g}; wanted a finite number above zero")

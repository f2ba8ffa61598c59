"""Lattice and SI units: known flows, round trips, dimensions, warnings and refusals."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.sims.lbm.checks import FlowWarning
from lanewise.sims.lbm.simulation import Simulation
from lanewise.sims.lbm.units import Units, from_reynolds, relaxation, viscosity
from lanewise.support.errors import InputError

# The cylinder of Schäfer & Turek, 2D-1: D = 0.1 m, mean velocity 0.2 m/s, nu = 1e-3 m^2/s, Re = 20.
CYLINDER = Units(
    length_m=0.1, velocity_m_s=0.2, viscosity_m2_s=1e-3, density_kg_m3=1.0, sites=50, lattice_velocity=0.05
)

positive = st.floats(1e-3, 1e3)


@st.composite
def units(draw: st.DrawFn) -> Units:
    return Units.at_reynolds(
        draw(st.floats(0.1, 1e4)),
        length_m=draw(positive),
        velocity_m_s=draw(positive),
        density_kg_m3=draw(positive),
        sites=draw(st.integers(4, 4096)),
        lattice_velocity=draw(st.floats(0.001, 0.1)),
    )


def test_a_flow_by_hand() -> None:
    assert CYLINDER.cell_m == pytest.approx(0.002)
    assert CYLINDER.step_s == pytest.approx(0.0005)  # 0.05 sites of 2 mm a step are 0.2 m/s
    assert CYLINDER.nu == pytest.approx(0.125)  # 0.05 * 50 / 20
    assert CYLINDER.tau == pytest.approx(0.875)
    assert CYLINDER.omega == pytest.approx(1 / 0.875)
    assert CYLINDER.reynolds == pytest.approx(20)
    assert CYLINDER.mach == pytest.approx(0.0866025)
    assert CYLINDER.grid_reynolds == pytest.approx(0.4)
    assert CYLINDER.steps(1.0) == 2000
    assert CYLINDER.velocity_to_si([0.05, 0.0]).tolist() == pytest.approx([0.2, 0.0])
    assert CYLINDER.pressure_to_si(1.003) == pytest.approx(0.001 * 4**2)  # kg/m^3 (m/s)^2, a site a step is 4 m/s
    assert CYLINDER.force_to_si(1.0, 2) == pytest.approx(16 * 0.002)
    assert CYLINDER.force_to_si(1.0, 3) == pytest.approx(16 * 0.002**2)
    assert CYLINDER.acceleration_to_lattice(9.81) == pytest.approx(9.81 * 0.0005**2 / 0.002)


def test_described() -> None:
    assert CYLINDER.describe() == (
        "cell 0.002 m, step 0.0005 s, 1,000 steps for the flow to pass 50 sites\n"
        "nu 0.125, tau 0.875, omega 1.14286\n"
        "Reynolds 20, per site 0.4, Mach 0.0866"
    )


@given(units(), st.floats(-1e3, 1e3))
def test_round_trips(u: Units, value: float) -> None:
    near = pytest.approx(value, rel=1e-12)
    ways: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
        (u.length_to_si, u.length_to_lattice),
        (u.time_to_si, u.time_to_lattice),
        (u.velocity_to_si, u.velocity_to_lattice),
        (u.acceleration_to_si, u.acceleration_to_lattice),
        (u.density_to_si, u.density_to_lattice),
        (lambda f: u.force_to_si(f, 2), lambda f: u.force_to_lattice(f, 2)),
        (lambda f: u.force_to_si(f, 3), lambda f: u.force_to_lattice(f, 3)),
    ]
    for there, back in ways:
        assert float(back(there(value))) == near
        assert float(there(back(value))) == near
    assert float(u.pressure_to_lattice(u.pressure_to_si(value))) == pytest.approx(value, rel=1e-12, abs=1e-12)


@given(units(), st.integers(0, 10**9), st.floats(-0.49, 0.49))
def test_a_time_is_the_nearest_number_of_steps(u: Units, steps: int, beside: float) -> None:
    assert u.steps(float(u.time_to_si(steps + beside))) == steps


@given(units())
def test_dimensionless_numbers_are_the_same_on_the_lattice(u: Units) -> None:
    assert u.lattice_velocity * u.sites / u.nu == pytest.approx(u.reynolds)
    assert u.velocity_m_s * u.cell_m / u.viscosity_m2_s == pytest.approx(u.grid_reynolds)
    # Drag and pressure coefficients: force / (rho u^2 L / 2) in 2-D and / L^2 in 3-D, p / (rho u^2 / 2).
    dynamic = u.density_kg_m3 * u.velocity_m_s**2 / 2
    assert u.force_to_si(1.0, 2) / (dynamic * u.length_m) == pytest.approx(1 / (u.lattice_velocity**2 * u.sites / 2))
    assert u.force_to_si(1.0, 3) / (dynamic * u.length_m**2) == pytest.approx(
        1 / (u.lattice_velocity**2 * u.sites**2 / 2)
    )
    assert u.pressure_to_si(1.0003) / dynamic == pytest.approx(0.0001 / (u.lattice_velocity**2 / 2))
    # A Froude number, u^2 / (g L), with any g.
    assert u.lattice_velocity**2 / (u.acceleration_to_lattice(9.81) * u.sites) == pytest.approx(
        u.velocity_m_s**2 / (9.81 * u.length_m)
    )


@given(units())
def test_the_scales_agree_with_each_other(u: Units) -> None:
    assert u.length_to_si(1.0) / u.time_to_si(1.0) == pytest.approx(u.velocity_to_si(1.0))
    assert u.velocity_to_si(1.0) / u.time_to_si(1.0) == pytest.approx(u.acceleration_to_si(1.0))
    assert u.pressure_to_si(4.0) * u.length_to_si(1.0) ** 2 == pytest.approx(
        u.force_to_si(1.0, 3)
    )  # rho - 1 = 3: pressure 1
    assert u.nu * u.cell_m**2 / u.step_s == pytest.approx(u.viscosity_m2_s)


@given(st.floats(1e-6, 1e3))
def test_relaxation_and_viscosity_are_inverse(nu: float) -> None:
    assert viscosity(relaxation(nu)) == pytest.approx(nu, rel=1e-9)
    assert relaxation(nu) == pytest.approx(1 / (3 * nu + 0.5))


def test_from_reynolds() -> None:
    assert from_reynolds(100, 50, 0.1) == pytest.approx(0.05)


def test_arrays_keep_their_shape_and_float_type() -> None:
    field = np.ones((3, 4, 2), np.float32)
    assert CYLINDER.velocity_to_si(field).dtype == np.float32
    assert CYLINDER.velocity_to_si(field).shape == (3, 4, 2)
    assert CYLINDER.pressure_to_si(field[..., 0]).dtype == np.float32
    assert CYLINDER.pressure_to_lattice(field[..., 0]).dtype == np.float32
    assert CYLINDER.time_to_si(np.arange(3)).tolist() == pytest.approx([0.0, 0.0005, 0.001])
    assert (field == 1).all()  # as it was


def water(**changes: Any) -> Units:
    fields: dict[str, Any] = {
        "length_m": 0.1, "velocity_m_s": 1.0, "viscosity_m2_s": 1e-3, "density_kg_m3": 998, "sites": 100, "lattice_velocity": 0.05
    }  # fmt: skip
    return Units(**{**fields, **changes})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: water(length_m=0), "the length_m is 0; wanted a finite number above zero"),
        (lambda: water(velocity_m_s=-1), "the velocity_m_s is -1; wanted a finite number above zero"),
        (lambda: water(viscosity_m2_s=math.inf), "the viscosity_m2_s is inf; wanted a finite number above zero"),
        (lambda: water(density_kg_m3=math.nan), "the density_kg_m3 is nan; wanted a finite number above zero"),
        (
            lambda: water(viscosity_m2_s=1e-12),
            "the relaxation time tau is 0.5 + 1.5e-10, which float32 cannot tell from 0.5; a lower Reynolds number, more sites or a "
            "higher lattice velocity raise it",
        ),
        (lambda: CYLINDER.force_to_si(1.0, 1), "a force in 1 dimensions; wanted 2 (newtons per metre of depth) or 3 (newtons)"),
        (lambda: relaxation(0.0), "the kinematic viscosity nu is 0; wanted a finite number above zero"),
        (lambda: viscosity(2.0), "the relaxation rate omega is 2; wanted a number between 0 and 2"),
        (lambda: viscosity(math.nan), "the relaxation rate omega is nan; wanted a number between 0 and 2"),
        (lambda: from_reynolds(0, 1, 1), "the Reynolds number is 0; wanted a finite number above zero"),
        (lambda: from_reynolds(1, 1, -1), "the velocity is -1; wanted a finite number above zero"),
    ],
)  # fmt: skip
def test_refusals(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        make()


@pytest.mark.parametrize(
    ("speed", "message"),
    [
        (
            0.15,
            "the lattice velocity is 0.15, Mach 0.26: the density varies by about 7 %; at a lattice velocity of 0.05 that is 1 %",
        ),
        (
            0.2,
            "the lattice velocity is 0.2, Mach 0.35: a simulation refuses more than Mach 0.3, a lattice velocity of 0.1732",
        ),
    ],
)
def test_fast_lattices_are_warned_of_where_they_are_made(speed: float, message: str) -> None:
    with pytest.warns(FlowWarning, match=f"^{re.escape(message)}$") as caught:
        Units(length_m=0.1, velocity_m_s=1.0, viscosity_m2_s=1e-3, density_kg_m3=998, sites=100, lattice_velocity=speed)
    assert caught[0].filename == __file__
    with pytest.warns(FlowWarning, match=f"^{re.escape(message)}$") as caught:
        Units.at_reynolds(100, length_m=0.1, velocity_m_s=1.0, density_kg_m3=998, sites=100, lattice_velocity=speed)


@pytest.mark.parametrize(
    ("collision", "message"),
    [
        (
            "trt",
            "the relaxation time tau is 0.503; with TRT expect instability below 0.505: use another collision operator (kbc is the most "
            "stable one), more sites or a lower Reynolds number",
        ),
        (
            "kbc",
            "the relaxation time tau is 0.503; KBC often stays stable there, and what it then shows of vortices of a few sites is not "
            "resolved: use more sites or a lower Reynolds number",
        ),
    ],
)
def test_relaxation_times_just_above_a_half_are_warned_of_with_every_operator(collision: str, message: str) -> None:
    with pytest.warns(FlowWarning, match=f"^{re.escape(message)}$") as caught:
        water(viscosity_m2_s=2e-5).check(collision)
    assert caught[0].filename == __file__
    with pytest.warns(FlowWarning, match=f"^{re.escape(message)}$") as caught:
        Simulation(shape=(4, 4), viscosity=0.001, collision=collision, device="python")
    assert caught[0].filename == __file__


def test_relaxation_times_that_do_not_suit_bgk() -> None:
    stiff = water(viscosity_m2_s=2e-5)
    with pytest.warns(FlowWarning) as caught:
        stiff.check()
    assert caught[0].filename == __file__
    assert str(caught[0].message) == (
        "the relaxation time tau is 0.503; with BGK expect instability below 0.505: use another collision operator (kbc is the most "
        "stable one), more sites or a lower Reynolds number"
    )
    lazy = water(viscosity_m2_s=1e-2)
    with pytest.warns(FlowWarning) as caught:
        lazy.check("bgk")
    assert str(caught[0].message) == (
        "the relaxation time tau is 2; with BGK half-way walls are misplaced above 1: a channel of 20 sites is 2.8 % too fast; use TRT, "
        "fewer sites or a lower lattice velocity"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lazy.check("cumulant")
        water().check()
        water(lattice_velocity=0.1)  # the usual lid: Mach 0.17

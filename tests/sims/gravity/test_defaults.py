"""What nobody chooses passes the command's own check of energies, for every initial condition; and zero has no sign."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lanewise.sims.common.commands import real_number
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions
from lanewise.sims.gravity.initial import INITIAL_CONDITIONS
from lanewise.sims.gravity.runner import start

SIZES = {name: c.bodies or c.minimum for name, c in INITIAL_CONDITIONS.items()}


def check(name: str, bodies: int, steps: int, seed: int) -> None:
    drawn = {"seed": seed} if INITIAL_CONDITIONS[name].random else {}
    run = start(ic=name, bodies=bodies, steps=steps, **drawn)
    run.execute()
    assert run.state.warning == ""
    assert math.isfinite(run.state.history[-1].total)


@pytest.mark.parametrize("name", INITIAL_CONDITIONS)
def test_defaults_pass_their_own_check(name: str) -> None:
    """As long as a cluster needs to collapse and a binary for half a period."""
    scalable = INITIAL_CONDITIONS[name].bodies is None
    for bodies in (max(2, SIZES[name]), 150) if scalable else (SIZES[name],):
        check(name, bodies, 1500 if bodies < 100 or name == "uniform-sphere" else 600, 1)


def test_burraus_problem_is_burraus() -> None:
    """Past the first close encounter, at 0.01 and t = 1.88: without softening, and with all of the energy."""
    run = start(ic="pythagorean", steps=100_000)
    s = run.state.settings
    assert (s.softening, s.dt, s.integrator, s.precision) == (0.0, 2e-5, "yoshida4", "f64")
    run.execute()
    assert run.state.simulation.time == pytest.approx(2.0)
    assert run.state.history[-1].total == pytest.approx(-769 / 60, rel=1e-10)
    assert run.state.warning == ""


@pytest.mark.parametrize(
    ("name", "value"), [("softening", 0.05), ("dt", 1e-3), ("integrator", "leapfrog"), ("precision", "f32")]
)
def test_what_is_chosen_goes_before_what_an_initial_condition_brings(name: str, value: float | str) -> None:
    """Even where it is the default of other initial conditions."""
    settings = start(ic="pythagorean", steps=1, **{name: value}).state.settings  # pyright: ignore[reportArgumentType]
    brought = {"softening": 0.0, "dt": 2e-5, "integrator": "yoshida4", "precision": "f64"}
    assert {n: getattr(settings, n) for n in brought} == {**brought, name: value}


@pytest.mark.parametrize("name", INITIAL_CONDITIONS)
def test_what_initial_conditions_bring_are_settings(name: str) -> None:
    assert INITIAL_CONDITIONS[name].method.keys() <= {"dt", "integrator", "precision"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bodies", [2, 6, 7, 10, 30, 400, 4000])
@pytest.mark.parametrize("name", INITIAL_CONDITIONS)
def test_defaults_of_all_sizes_pass_their_own_check(name: str, bodies: int, seed: int) -> None:
    condition = INITIAL_CONDITIONS[name]
    if condition.bodies is not None and bodies != 2:
        pytest.skip("it has one size")
    check(name, condition.bodies or max(bodies, condition.minimum), 3000 if bodies < 1000 else 1600, seed)


@pytest.mark.parametrize("name", ["plummer", "uniform-sphere"])
def test_the_softening_is_half_the_distance_of_neighbours(name: str) -> None:
    """Of a cube for each body, in the densest region at the start."""
    p = make_initial_conditions(name, 20_000, 2)
    inner = np.linalg.norm(p.position, axis=1) < 0.25
    density = inner.sum() / (4 / 3 * math.pi * 0.25**3)
    assert p.softening == pytest.approx(0.5 * density ** (-1 / 3), rel=0.15)


def test_few_bodies_of_galaxies_are_softened_more() -> None:
    """Three bodies of a disc are no disc, but three bodies that meet."""
    few = [make_initial_conditions("galaxies", n, 1).softening for n in (6, 20, 400, 3000)]
    assert few == sorted(few, reverse=True)
    assert few[0] == pytest.approx(0.5 * (2 * 3 / (4 * math.pi * 0.21**3)) ** (-1 / 3), rel=0.3)
    assert [make_initial_conditions("galaxies", n, 1).softening for n in (4000, 9000)] == [0.02, 0.02]


def test_zero_has_no_sign() -> None:
    assert math.copysign(1.0, real_number("-0.0")) == 1.0
    bodies = make_bodies(make_initial_conditions("two-body", 2))
    simulation = Simulation(bodies, softening=-0.0)
    assert math.copysign(1.0, simulation.softening) == 1.0
    simulation.softening = -0.0
    assert math.copysign(1.0, simulation.softening) == 1.0
    run = start(ic="two-body", softening=-0.0, steps=1)
    assert math.copysign(1.0, run.state.settings.softening) == 1.0

"""The cases: what they are made of, what they refuse, and what they say of flows whose solution is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.sims.lbm.arguments import check_geometry, check_initial
from lanewise.sims.lbm.cases import CASES, Case, Setup, State, find_case
from lanewise.sims.lbm.cases.cavity import REYNOLDS, deviations, table
from lanewise.sims.lbm.cases.cylinder import CylinderScale, pressure_difference
from lanewise.sims.lbm.cases.duct import CENTRE, MEAN, section
from lanewise.sims.lbm.cases.oscillation import oscillation
from lanewise.sims.lbm.cases.registry import Series, between_walls, interpolate, middle
from lanewise.sims.lbm.cases.stream import BODY, shedding
from lanewise.sims.lbm.cases.taylor_green import planar_fields
from lanewise.sims.lbm.checks import check_mach, check_tau
from lanewise.support.errors import InputError

NOTHING = Series((), np.empty(0, np.int64), np.empty((0, 0)))  # of a run without a probe
NAMES = ["cavity", "channel", "cylinder", "duct", "karman", "sphere", "taylor-green"]


def all_setups() -> list[tuple[Case, Setup]]:
    return [
        (case, case.setup(size=8, lattice=lattice, drive=drive))
        for case in CASES.values()
        for lattice in case.lattices
        for drive in (case.drives or (None,))
    ]  # fmt: skip


def test_the_cases_are_found() -> None:
    assert list(CASES) == NAMES
    with pytest.raises(InputError, match="unknown case 'pipe'; wanted one of cavity, channel, cylinder, duct, karman"):
        find_case("pipe")


@pytest.mark.parametrize(("case", "setup"), all_setups(), ids=lambda x: x.name if isinstance(x, Case) else x.lattice)
def test_every_case_fits_together(case: Case, setup: Setup) -> None:
    geometry = check_geometry(setup.shape, setup.mask, setup.kinds, setup.edges)
    check_initial(setup.shape, 1.0 if setup.density is None else setup.density, setup.velocity, setup.gradient)
    check_tau(3 * setup.viscosity + 0.5)
    check_mach([setup.speed])
    assert (setup.steps >= 1, setup.length > 0) == (True, True)
    names = {wall.name for wall in geometry.walls.values()}
    used = {e for edge in setup.edges.values() for e in ([edge] if isinstance(edge, str) else edge)}
    assert used - {"periodic", "slip", "outflow"} <= names
    if setup.mask is not None:
        assert set(np.unique(setup.mask)) - {0} <= set(setup.kinds)
    if setup.velocity is not None:
        assert not np.any(setup.velocity[geometry.solid(setup.shape)])
    assert case.collision in ("bgk", "trt", "mrt")


def test_reynolds_numbers_are_met() -> None:
    for case, setup in all_setups():
        speed = setup.speed * 2 / 3 if case.name == "cylinder" else setup.speed
        assert speed * setup.length / setup.viscosity == pytest.approx(case.re)


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "re": ("cavity", {"re": 0.0}, "the Reynolds number is 0; wanted a finite number above zero"),
    "size": ("cavity", {"size": 3}, "the size is 3; wanted 4 to 1,048,576 sites along a side"),
    "speed": ("cavity", {"speed": -0.1}, "the speed is -0.1; wanted a finite number above zero, in sites per step"),
    "lattice": ("duct", {"lattice": "D2Q9"}, "duct runs on D3Q19, D3Q27, found lattice 'D2Q9'; did you mean 'D3Q19'?"),
    "drive": ("channel", {"drive": "wind"}, "channel has no way 'wind' to drive it; wanted one of body-force, pressure"),
    "only drive": ("duct", {"drive": "pressure"}, "duct has no way 'pressure' to drive it; it has only one"),
    "obstacle": (
        "duct", {"obstacle": lambda shape, centre, width: np.zeros(shape, bool)},
        "duct has no obstacle that a mask or a mesh could replace; wanted karman or sphere",
    ),
    "empty": (
        "karman", {"obstacle": lambda shape, centre, width: np.zeros(shape, bool)},
        "the obstacle has no solid site; wanted at least one: is the mask inverted, or the mesh too small?",
    ),
    "full": (
        "karman", {"obstacle": lambda shape, centre, width: np.ones(shape, bool), "size": 4},
        "the obstacle has 48 solid sites in the first column of x, where the fluid flows through; leave both columns free",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    case, wishes, message = REFUSED[name]
    with pytest.raises(InputError) as caught:
        CASES[case].setup(**wishes)
    assert str(caught.value) == message


def test_another_body_sets_the_length() -> None:
    def bar(shape: tuple[int, ...], centre: tuple[float, ...], width: float) -> Any:
        solid = np.zeros(shape, bool)
        solid[10:15, 20:22] = True
        return solid

    setup = CASES["karman"].setup(size=4, obstacle=bar)
    assert (setup.length, int((setup.mask == BODY).sum())) == (5, 10)
    assert setup.viscosity == pytest.approx(0.1 * 5 / 100)


# ------------------------------------------------------------ numbers


@given(st.lists(st.floats(-2, 2), min_size=4, max_size=4), st.integers(2, 30))
def test_interpolation_is_exact_for_cubics(coefficients: list[float], n: int) -> None:
    polynomial = np.polynomial.Polynomial(coefficients)
    places = (np.arange(n + 2) / (n + 1)) ** 1.5
    wanted = np.linspace(0, 1, 17)
    assert interpolate(places, polynomial(places), wanted) == pytest.approx(polynomial(wanted), abs=1e-9)


def test_walls_are_nodes_and_the_middle_is_between_sites() -> None:
    places, values = between_walls([2.0, 4.0], low=1.0, high=5.0)
    assert (list(places), list(values)) == ([0.0, 0.25, 0.75, 1.0], [1.0, 2.0, 4.0, 5.0])
    field = np.arange(12.0).reshape(3, 4)
    assert list(middle(field, 0)) == [4, 5, 6, 7]
    assert list(middle(field, 1)) == [1.5, 5.5, 9.5]


@pytest.mark.parametrize("re", REYNOLDS)
def test_the_tables_begin_and_end_at_walls_without_the_misprint(re: int) -> None:
    for component in ("u", "v"):
        places, values = table(component, re)
        assert (places[0], places[-1], values[0]) == (0.0, 1.0, 0.0)
        assert values[-1] == (1.0 if component == "u" else 0.0)
        assert (np.diff(places) > 0).all()
    assert (0.9063 in table("v", re)[0]) == (re != 400)


def test_deviations_are_those_of_the_field() -> None:
    n, lid = 64, 0.1
    centres = (np.arange(n) + 0.5) / n
    velocity = np.zeros((n, n, 2))
    velocity[..., 0] = lid * interpolate(*table("u", 1000), centres)[:, None]
    velocity[..., 1] = lid * interpolate(*table("v", 1000), centres)[None, :]
    found = deviations(velocity, lid, 1000)
    assert found["ghia_u_deviation"] < 0.03
    assert found["ghia_v_deviation"] < 0.03
    velocity[..., 0] += 0.5 * lid
    assert deviations(velocity, lid, 1000)["ghia_u_deviation"] == pytest.approx(0.5, abs=0.03)
    assert deviations(velocity, lid, 250) == {}


@given(st.floats(5, 20), st.floats(0, 6), st.floats(-3, 3))
def test_frequencies_of_a_sine_that_begins_with_noise(periods: float, phase: float, mean: float) -> None:
    times = np.arange(0, 4000, 5.0)
    values = mean + np.sin(2 * np.pi * periods * times / 2000 + phase)
    values[:200] += 5
    found = oscillation(times, values)
    assert found is not None
    assert found.frequency == pytest.approx(periods / 2000, rel=5e-3)
    assert found.spread < 0.05


def test_nothing_oscillates_in_a_constant_or_a_short_signal() -> None:
    assert oscillation(np.arange(100), np.ones(100)) is None
    assert oscillation([], []) is None
    assert oscillation(np.arange(40), np.sin(2 * np.pi * np.arange(40) / 20)) is None


def test_extremes_leave_out_what_does_not_repeat() -> None:
    """A drag of two oscillations a period, and sound of another frequency that is as large."""
    times = np.arange(0, 4000, 2.0)
    phase = 2 * np.pi * times / 97
    found = oscillation(times, np.sin(phase))
    assert found is not None
    drag = 3 + 0.1 * np.cos(2 * phase) + 0.1 * np.sin(2 * np.pi * times / 61.7)
    assert found.extremes(times, drag) == pytest.approx((2.9, 3.1), abs=0.01)
    few = slice(None, None, 12)  # four samples a period are too few for a series: the raw extremes
    coarse = oscillation(times[few], np.sin(phase[few]))
    assert coarse is not None
    assert coarse.extremes(times[few], drag[few])[1] > 3.15


def test_shedding_gives_strouhal_and_means() -> None:
    steps = np.arange(0, 20_000, 20)
    lift, drag = 0.3 * np.sin(2 * np.pi * steps / 1000), 1.4 + 0.02 * np.cos(4 * np.pi * steps / 1000)
    values = np.column_stack([drag, lift, drag, lift])
    series = Series(("force_x", "force_y", "drag", "lift"), steps, values)
    found = shedding(series, 16, 0.1)
    assert found["strouhal"] == pytest.approx(16 / 0.1 / 1000, rel=1e-3)
    assert (found["drag"], found["lift_max"]) == (pytest.approx(1.4, abs=1e-3), pytest.approx(0.3, rel=1e-2))
    noise = np.random.default_rng(0).normal(size=len(steps))
    noisy = Series(series.names, steps, np.column_stack([drag, noise, drag, noise]))
    assert "strouhal" not in shedding(noisy, 16, 0.1)
    assert shedding(NOTHING, 16, 0.1) == {}


@pytest.mark.parametrize("every", [20, 90, 240])
@pytest.mark.parametrize("growth", [-1e-3, -2e-4, 0.0, 2e-4])
def test_what_dies_away_is_not_shed(growth: float, every: int) -> None:
    """The sound of the start has equal periods, too, and its frequency is that of the box."""
    steps = np.arange(0, 20_000, every)
    lift = 1.7 + 0.3 * np.exp(growth * (steps - 10_000)) * np.sin(2 * np.pi * steps / 1000)
    series = Series(("force_x", "force_y", "drag", "lift"), steps, np.column_stack([lift] * 4))
    found = shedding(series, 16, 0.1)
    assert ("strouhal" in found) == (growth >= 0)
    assert ("measured_at_step" in found) == (growth < 0)


@pytest.mark.parametrize("n", [8, 33])
def test_the_duct_is_the_solution_of_poissons_equation(n: int) -> None:
    """With the wall values 0, the five-point Laplacian of the series is -1 up to its own error."""
    u = section(8 * n)
    laplacian = (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]) * (8 * n) ** 2
    assert laplacian[n:-n, n:-n] == pytest.approx(-1, abs=2e-3)
    assert u.max() == pytest.approx(CENTRE, rel=2e-3)
    assert u.mean() == pytest.approx(MEAN, rel=2e-3)


def test_the_vortices_have_the_gradient_they_say() -> None:
    n, u0 = 96, 0.05
    k = 2 * np.pi / n
    y, x = np.meshgrid(k * np.arange(n), k * np.arange(n), indexing="ij")
    velocity, gradient, density = planar_fields(x, y, k, u0)
    for a, axis in ((0, 1), (1, 0)):
        difference = (np.roll(velocity, -1, axis) - np.roll(velocity, 1, axis)) / 2
        assert gradient[..., a, :] == pytest.approx(difference, abs=u0 * k**3)
    assert gradient[..., 0, 0] + gradient[..., 1, 1] == pytest.approx(0, abs=1e-15)
    assert density.mean() == pytest.approx(1)


@pytest.mark.slow_cases("D3Q19")
@pytest.mark.parametrize("lattice", ["D3Q19"])
def test_the_stretched_vortices_have_the_gradient_they_say(lattice: str) -> None:
    setup = CASES["taylor-green"].setup(size=24, lattice=lattice)
    for a in range(3):
        difference = (np.roll(setup.velocity, -1, 2 - a) - np.roll(setup.velocity, 1, 2 - a)) / 2
        assert setup.gradient[..., a, :] == pytest.approx(difference, abs=setup.speed / setup.length**3)
    assert np.trace(setup.gradient, axis1=-2, axis2=-1) == pytest.approx(0, abs=1e-15)


def test_a_decayed_vortex_has_no_error() -> None:
    setup = CASES["taylor-green"].setup(size=16)
    rate = 2 * setup.viscosity * (2 * np.pi / 16) ** 2
    state = State(30, setup.density, setup.velocity * np.exp(-30 * rate))
    found = setup.results(state, NOTHING)
    assert found["velocity_error"] == pytest.approx(0, abs=1e-12)
    assert found["decay_rate_error"] == pytest.approx(0, abs=1e-12)


def test_the_parabola_has_no_error() -> None:
    setup = CASES["channel"].setup(size=10)
    y = np.arange(10) + 0.5
    velocity = np.zeros((*setup.shape, 2))
    velocity[..., 0] = (4 * setup.speed * y * (10 - y) / 100)[:, None]
    assert setup.results(State(1, None, velocity), NOTHING)["profile_error"] == pytest.approx(0, abs=1e-15)
    velocity[4] *= 1.1
    assert setup.results(State(1, None, velocity), NOTHING)["profile_error"] == pytest.approx(0.1, rel=0.02)


def test_the_pressure_difference_is_taken_at_the_cylinder_in_benchmark_units() -> None:
    scale = CylinderScale(100.0, 0.05, 20.0)
    x = np.arange(220)
    density = np.broadcast_to(1 - 3 * 1e-4 * x, (41, 220))
    assert pressure_difference(density, scale) == pytest.approx(1e-4 * 10 * (0.2 / 0.05) ** 2)


@dataclass
class Still:
    """A flow that a probe may look at."""

    step: int
    velocity: Any
    density: Any = None

    def force_on(self, *names: str) -> Any:
        assert names == ("obstacle",)
        return np.array([2.0, -1.0, 0.5])


def test_probes_measure_energies_and_coefficients() -> None:
    probe = CASES["taylor-green"].setup(size=16).probe
    assert probe is not None
    assert probe.measure(Still(0, np.full((4, 4, 2), 0.1))) == (pytest.approx(0.01),)
    setup = CASES["sphere"].setup(size=8)
    assert setup.probe is not None
    values = setup.probe.measure(Still(0, None))
    scale = 0.1**2 * np.pi * 64 / 4 / 2
    assert values == (2.0, -1.0, 0.5, *(pytest.approx(f / scale) for f in (2.0, -1.0, 0.5)))
    assert setup.probe.names == ("force_x", "force_y", "force_z", "drag", "lift", "side_force")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_settings_are_kept_as_they_are_given_back(case: Case) -> None:
    """A whole number becomes a float of the same file, whether a run was cut or not: 100 and 100.0 are other bytes."""
    for request in (case.request(), case.request(re=30, speed=1)):
        assert (type(request.re), type(request.speed)) == (float, float)

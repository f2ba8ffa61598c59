"""Boundaries of open faces: the density and velocity that are wanted, exactly; what they leave alone; a channel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.language.lattices.base import Lattice
from lanewise.sims.lbm.boundaries import BOUNDARIES, find_boundary
from lanewise.sims.lbm.boundaries.faces import make_face
from lanewise.sims.lbm.operators import OPERATORS
from lanewise.support.errors import InputError
from tests.sims.lbm.operators.arrays import Array, Vectors, equilibrium, moments, on_arrays, stream
from tests.sims.lbm.operators.test_conservation import each_lattice, guo_source, some_flow
from tests.sims.lbm.operators.test_relations import hermite, second_moment

FORCE = np.array([1e-2, -2e-3, 3e-3])
VELOCITY = np.array([0.05, -0.03, 0.02])
FACES = {"D2Q9": ("x-", "x+", "y-", "y+"), "D3Q19": ("x-", "z+"), "D3Q27": ("x+", "y-")}
CASES = [(lattice, face) for lattice in (lw.D2Q9, lw.D3Q19, lw.D3Q27) for face in FACES[lattice.name]]
each_case = pytest.mark.parametrize(("lattice", "face"), CASES, ids=lambda x: getattr(x, "name", x))
each_force = pytest.mark.parametrize("forced", [False, True], ids=["free", "forced"])
OPEN = [b for b in BOUNDARIES.values() if b.collides]


def values(lattice: Lattice, name: str, forced: bool, u: Any = VELOCITY, density: float = 1.03) -> dict[str, Any]:
    """What the parameters of a boundary are given."""
    dimension = lattice.dimension
    known = {"velocity": Vectors(np.asarray(u)[:dimension]), "profile": 0.5, "density": density}
    return {p: known[p] for p in BOUNDARIES[name].parameters} | (
        {"force": Vectors(FORCE[:dimension])} if forced else {}
    )


def completed(name: str, lattice: Lattice, face: str, f: Array, forced: bool = False, **wishes: Any) -> Array:
    """A copy of f after the boundary, before any collision."""
    result = f.copy()
    maker = BOUNDARIES[name].maker
    on_arrays(maker(lattice, "f64", face, forced))(result, **values(lattice, name, forced, **wishes))
    return result


@each_case
@each_force
@pytest.mark.parametrize("name", [b.name for b in OPEN])
def test_density_and_velocity_are_those_wanted(name: str, lattice: Lattice, face: str, forced: bool) -> None:
    f, dimension = some_flow(lattice), lattice.dimension
    deviation, momentum = moments(lattice, completed(name, lattice, face, f, forced))
    shift = 0.5 * FORCE[:dimension, None] * forced
    u = (momentum + shift) / (1 + deviation)
    if "velocity" in BOUNDARIES[name].parameters:
        np.testing.assert_allclose(u, np.broadcast_to(0.5 * VELOCITY[:dimension, None], u.shape), rtol=0, atol=1e-15)
    else:
        np.testing.assert_allclose(deviation, 0.03, rtol=0, atol=1e-15)
        axis = "xyz".index(face[0])
        np.testing.assert_allclose(np.delete(u, axis, 0), 0, rtol=0, atol=1e-15)
    # The normal momentum and the density are those of the known populations, whichever of them is given; where the
    # fluid leaves
    # through a given pressure, the momentum flux through the face is that of the equilibrium, unless the speed would
    # change by half.
    sides = make_face(lattice, face)
    left = 2 * f[[q.index for q in sides.leaving]].sum(0)
    known = f[[q.index for q in sides.grazing]].sum(0) + left
    inward = np.array(sides.inward.velocity)
    pull = float(inward @ FORCE[:dimension]) * forced
    plain = deviation - known
    if "density" in BOUNDARIES[name].parameters:
        outward = -(plain + 0.5 * pull) / (1 + deviation)
        speed = -(inward @ u)
        by_flux = -((deviation / 3 + (1 + deviation) * speed**2 + speed * pull - left) + 0.5 * pull) / (1 + deviation)
        most = 0.5 * np.maximum(outward, 0)
        free = np.abs(speed - outward) < most - 1e-12
        np.testing.assert_allclose(speed[free], by_flux[free], rtol=0, atol=2e-15)
        np.testing.assert_allclose(np.abs(speed - outward)[~free], most[~free], rtol=0, atol=2e-15)
    else:
        np.testing.assert_allclose(inward @ momentum, plain, rtol=0, atol=2e-15)


@each_case
@each_force
@pytest.mark.parametrize("name", [b.name for b in OPEN])
def test_what_comes_through_the_face_is_forgotten(name: str, lattice: Lattice, face: str, forced: bool) -> None:
    f = some_flow(lattice)
    other = f.copy()
    other[[q.index for q in make_face(lattice, face).unknown]] = 7.0
    np.testing.assert_array_equal(
        completed(name, lattice, face, f, forced), completed(name, lattice, face, other, forced)
    )


@each_case
@pytest.mark.parametrize("name", [b.name for b in OPEN if "zou-he" in b.name])
def test_zou_he_changes_unknown_populations_alone(name: str, lattice: Lattice, face: str) -> None:
    f, sides = some_flow(lattice), make_face(lattice, face)
    result = completed(name, lattice, face, f)
    kept = [q.index for q in (*(() if "pressure" in name else sides.grazing), *sides.leaving)]
    np.testing.assert_array_equal(result[kept], f[kept])


def test_zou_he_is_its_published_form() -> None:
    """Zou & He (1997), eq. 18 to 20, at a left face of D2Q9, for whole populations."""
    lattice, f = lw.D2Q9, some_flow(lw.D2Q9)
    w = np.array([float(x) for x in lattice.weights])[:, None]
    g = {lattice.velocities[i]: row for i, row in enumerate(f + w)}
    ux, uy = 0.5 * VELOCITY[:2]
    density = (g[0, 0] + g[0, 1] + g[0, -1] + 2 * (g[-1, 0] + g[-1, 1] + g[-1, -1])) / (1 - ux)
    wanted = {
        (1, 0): g[-1, 0] + 2 / 3 * density * ux,
        (1, 1): g[-1, -1] - (g[0, 1] - g[0, -1]) / 2 + density * ux / 6 + density * uy / 2,
        (1, -1): g[-1, 1] + (g[0, 1] - g[0, -1]) / 2 + density * ux / 6 - density * uy / 2,
    }
    result = completed("velocity-zou-he", lattice, "x-", f) + w
    for velocity, row in wanted.items():
        np.testing.assert_allclose(result[lattice.velocities.index(velocity)], row, rtol=0, atol=1e-15)


@each_case
@pytest.mark.parametrize("name", [b.name for b in BOUNDARIES.values()])
def test_the_equilibrium_that_is_wanted_stays(name: str, lattice: Lattice, face: str) -> None:
    """Where density and velocity are the wanted ones everywhere, nothing happens."""
    axis = "xyz".index(face[0])
    u = np.where(np.arange(lattice.dimension) == axis, 0.04, 0.0)
    f = equilibrium(lattice, np.full(3, 0.03), np.broadcast_to(u[:, None], (lattice.dimension, 3)))
    result = completed(name, lattice, face, f, u=2 * u, density=1.03)
    np.testing.assert_allclose(result, f, rtol=0, atol=1e-16)


@each_case
@each_force
@pytest.mark.parametrize("name", ["velocity", "pressure"])
def test_regularised_sites_hold_equilibrium_and_stress(name: str, lattice: Lattice, face: str, forced: bool) -> None:
    result = completed(name, lattice, face, some_flow(lattice), forced)
    deviation, momentum = moments(lattice, result)
    u = (momentum + 0.5 * FORCE[: lattice.dimension, None] * forced) / (1 + deviation)
    left = result - equilibrium(lattice, deviation, u)
    if forced:  # -S / 2 has a part of first order, which carries -F / 2
        c, w = np.array(lattice.velocities, np.float64), np.array([float(x) for x in lattice.weights])
        left = left + (1.5 * w * (c @ FORCE[: lattice.dimension]))[:, None]
    np.testing.assert_allclose(left, hermite(lattice, second_moment(lattice, left)), rtol=0, atol=1e-15)


@each_lattice
def test_a_far_field_with_a_force_is_after_its_collision(lattice: Lattice) -> None:
    """g_eq + S / 2: what the collision makes of g_eq - S / 2."""
    dimension = lattice.dimension
    f = completed("far-field", lattice, "x-", some_flow(lattice), forced=True)
    u = np.broadcast_to(0.5 * VELOCITY[:dimension, None], (dimension, f.shape[1]))
    wanted = equilibrium(lattice, np.full(f.shape[1], 0.03), u) + 0.5 * guo_source(lattice, u, FORCE[:dimension])
    np.testing.assert_allclose(f, wanted, rtol=0, atol=1e-16)


@each_case
@each_force
@pytest.mark.parametrize("name", [b.name for b in OPEN])
def test_observers_see_what_the_boundary_makes(name: str, lattice: Lattice, face: str, forced: bool) -> None:
    f = some_flow(lattice)
    observe = on_arrays(BOUNDARIES[name].observer(lattice, "f64", face, forced=forced))
    deviation, u = observe(f, **values(lattice, name, forced))
    found, momentum = moments(lattice, completed(name, lattice, face, f, forced))
    shift = 0.5 * FORCE[: lattice.dimension, None] * forced
    np.testing.assert_allclose(deviation, found, rtol=0, atol=2e-15)
    for a, b in zip(u, (momentum + shift) / (1 + found), strict=True):
        np.testing.assert_allclose(np.broadcast_to(a, b.shape), b, rtol=0, atol=2e-15)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("operator", list(OPERATORS))
@pytest.mark.parametrize("name", list(BOUNDARIES))
@each_force
def test_the_collision_follows(name: str, operator: str, forced: bool) -> None:
    """The function of a kind is the boundary and then the collision, whatever the names in both are."""
    lattice, f = lw.D2Q9, some_flow(lw.D2Q9)
    collide = OPERATORS[operator].make(lattice, "f64", forced=forced)
    names = {"velocity": "deviation", "density": "moments", "profile": "given"}  # names that the collision has, too
    mine = {n: names[n] for n in BOUNDARIES[name].parameters}
    function = BOUNDARIES[name].make(lattice, "f64", "y+", collide, forced=forced, names=mine)
    wishes = {mine.get(n, n): v for n, v in values(lattice, name, forced).items()}
    rates: dict[str, Any] = {"omega": 1.3, **OPERATORS[operator].parameters} if BOUNDARIES[name].collides else {}
    result = f.copy()
    on_arrays(function)(result, **wishes, **rates)
    wanted = completed(name, lattice, "y+", f, forced)
    if BOUNDARIES[name].collides:
        force = {"force": wishes["force"]} if forced else {}
        on_arrays(collide)(wanted, **rates, **force)
    np.testing.assert_array_equal(result, wanted)


SPEED = 0.002


def channel(inlet: str, outlet: str, steps: int, **options: float) -> tuple[Array, Array]:
    """Density less 1, and velocity, of all columns but the first and the last of `channel_populations`."""
    deviation, momentum = moments(lw.D2Q9, channel_populations(inlet, outlet, steps, **options))
    return deviation[:, 1:-1], (momentum / (1 + deviation))[:, :, 1:-1]


def channel_populations(
    inlet: str, outlet: str, steps: int, speed: float = SPEED, omega: float = 1.25, denser: float = 0.0
) -> Array:
    """What arrives in a channel 6 sites wide along x, (9, 6, 16): a parabola comes in at x-, the density is 1 at x+.

    Or the density is `denser` than 1 at an inlet of given pressure.
    """
    lattice, shape = lw.D2Q9, (6, 16)
    y = np.arange(shape[0]) + 0.5
    profile = 4 * y * (shape[0] - y) / shape[0] ** 2
    trt = OPERATORS["trt"].make(lattice, "f64")
    collide = on_arrays(trt)
    first, last = (on_arrays(BOUNDARIES[b].make(lattice, "f64", f, trt)) for b, f in ((inlet, "x-"), (outlet, "x+")))
    rates = {"omega": omega, "magic": 3 / 16}
    f = np.zeros((9, *shape))
    for _ in range(steps):
        middle, low, high = f[:, :, 1:-1].copy(), f[:, :, 0].copy(), f[:, :, -1].copy()
        collide(middle, **rates)
        if "pressure" in inlet:
            first(low, density=1 + denser, **rates)
        else:
            first(low, velocity=Vectors([speed, 0.0]), profile=profile, **rates)
        last(high, density=1.0, **rates)
        after = np.concatenate([low[:, :, None], middle, high[:, :, None]], axis=2)
        f = stream(after, lattice)
        for q in lattice:
            if q.y:
                face = 0 if q.y > 0 else -1
                f[q.index, face] = after[q.opposite.index, face]
    return f


@pytest.mark.slow_cases("velocity-pressure")
@pytest.mark.parametrize(("inlet", "outlet"), [("velocity", "pressure"), ("velocity-zou-he", "pressure-zou-he")])
def test_a_channel_keeps_its_parabola(inlet: str, outlet: str) -> None:
    """The pressure falls by 8 nu u_max / H^2 a site, dp = drho / 3."""
    deviation, u = channel(inlet, outlet, 1000)
    y = np.arange(6) + 0.5
    parabola = SPEED * 4 * y * (6 - y) / 36
    np.testing.assert_allclose(u[0], np.broadcast_to(parabola[:, None], u[0].shape), rtol=0, atol=0.003 * SPEED)
    np.testing.assert_allclose(u[1], 0, rtol=0, atol=0.002 * SPEED)
    fall = -np.diff(deviation.mean(0))[3:-3].mean() / 3
    assert fall == pytest.approx(8 * (0.8 - 0.5) / 3 * SPEED / 36, rel=0.003)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "wanted"), [("", 0.0020), ("-zou-he", 0.0024)])
def test_the_last_column_keeps_its_parabola(kind: str, wanted: float) -> None:
    """The errors that docs/lbm.md tells, of the largest velocity."""
    f = channel_populations("velocity" + kind, "pressure" + kind, 1000)
    deviation, momentum = moments(lw.D2Q9, completed("pressure" + kind, lw.D2Q9, "x+", f[:, :, -1], density=1.0))
    y = np.arange(6) + 0.5
    error = np.abs(momentum[0] / (1 + deviation) / SPEED - 4 * y * (6 - y) / 36).max()
    assert error == pytest.approx(wanted, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["", "-zou-he"])
@pytest.mark.parametrize("inlet", ["velocity", "pressure"])
def test_a_channel_comes_to_rest_at_every_step(inlet: str, kind: str) -> None:
    """After an odd number of steps and after an even one: no site goes on alternating."""
    even, odd = (
        channel(inlet + kind, "pressure" + kind, steps, speed=0.03, omega=1.7, denser=0.03)[1] for steps in (1600, 1601)
    )
    assert np.abs(even).max() > 0.01
    np.testing.assert_allclose(odd, even, rtol=0, atol=1e-5 * np.abs(even).max())


def test_wrong_names_are_refused() -> None:
    with pytest.raises(InputError, match="unknown boundary 'inlet'; wanted one of velocity, pressure, velocity-zou-he"):
        find_boundary("inlet")
    with pytest.raises(InputError, match=r"a box of D2Q9 has no face 'z-'; wanted one of x-, x\+, y-, y\+"):
        find_boundary("far-field").make(lw.D2Q9, "f32", "z-", OPERATORS["bgk"].make(lw.D2Q9))

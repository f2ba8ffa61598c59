"""What gravity does not depend on: where a scene lies, how it is mirrored and turned, its unit of length, the order of
its bodies.

Whole runs, by all pairs and by a tree. Where both scenes are added up from the same numbers in the same order, bits are
requested; places are multiples of `GRID`, so that moving a scene rounds none of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.io.particles import Particles
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions
from lanewise.sims.gravity.integrators import INTEGRATORS

GRID = 2.0**-11
SOFTENING = 0.03125
METHODS: dict[str, tuple[int, lw.Tree | None]] = {
    "direct": (90, None),
    "tree": (700, lw.Tree(theta=0.7, order=2, leaf=16)),
}
EPSILON = {"f32": 2.0**-24, "mixed": 2.0**-24, "f64": 2.0**-53}
"""Of forces."""


@dataclass(frozen=True)
class Motion:
    """A place x becomes `scale` * x[axes] * signs + shift, and a velocity likewise, as long as the scene takes scale **
    1.5.
    """

    axes: tuple[int, int, int] = (0, 1, 2)
    signs: tuple[int, int, int] = (1, 1, 1)
    shift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    scale: float = 1.0

    @property
    def time(self) -> float:
        return self.scale**1.5

    def turned(self, vectors: Any) -> Any:
        found = np.asarray(vectors)[..., list(self.axes)]
        return found * np.asarray(self.signs, found.dtype)

    def state(self, state: State) -> State:
        """What a state becomes; in float64 exactly, but for the shift of places that rounding has moved off
        the grid.
        """
        speed, handed = self.scale / self.time, np.linalg.det(np.eye(3)[list(self.axes)]) * np.prod(self.signs)
        momentum = self.turned(state.momentum) * speed
        return State(
            self.turned(state.position) * self.scale + self.shift,
            self.turned(state.velocity) * speed,
            self.turned(state.acceleration) / self.scale**2,
            np.array(state.energies) / self.scale,
            momentum,
            self.turned(state.angular_momentum) * round(handed) * self.scale * speed + np.cross(self.shift, momentum),
        )  # an angular momentum is that of a right hand in any mirror

    def particles(self, p: Particles) -> Particles:
        place, speed = self.turned(p.position) * self.scale + self.shift, self.scale / self.time
        return Particles.of(place, self.turned(p.velocity) * speed, p.mass)


@dataclass(frozen=True, eq=False)
class State:
    """What is measured of bodies, in float64. energies: kinetic, potential."""

    position: Any
    velocity: Any
    acceleration: Any
    energies: Any
    momentum: Any
    angular_momentum: Any

    @classmethod
    def of(cls, s: Simulation) -> State:
        d, fields = s.diagnostics(), s.bodies.numpy()
        place, speed, force = (
            np.asarray(a, np.float64) for a in (fields["position"], fields["velocity"], s.acceleration)
        )
        return cls(place, speed, force, np.array([d.kinetic, d.potential]), d.momentum, d.angular_momentum)

    @property
    def bodies(self) -> dict[str, Any]:
        return {"position": self.position, "velocity": self.velocity, "acceleration": self.acceleration}


MIRRORS = [Motion(signs=s) for s in ((-1, 1, 1), (1, -1, 1), (1, 1, -1), (-1, -1, -1))]
TURNS = [Motion(a, s) for a, s in (((1, 0, 2), (-1, 1, 1)), ((0, 2, 1), (1, 1, -1)), ((2, 1, 0), (1, 1, -1)))]
"""By 90 degrees about each axis."""
SWAPS = [Motion((1, 2, 0)), Motion((1, 0, 2)), Motion((0, 2, 1), (-1, 1, 1))]
MOVES = [Motion(shift=s) for s in ((4.0, -16.0, 8.0), (0.0, 60.0, 0.0), (-31.0, -31.0, -31.0))]
SCALES = [Motion(scale=s) for s in (4.0, 2.0**-8, 2.0**10)]


def scene(count: int) -> Particles:
    """No symmetry, no two bodies alike."""
    p = make_initial_conditions("plummer", count, 5)
    place = np.round(np.clip(p.position, -12, 12) / GRID) * GRID
    mass = p.mass * np.linspace(0.5, 1.5, count)
    return Particles.of(place, np.round(p.velocity / GRID) * GRID, mass)


def simulation(
    motion: Motion, method: str, precision: str, integrator: str = "leapfrog", order: Any = None, steps: int = 0
) -> Simulation:
    """The moved scene after some steps."""
    count, tree = METHODS[method]
    p = motion.particles(scene(count))
    found = Simulation(
        make_bodies(p if order is None else p.take(order), precision=precision, device="cpu"),
        softening=SOFTENING * motion.scale, search=tree, integrator=integrator,
    )  # fmt: skip
    return found.run(steps, 2.0**-7 * motion.time) if steps else found


STEPS = 12


def check_bits(motion: Motion, method: str, precision: str, integrator: str = "leapfrog") -> None:
    one, other = (State.of(simulation(m, method, precision, integrator, steps=STEPS)) for m in (Motion(), motion))
    for name, wanted in motion.state(one).bodies.items():
        np.testing.assert_array_equal(other.bodies[name], wanted, err_msg=f"{name} {motion}")
    check_sums(motion.state(one), other, precision)


def check_near(motion: Motion, method: str, precision: str, integrator: str = "leapfrog", order: Any = None) -> None:
    """All of a run within the rounding of forces, which steps add up, and of places, which the steepest force
    multiplies.
    """
    one = State.of(simulation(Motion(), method, precision, integrator, steps=STEPS))
    other = State.of(simulation(motion, method, precision, integrator, order, steps=STEPS))
    wanted, epsilon = motion.state(one), EPSILON[precision]
    far = 12 + max(map(abs, motion.shift))
    steepest = 2 * scene(METHODS[method][0]).mass.max() / SOFTENING**3
    for name, values in wanted.bodies.items():
        values = values if order is None else values[order]
        allowed = 64 * STEPS * epsilon * (np.abs(values).max() + (far if name != "acceleration" else 0))
        allowed += 8 * epsilon * far * (steepest if name == "acceleration" else 1)
        np.testing.assert_allclose(other.bodies[name], values, rtol=0, atol=allowed, err_msg=f"{name} {motion}")
    check_sums(wanted, other, precision)


def check_sums(wanted: State, found: State, precision: str) -> None:
    """Energies and momenta, whose sums are in float64 over bodies of the precision."""
    tolerance = 1e-11 if precision == "f64" else 1e-4
    np.testing.assert_allclose(found.energies, wanted.energies, rtol=tolerance)
    for name in ("momentum", "angular_momentum"):
        values = getattr(wanted, name)
        np.testing.assert_allclose(getattr(found, name), values, atol=tolerance * (1 + np.abs(values).max()))


def check_first_forces(motion: Motion, method: str, precision: str) -> None:
    """Differences of places on a grid are exact wherever the scene lies, so forces keep their bits."""
    one, other = (np.asarray(simulation(m, method, precision).acceleration) for m in (Motion(), motion))
    np.testing.assert_array_equal(other, motion.turned(one))


PRECISIONS = ("f64", "f32", "mixed")
EVERY = [(p, i) for p in PRECISIONS for i in INTEGRATORS]


def test_by_all_pairs_a_mirrored_or_larger_scene_has_the_same_bits() -> None:
    for motion in (*MIRRORS, *SCALES):
        check_bits(motion, "direct", "f64")


def test_by_all_pairs_a_turned_or_moved_scene_moves_the_same() -> None:
    for motion in (*TURNS, *SWAPS, *MOVES):
        check_near(motion, "direct", "f64")
    for motion in MOVES:
        check_first_forces(motion, "direct", "f64")


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "integrator"), EVERY)
def test_by_all_pairs_with_every_precision_and_integrator(precision: str, integrator: str) -> None:
    for motion in (*MIRRORS, *SCALES):
        check_bits(motion, "direct", precision, integrator)
    for motion in (*TURNS, *SWAPS, *MOVES):
        check_near(motion, "direct", precision, integrator)
    check_near(Motion(), "direct", precision, integrator, order=shuffled("direct"))
    for motion in MOVES:
        check_first_forces(motion, "direct", precision)


def shuffled(method: str) -> Any:
    return np.random.default_rng(2).permutation(METHODS[method][0])


def check_tree(precision: str, integrator: str = "leapfrog") -> None:
    """A tree puts bodies in an order of its own, so theirs is of no matter; and lengths times a power of two round
    alike.
    """
    for motion in SCALES:
        check_bits(motion, "tree", precision, integrator)
    order = shuffled("tree")
    one = State.of(simulation(Motion(), "tree", precision, integrator, steps=STEPS))
    other = State.of(simulation(Motion(), "tree", precision, integrator, order, steps=STEPS))
    for name, values in one.bodies.items():
        np.testing.assert_array_equal(other.bodies[name], values[order], err_msg=name)
    for motion in MOVES:
        check_near(motion, "tree", precision, integrator)


@pytest.mark.slow
def test_a_tree_gives_a_moved_larger_or_shuffled_scene_the_same_forces() -> None:
    check_tree("f32")


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "integrator"), EVERY)
def test_a_tree_with_every_precision_and_integrator(precision: str, integrator: str) -> None:
    check_tree(precision, integrator)


def check_tree_errors(motions: list[Motion], precision: str) -> None:
    """Other groups form in a mirror. Their forces are as near to those of all pairs, and so apart by the two errors at
    most.
    """
    exact = np.asarray(simulation(Motion(), "tree", precision).acceleration)
    reference = Simulation(make_bodies(scene(METHODS["tree"][0]), precision="f64"), softening=SOFTENING).acceleration
    size = np.linalg.norm(reference, axis=1)
    ours = np.linalg.norm(exact - reference, axis=1) / size
    for motion in motions:
        made = simulation(motion, "tree", precision)
        theirs = np.linalg.norm(np.asarray(made.acceleration) - motion.turned(reference), axis=1) / size
        told = made.force_errors()
        assert told.median == pytest.approx(float(np.median(theirs)), rel=0.1)
        assert 0.7 < np.median(theirs) / np.median(ours) < 1.4, motion
        assert 0.5 < np.sqrt(np.mean(theirs**2) / np.mean(ours**2)) < 2, motion
        assert made.diagnostics().potential == pytest.approx(
            simulation(Motion(), "tree", precision).diagnostics().potential, rel=1e-3
        )


@pytest.mark.slow
def test_a_tree_of_a_mirrored_scene_is_as_accurate() -> None:
    check_tree_errors([MIRRORS[0], MIRRORS[3], TURNS[0]], "f32")


@pytest.mark.slow
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_tree_of_every_mirrored_or_turned_scene_is_as_accurate(precision: str) -> None:
    check_tree_errors([*MIRRORS, *TURNS, *SWAPS], precision)


@pytest.mark.slow_cases("tree")
@pytest.mark.parametrize("method", METHODS)
def test_the_time_at_the_start_changes_no_bit(method: str) -> None:
    """Nor which of the cuts a run has: the clock is no part of a force between bodies."""
    count, tree = METHODS[method]
    found: list[State] = []
    for time, parts in ((0.0, (STEPS,)), (2.0**20, (STEPS,)), (-0.1, (1, STEPS - 3, 2))):
        bodies = make_bodies(scene(count), precision="f32", device="cpu")
        flight = Simulation(bodies, softening=SOFTENING, search=tree, integrator="yoshida4", time=time)
        for part in parts:
            flight.run(part, 2.0**-7)
        assert flight.time == pytest.approx(time + STEPS * 2.0**-7)
        found.append(State.of(flight))
    for other in found[1:]:
        for name, values in other.bodies.items():
            np.testing.assert_array_equal(values, found[0].bodies[name], err_msg=name)

"""What a flock must not depend on: where its scene lies, how it is turned, in which order agents come, and who else is
far away.

Each property runs one scene as it is and another one that is the same for the rules, and compares agent by agent.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lanewise.sims.boids import Box, Flock, Obstacle, Plane, Rectangle, Sphere, State
from lanewise.support.errors import InputError
from tests.sims.boids.flocks import FIELDS, random_state

WORLD = 12.0
SIDE = 2 * WORLD
STEPS = 40
TOLERANCE = {"f64": 1e-8, "f32": 2e-3}
"""Of positions after `STEPS`; flocks are chaotic."""
TURNED: dict[str, Any] = {"forward": (1.0, 2.0, -0.5), "up": (0.3, 1.0, 0.2)}
OBSTACLES: dict[str, tuple[Obstacle, ...]] = {
    "sphere": (Sphere((1.0, -2.0, 3.0), 4.0),),
    "hollow sphere": (Sphere((-3.0, 1.0, 2.0), 7.0, "both"),),
    "room": (Sphere((0.5, 0.0, 0.0), 11.0, "inside"),),
    "box": (Box((2.0, 1.0, -1.0), 6.0, 4.0, 5.0),),
    "turned box": (Box((-2.0, 1.0, 3.0), 5.0, 7.0, 3.0, **TURNED, seen="both"),),
    "rectangle": (Rectangle((0.0, 2.0, 1.0), 14.0, 9.0),),
    "turned rectangle": (Rectangle((3.0, -2.0, 1.0), 8.0, 12.0, **TURNED, seen="outside"),),
    "plane": (Plane((1.0, 2.0, 3.0), (0.0, -1.0, 0.0)),),
    "plane from outside": (Plane((1.0, 2.0, 3.0), (0.0, 0.0, 2.0), "outside"),),
    "several": (
        Sphere((1.0, -2.0, 8.0), 3.0), Box((-7.0, 1.0, 3.0), 4.0, 3.0, 5.0, **TURNED), Rectangle((5.0, 6.0, -6.0), 6.0, 5.0),
        Plane((9.0, 9.0, 9.0), (0.0, 1.0, 0.0)),
    ),
}  # fmt: skip
"""Some reach across a face of the periodic world, and all do when they are rolled."""
SEARCHES = ("auto", "all-pairs", "static-grid", "dynamic-grid")


def moved(o: Obstacle, shift: Any) -> Obstacle:
    """An obstacle elsewhere."""
    x, y, z = (float(c + s) for c, s in zip(o.center, shift, strict=True))
    return replace(o, center=(x, y, z))


def rolled(position: Any) -> Any:
    """Places in the periodic box."""
    return (position + WORLD) % SIDE - WORLD


def flown(state: State, obstacles: tuple[Obstacle, ...], steps: int = STEPS, **chosen: Any) -> dict[str, Any]:
    """The agents after some steps, in the order of their numbers."""
    flock = Flock(state=state, world=chosen.pop("world", WORLD), obstacles=obstacles, **chosen)
    found = flock.run(steps, 0.05).state
    order = np.argsort(found.ids)
    return {n: np.asarray(getattr(found, n)[order], np.float64) for n in FIELDS}


def apart(one: Any, other: Any, *, periodic: bool) -> float:
    """The largest distance of an agent in two runs."""
    off = one - other
    if periodic:
        off = off - SIDE * np.round(off / SIDE)
    return float(np.linalg.norm(off, axis=-1).max())


# ------------------------------------------------------------ rolled scenes


def check_rolled(shift: Any, obstacles: tuple[Obstacle, ...], precision: str, **chosen: Any) -> None:
    state = random_state(60, seed=7, radius=WORLD)
    there = replace(state, position=rolled(state.position + shift))
    moved_there = tuple(moved(o, shift) for o in obstacles)
    chosen = {"boundary": "periodic", "precision": precision, "radius": 5.0, "separation_radius": 3.0} | chosen
    chosen |= {"alignment_radius": 5.0, "cohesion_radius": 5.0}
    here = flown(state, obstacles, **chosen)
    free = flown(state, (), **chosen)
    assert apart(here["position"], free["position"], periodic=True) > 0.1, "no agent has met an obstacle"
    after = flown(there, moved_there, **chosen)
    assert apart(after["position"] - shift, here["position"], periodic=True) < TOLERANCE[precision]
    assert np.abs(after["forward"] - here["forward"]).max() < TOLERANCE[precision]
    assert np.abs(rolled(after["position"]) - after["position"]).max() < 1e-12 * WORLD


@pytest.mark.quick("sphere", "turned box", "rectangle", "plane from outside", "several")
@pytest.mark.parametrize("kind", OBSTACLES)
def test_a_rolled_periodic_scene_flies_the_same(kind: str) -> None:
    check_rolled((9.5, -13.0, 11.0), OBSTACLES[kind], "f64", search="all-pairs")


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["f32", "f64"])
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", OBSTACLES)
def test_rolled_by_any_vector_with_every_search(kind: str, search: str, precision: str) -> None:
    random = np.random.default_rng(len(kind))
    steps = STEPS if precision == "f64" else 12
    for shift in random.uniform(-2 * SIDE, 2 * SIDE, (6, 3)):
        check_rolled(shift, OBSTACLES[kind], precision, search=search, steps=steps)


@pytest.mark.slow
@pytest.mark.parametrize(
    "chosen", [{"semantics": "thesis"}, {"k": 5}, {"think_every": 3}, {"avoid_time": 2.5}], ids=str
)
def test_rolled_with_every_rule(chosen: dict[str, Any]) -> None:
    check_rolled((9.5, -13.0, 11.0), OBSTACLES["several"], "f64", **chosen)


def test_where_agents_start_outside_of_the_box_and_too_fast() -> None:
    """The same agents in the box; and whoever starts too fast looks no farther than the largest speed lets it."""
    obstacles = OBSTACLES["several"]
    state = random_state(40, seed=3, radius=WORLD)
    state = replace(state, speed=state.speed + 30)
    outside = replace(state, position=state.position + SIDE * np.random.default_rng(1).integers(-2, 3, (40, 3)))
    chosen: dict[str, Any] = {"boundary": "periodic", "precision": "f64", "search": "all-pairs"}
    here, there = (flown(s, obstacles, 10, **chosen) for s in (state, outside))
    assert apart(here["position"], there["position"], periodic=True) < 1e-9
    shift = (5.0, 5.0, 5.0)
    again = flown(
        replace(state, position=state.position + shift), tuple(moved(o, shift) for o in obstacles), 10, **chosen
    )
    assert apart(again["position"] - shift, here["position"], periodic=True) < 1e-9


def test_an_agent_flies_around_a_sphere_across_a_face() -> None:
    """And is as near to it on its way as one in the middle of the world."""

    def nearest(at: float) -> float:
        row = np.array([[1.0, 0.0, 0.0]])
        position = rolled(np.array([[at - 10.0, 0.3, 0.0]]))
        state = State(position, row, np.array([[0.0, 1.0, 0.0]]), np.array([9.0]), np.zeros((1, 3)), np.arange(1))
        sphere = Sphere((at, 0.0, 0.0), 4.0)
        flock = Flock(state=state, world=WORLD, boundary="periodic", obstacles=[sphere], precision="f64")
        ways = [rolled(f.position - sphere.center) for f, _ in zip(flock.steps(), range(120), strict=False)]
        return float(np.linalg.norm(np.concatenate(ways), axis=1).min())

    found = [nearest(at) for at in (0.0, 7.0, 12.0, -11.0, 14.0)]
    assert found[0] > 4.0
    np.testing.assert_allclose(found, found[0], rtol=1e-9)


REFUSED: dict[str, tuple[tuple[Obstacle, ...], dict[str, Any], str]] = {
    "sphere": ((Sphere((0, 0, 0), 11.6),), {}, "a sphere with the room that agents keep to it, 0.5, is 24.2 long"),
    "box": ((Box((0, 0, 0), 3.0, 24.0, 3.0),), {}, "a box with the room that agents keep to it, 0.5, is 25 long"),
    "rectangle": (
        (Rectangle((0, 0, 0), 40.0, 1.0, (0, 0, 1), (1, 1, 0)),), {}, "a rectangle with the room that agents keep to it, 0.5, is 30",
    ),
    "plane": ((Plane((0, 0, 0), (0.0, 1.0, 1.0)),), {}, r"a plane with the normal \(0.0, 1.0, 1.0\) comes back"),
    "look-ahead": ((Sphere((0, 0, 0), 1.0),), {"avoid_time": 3.0}, "agents look 27 ahead for obstacles"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_repeated_is_refused(kind: str) -> None:
    obstacles, more, text = REFUSED[kind]
    periodic: dict[str, Any] = {"world": WORLD, "boundary": "periodic"}
    with pytest.raises(InputError, match=text):
        Flock(5, obstacles=obstacles, **periodic, **more)
    Flock(5, obstacles=obstacles, world=WORLD, **more)
    flock = Flock(5, **periodic, **more)
    with pytest.raises(InputError, match=text):
        flock.obstacles = obstacles
    assert flock.run(1).obstacles == ()


# ------------------------------------------------------------ moved, mirrored and permuted scenes


def test_a_scene_moved_in_an_open_world_flies_the_same() -> None:
    check_moved("all-pairs", "f64")


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["f32", "f64"])
@pytest.mark.parametrize("search", SEARCHES)
def test_moved_with_every_search(search: str, precision: str) -> None:
    check_moved(search, precision)
    check_moved(search, precision, k=5)


def check_moved(search: str, precision: str, **chosen: Any) -> None:
    shift = np.array([31.0, -17.0, 44.0])
    state, steps = random_state(60, seed=2), STEPS if precision == "f64" else 12
    chosen |= {"boundary": "open", "precision": precision, "search": search, "steps": steps}
    for kind in ("several", "plane", "turned box"):
        here = flown(state, OBSTACLES[kind], **chosen)
        there = replace(state, position=state.position + shift)
        after = flown(there, tuple(moved(o, shift) for o in OBSTACLES[kind]), **chosen)
        assert apart(after["position"] - shift, here["position"], periodic=False) < TOLERANCE[precision]


def mirrored(o: Obstacle, mirror: Any) -> Obstacle:
    """An obstacle behind a mirror through the origin: diagonal signs."""
    names = [n for n in ("center", "forward", "up", "normal") if hasattr(o, n)]
    return replace(o, **{n: tuple(float(c) for c in np.array(getattr(o, n)) * mirror) for n in names})


MIRRORS = [m for m in itertools.product((1, -1), repeat=3) if m[1] == 1 and -1 in m]
"""The rules know what is up: a mirror that turns it over is another world to them."""


def check_mirrored(boundary: str, mirror: Any, precision: str = "f64", **chosen: Any) -> None:
    state, steps = random_state(60, seed=2, radius=6.0), STEPS if precision == "f64" else 12
    vectors = ("position", "forward", "up", "acceleration")
    there = replace(state, **{n: getattr(state, n) * mirror for n in vectors})
    obstacles = () if boundary == "bounded" else OBSTACLES["several"]
    world = 60.0 if boundary == "bounded" else 20.0
    chosen |= {"boundary": boundary, "precision": precision, "steps": steps, "world": world}
    here = flown(state, obstacles, **chosen)
    after = flown(there, tuple(mirrored(o, mirror) for o in obstacles), **chosen)
    for name in vectors:
        assert np.abs(after[name] * mirror - here[name]).max() < TOLERANCE[precision] * 5, name


@pytest.mark.parametrize("boundary", ["wrap", "periodic"])
def test_a_mirrored_scene_flies_mirrored(boundary: str) -> None:
    check_mirrored(boundary, (-1, 1, 1), search="all-pairs")


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("boundary", ["wrap", "open", "periodic", "bounded", "inside-sphere", "outside-spheres"])
def test_mirrored_in_every_world(boundary: str, search: str) -> None:
    for mirror, k in itertools.product(MIRRORS, (None, 6)):
        check_mirrored(boundary, mirror, search=search, k=k)
    check_mirrored(boundary, MIRRORS[0], "f32", search=search)
    check_mirrored(boundary, MIRRORS[0], semantics="thesis", search=search)


def check_permuted(boundary: str, precision: str = "f64", **chosen: Any) -> None:
    """Who steers at the same time as all others does not depend on its row."""
    state, steps = random_state(80, seed=5, radius=6.0), STEPS if precision == "f64" else 12
    rows = np.random.default_rng(3).permutation(80)
    other = State(**{n: getattr(state, n)[rows] for n in (*FIELDS, "ids")})
    world = 60.0 if boundary == "bounded" else 20.0
    chosen |= {"boundary": boundary, "precision": precision, "steps": steps, "world": world}
    obstacles = () if boundary == "bounded" else OBSTACLES["several"]
    here, there = (flown(s, obstacles, **chosen) for s in (state, other))
    for name in FIELDS:
        assert np.abs(there[name] - here[name]).max() < TOLERANCE[precision] * 5, name


def test_the_order_of_agents_does_not_matter() -> None:
    check_permuted("wrap", search="static-grid")
    check_permuted("periodic", search="all-pairs", k=6)


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("boundary", ["wrap", "open", "periodic", "bounded", "outside-box"])
def test_permuted_in_every_world(boundary: str, search: str) -> None:
    for precision, k in itertools.product(("f32", "f64"), (None, 6)):
        check_permuted(boundary, precision, search=search, k=k)
    check_permuted(boundary, semantics="thesis", search=search)


def check_parts(boundary: str, world: float, **chosen: Any) -> None:
    """Two flocks that never see each other fly as each does alone."""
    one, other = random_state(40, seed=5, radius=4.0), random_state(30, seed=6, radius=4.0)
    off = np.array([60.0, 0.0, 10.0])
    one = replace(one, position=one.position - off)
    other = replace(other, position=other.position + off, ids=other.ids + 1000)
    both = State(**{n: np.concatenate([getattr(one, n), getattr(other, n)]) for n in (*FIELDS, "ids")})
    chosen |= {"boundary": boundary, "precision": "f64", "world": world}
    obstacles = (Sphere((-70.0, 0.0, -8.0), 5.0), Box((70.0, 0.0, 12.0), 6.0, 5.0, 4.0))
    first, second, together = (flown(s, obstacles, **chosen) for s in (one, other, both))
    for name in FIELDS:
        alone = np.concatenate([first[name], second[name]])
        assert np.abs(together[name] - alone).max() < TOLERANCE["f64"], name


def test_flocks_far_away_do_not_matter() -> None:
    check_parts("open", 100.0, search="all-pairs")


@pytest.mark.slow
@pytest.mark.parametrize("semantics", ["sync", "thesis", "seq"])
@pytest.mark.parametrize("boundary", ["wrap", "open", "periodic"])
def test_parts_in_every_world(boundary: str, semantics: str) -> None:
    if (boundary, semantics) == ("periodic", "seq"):
        return
    for search in SEARCHES if semantics != "seq" else SEARCHES[:2]:
        check_parts(boundary, 100.0, semantics=semantics, search=search)

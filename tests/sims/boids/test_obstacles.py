"""Obstacles: where a path meets them, where an agent then steers to, and how they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewise.sims.boids import BOUNDARIES, Box, Flock, Obstacle, Plane, Rectangle, Sphere, State, read_obstacles
from lanewise.sims.boids.avoidance import FAR, kernel_of, make_avoidance
from lanewise.sims.boids.images import images
from lanewise.sims.boids.obstacles import as_dict, frame, obstacle_of, parse_obstacle
from lanewise.sims.boids.rules import Boid64
from lanewise.support.errors import InputError

RADIUS = 0.5  # of agents


def ahead(obstacle: Obstacle, position: Any, forward: Any) -> tuple[Any, float]:
    """The hint and the distance that one agent gets; an infinite distance for none."""
    forward = np.asarray(forward, float) / np.linalg.norm(forward)
    boids: Any = Boid64.array(position=np.array([position], float), forward=forward[None])  # type: ignore[attr-defined]
    kernels = make_avoidance("f64")
    kernel, values = kernel_of(kernels, obstacle, RADIUS)
    found = kernel(boids, kernels.clear(boids), **values)[0]
    return found[:3], float(found[3]) if found[3] < FAR else np.inf


def along_the_way(obstacle: Obstacle, position: Any, forward: Any) -> float:
    """Where the path enters (or leaves) the obstacle made larger by the agent: by walking it in small steps."""
    forward = np.asarray(forward, float) / np.linalg.norm(forward)
    s = np.linspace(0, 60, 300_001)
    p = np.asarray(position, float) + s[:, None] * forward
    match obstacle:
        case Sphere():
            inside = np.linalg.norm(p - obstacle.center, axis=1) < obstacle.radius + RADIUS
        case Rectangle():
            side, up, f = (np.array(v) for v in frame(obstacle.forward, obstacle.up))
            q = p - obstacle.center
            beyond = (q @ f > 0) != (q[0] @ f > 0)
            at = int(np.argmax(beyond))
            hit = (
                beyond.any()
                and abs(q[at] @ side) <= obstacle.width / 2 + RADIUS
                and abs(q[at] @ up) <= obstacle.height / 2 + RADIUS
            )
            return float(s[at]) if hit else np.inf
        case _:
            raise NotImplementedError
    changes = np.flatnonzero(inside[1:] != inside[:-1])
    return float(s[changes[0]]) if len(changes) else np.inf


vectors = st.tuples(*[st.floats(-10, 10)] * 3)


@settings(max_examples=30, deadline=None)
@given(center=vectors, position=vectors, forward=vectors, radius=st.floats(0.5, 8))
def test_a_hollow_sphere_is_met_where_a_walk_meets_it(center: Any, position: Any, forward: Any, radius: float) -> None:
    if np.linalg.norm(forward) < 1e-3:
        return
    sphere = Sphere(center, radius, "both")
    _, distance = ahead(sphere, position, forward)
    walked = along_the_way(sphere, position, forward)
    if np.isinf(walked) or np.isinf(distance):
        # A path that grazes the sphere may be in it for less than a step of the walk.
        assert np.isinf(distance) == np.isinf(walked) or _grazes(sphere, position, forward)
    else:
        assert distance == pytest.approx(walked, abs=3e-4)


def _grazes(sphere: Sphere, position: Any, forward: Any) -> bool:
    f = np.asarray(forward) / np.linalg.norm(forward)
    o = np.asarray(position) - sphere.center
    nearest = np.linalg.norm(o - (o @ f) * f)
    at_surface = abs(np.linalg.norm(o) - sphere.radius - RADIUS) < 1e-3
    return bool(abs(nearest - sphere.radius - RADIUS) < 1e-3 or at_surface)


@settings(max_examples=30, deadline=None)
@given(center=vectors, position=vectors, forward=vectors, normal=vectors)
def test_a_rectangle_is_met_where_a_walk_meets_it(center: Any, position: Any, forward: Any, normal: Any) -> None:
    if min(np.linalg.norm(forward), np.linalg.norm(normal)) < 1e-3:
        return
    rectangle = Rectangle(center, 9.0, 12.0, normal)
    _, distance = ahead(rectangle, position, forward)
    walked = along_the_way(rectangle, position, forward)
    if np.isfinite(walked) and np.isfinite(distance):
        assert distance == pytest.approx(walked, abs=3e-4)
    elif distance < 59:
        side, up, f = frame(normal, rectangle.up)
        at = np.asarray(position) + distance * np.asarray(forward) / np.linalg.norm(forward) - center
        edge = min(abs(abs(at @ np.array(side)) - 5), abs(abs(at @ np.array(up)) - 6.5))
        assert edge < 1e-2 or abs((np.asarray(position) - center) @ np.array(f)) < 1e-3


@pytest.mark.parametrize("seen", ["outside", "inside", "both"])
def test_spheres_by_where_they_are_seen_from(seen: str) -> None:
    sphere = Sphere((10, 0, 0), 2.0, seen)
    hint, distance = ahead(sphere, (0, 0, 0), (1, 0, 0))
    assert distance == pytest.approx(7.5)
    assert hint == pytest.approx([1 if seen == "inside" else -1, 0, 0])
    hint, distance = ahead(sphere, (11, 0, 0), (1, 0, 0))
    assert distance == pytest.approx(0 if seen == "outside" else 1.5)
    assert hint == pytest.approx([1 if seen == "outside" else -1, 0, 0])
    assert ahead(sphere, (0, 0, 0), (-1, 0, 0))[1] == np.inf
    assert ahead(sphere, (0, 2.6, 0), (1, 0, 0))[1] == np.inf


def test_planes_from_both_sides() -> None:
    plane = Plane((0, 0, 5), (0, 0, 1), "outside")
    assert ahead(plane, (3, 4, 9), (0, 0, -1))[1] == pytest.approx(4)
    assert ahead(plane, (3, 4, 9), (0, 0, 1))[1] == np.inf
    assert ahead(plane, (3, 4, 0), (0, 0, 1))[1] == np.inf  # not seen from there
    hint, distance = ahead(Plane((0, 0, 5), (0, 0, 1), "both"), (3, 4, 0), (0, 0, 1))
    assert distance == pytest.approx(5)
    assert hint[2] == pytest.approx(-1)


@pytest.mark.slow_cases("2")
@pytest.mark.parametrize("axis", range(3))
def test_a_plane_in_a_periodic_world_has_no_gap(axis: int) -> None:
    """It is made of squares; wherever a path meets it, one of them is there, and at the right distance."""
    rng, world, reach = np.random.default_rng(axis), 6.0, 4.0
    normal = [float(n == axis) for n in range(3)]
    center = rng.uniform(-world, world, 3)
    found = images((Plane(tuple(center), tuple(normal)),), world, RADIUS, reach)
    places = rng.uniform(-world, world, (60, 3))
    for place in places:
        for way in (1.0, -1.0):
            wanted = (way * (center - place)[axis]) % (2 * world)
            distance = min(ahead(o, place, way * np.array(normal))[1] for o in found)
            assert distance == pytest.approx(wanted) or (wanted > reach and distance > reach), (place, way)


def test_boxes_are_their_six_faces() -> None:
    box = Box((0, 0, 0), 2.0, 4.0, 6.0)
    for axis, half in enumerate((1, 2, 3)):
        for sign in (1, -1):
            start, forward = np.zeros(3), np.zeros(3)
            start[axis], forward[axis] = 10 * sign, -sign
            hint, distance = ahead(box, start, forward)
            assert distance == pytest.approx(10 - half)
            assert hint == pytest.approx(-forward)
            hint, distance = ahead(Box((0, 0, 0), 2.0, 4.0, 6.0, seen="inside"), np.zeros(3), forward)
            assert distance == pytest.approx(half)
            assert hint == pytest.approx(-forward)
    assert ahead(box, (10, 3, 0), (-1, 0, 0))[1] == np.inf


def test_turned_boxes_are_boxes_in_a_turned_world() -> None:
    random = np.random.default_rng(3)
    turn, _ = np.linalg.qr(random.normal(size=(3, 3)))
    turn *= np.linalg.det(turn)
    straight = Box((0, 0, 0), 2.0, 4.0, 6.0)
    turned = Box((1, 2, 3), 2.0, 4.0, 6.0, tuple(turn @ [0, 0, 1]), tuple(turn @ [0, 1, 0]))
    for _ in range(50):
        position, forward = random.normal(size=(2, 3)) * 5
        hint, distance = ahead(straight, position, forward)
        other_hint, other_distance = ahead(turned, turn @ position + (1, 2, 3), turn @ forward)
        assert other_distance == pytest.approx(distance)
        assert other_hint == pytest.approx(turn @ hint)


def test_the_nearest_one_counts() -> None:
    boids: Any = Boid64.array(position=np.zeros((1, 3)), forward=np.array([[1.0, 0, 0]]))  # type: ignore[attr-defined]
    kernels, spheres = make_avoidance("f64"), [Sphere((x, 0.0, 0.0), 1.0) for x in (9.0, 5.0, 20.0)]
    found = kernels.clear(boids)
    for o in spheres:
        kernel, values = kernel_of(kernels, o, RADIUS)
        found = kernel(boids, found, **values)
    assert found[0, 3] == pytest.approx(3.5)


def _one(position: Any, forward: Any, speed: float) -> State:
    f = np.asarray(forward, float) / np.linalg.norm(forward)
    up = np.cross(np.cross(f, (0.1, 1, 0.2)), f)
    return State(
        np.array([position], float),
        f[None],
        up[None] / np.linalg.norm(up),
        np.array([speed]),
        np.zeros((1, 3)),
        np.arange(1),
    )


@pytest.mark.parametrize("semantics", ["sync", "seq"])
def test_agents_fly_around_what_is_ahead(semantics: str) -> None:
    def closest(obstacles: tuple[Obstacle, ...]) -> float:
        flock = Flock(
            state=_one((0, 0.5, 0), (1, 0, 0), 6.0), precision="f64", boundary="open", obstacles=obstacles,
            semantics=semantics, search="all-pairs",
        )  # fmt: skip
        way = [float(np.linalg.norm(flock.run(1).position[0] - (15, 0, 0))) for _ in range(300)]
        return min(way)

    assert closest(()) < 0.6
    assert closest((Sphere((15, 0, 0), 3.0),)) > 3.0


def test_a_flock_stays_inside_a_sphere_that_it_sees() -> None:
    crowd = Flock(
        50,
        world=30,
        boundary="bounded",
        obstacles=(Sphere((0, 0, 0), 27.0, "inside"),),
        precision="f64",
        search="all-pairs",
    )
    assert np.linalg.norm(crowd.run(1500).position, axis=1).max() < 30
    with pytest.raises(InputError, match="left the world of radius 30"):
        Flock(50, world=30, boundary="bounded", precision="f64", search="all-pairs").run(1500)


def test_the_scenes_of_the_demo() -> None:
    kinds = {n: [type(o).__name__ for o in b.obstacles(50.0)] for n, b in BOUNDARIES.items()}
    assert kinds["outside-spheres"] == ["Sphere"] * 7
    assert kinds["outside-spheres-wrap"] == ["Sphere"] * 6
    assert kinds["rectangle"] == ["Sphere", "Rectangle"]
    assert kinds["outside-box"] == ["Sphere", "Box"]
    (box,) = BOUNDARIES["inside-box"].obstacles(50.0)
    assert isinstance(box, Box)
    assert (box.width, box.height, box.depth, box.seen) == (50, 80, 20, "inside")


# ------------------------------------------------------------ text and files


def test_texts_and_files_say_the_same(tmp_path: Path) -> None:
    texts = ("sphere:1,2,3,4,inside", "box:0,0,0,1,2,3", "rectangle:0,0,0,5,6,both", "plane:0,0,0,0,1,0")
    path = tmp_path / "a.toml"
    path.write_text(
        "[[sphere]]\ncenter = [1, 2, 3]\nradius = 4\nseen = 'inside'\n[[box]]\ncenter = [0, 0, 0]\nwidth = 1\nheight = 2\ndepth = 3\n"
        "[[rectangle]]\ncenter = [0, 0, 0]\nwidth = 5\nheight = 6\n[[plane]]\ncenter = [0, 0, 0]\nnormal = [0, 1, 0]\n"
    )
    found = tuple(map(parse_obstacle, texts))
    assert read_obstacles(path) == found
    for o in found:
        values = as_dict(o)
        assert obstacle_of(values.pop("kind"), values) == o


FORMS = "sphere:x,y,z,r, box:x,y,z,w,h,d, rectangle:x,y,z,w,h, plane:x,y,z,nx,ny,nz"
REFUSED = {
    "ball:1,2,3,4": f"--obstacle ball:1,2,3,4: wanted {FORMS}, or a .toml file",
    "sphere": f"--obstacle sphere: wanted {FORMS}, or a .toml file",
    "sphere:1,2,3": "--obstacle sphere:1,2,3: 3 numbers; wanted sphere:x,y,z,r",
    "sphere:1,2,x,4": "--obstacle sphere:1,2,x,4: wanted numbers, as in sphere:x,y,z,r",
    "sphere:1,2,3,0": "--obstacle sphere:1,2,3,0: the radius of a sphere is 0; wanted a finite length above zero",
    "sphere:1,nan,3,1": "--obstacle sphere:1,nan,3,1: the center of a sphere is (1.0, nan, 3.0); wanted three finite numbers",
    "plane:0,0,0,0,0,0": "--obstacle plane:0,0,0,0,0,0: the normal of a plane is (0.0, 0.0, 0.0); wanted a direction",
}


@pytest.mark.parametrize("text", REFUSED)
def test_texts_that_are_no_obstacles(text: str) -> None:
    with pytest.raises(InputError) as error:
        parse_obstacle(text)
    assert str(error.value) == REFUSED[text]


def test_files_that_are_no_obstacles(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    for text, message in {
        "[[ball]]\n": "unknown table 'ball'; wanted [[sphere]], [[box]], [[rectangle]], [[plane]]",
        "[[sphere]]\nradius = 1\n": "a sphere cannot be made of radius; its fields are center, radius, seen",
        "[[sphere]]\ncenter = [0, 0, 0]\nradius = 1\nseen = 'above'\n": "a sphere is seen from 'above'; wanted one of outside, inside, both",
    }.items():
        path.write_text(text)
        with pytest.raises(InputError) as error:
            read_obstacles(path)
        assert str(error.value) == f"{path}: {message}"

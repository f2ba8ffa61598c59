"""Pictures and movies of flocks: what can be seen on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lanewise.sims.boids.obstacles import Box, Obstacle, Plane, Rectangle, Sphere
from lanewise.sims.boids.view.camera import CAMERAS, around, looking
from lanewise.sims.boids.view.colours import COLOURINGS
from lanewise.sims.boids.view.darts import dart_length, darts
from lanewise.sims.boids.view.flock import Moment, Painter, View, plot_flock
from lanewise.sims.common.films import PaintedFilm
from lanewise.support.errors import InputError
from tests.plot.flocks import SIZE, alone, moment, view


def painted(shown: Moment, **changed: Any) -> np.ndarray:
    return Painter(view(**changed)).paint(shown).astype(int)


def test_a_dart_points_where_the_agent_heads() -> None:
    camera = looking(np.array((0.0, 0.0, 20.0)), np.zeros(3), 10.0)  # x to the right, y upwards
    for forward, up in (((1, 0, 0), (0, 0, 1)), ((0, 1, 0), (0, 0, 1)), ((-0.6, -0.8, 0), (0, 0, 1))):
        shown = alone(forward=forward, up=up)
        colours = np.array([[200, 200, 200]], np.float32)
        corners = darts(shown.position, shown.forward, shown.up, colours, camera, SIZE, 2.0).corners.reshape(-1, 3)
        middle = np.array((SIZE[1] / 2, SIZE[0] / 2))
        nose = corners[np.linalg.norm(corners[:, :2] - middle, axis=1).argmax(), :2] - middle
        assert nose / np.linalg.norm(nose) == pytest.approx((forward[0], -forward[1]), abs=0.02)
        assert len(corners) == 6


def test_agents_out_of_sight_are_left_out() -> None:
    camera = looking(np.array((0.0, 0.0, 20.0)), np.zeros(3), 10.0)
    shown = moment(500, radius=200.0)
    colours = np.full((500, 3), 200, np.float32)
    found = darts(shown.position, shown.forward, shown.up, colours, camera, SIZE, 1.0)
    assert 0 < len(found.corners) < 500
    assert (found.corners[..., 2] > 0).all()


def test_few_agents_have_larger_darts_and_no_dart_is_smaller_than_life() -> None:
    far, near = around(np.zeros(3), 500.0, 0.0, turning=False), around(np.zeros(3), 2.0, 0.0, turning=False)
    lengths = [dart_length(n, far, (1080, 1920)) for n in (10, 1000, 30_000, 10**7)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > 3 * lengths[-1]
    assert dart_length(10**7, near, (1080, 1920)) == 1


@pytest.mark.parametrize("colour", COLOURINGS)
@pytest.mark.parametrize("camera", CAMERAS)
def test_every_camera_and_colour(colour: str, camera: str) -> None:
    found = painted(moment(), camera=camera, colour=colour)
    empty = painted(replace(moment(), position=np.full((200, 3), 1e6, np.float32)), camera="fixed", world=1.0)
    assert found.shape == (*SIZE, 3)
    changed = (abs(found - empty).sum(axis=-1) > 60).mean()
    assert changed > (0.001 if camera == "pov" else 0.01)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("edge", ["sphere", "box", "none"])
@pytest.mark.parametrize("count", [1, 2, 50_000])
def test_every_world_and_number(edge: str, count: int) -> None:
    assert painted(moment(count), edge=edge).max() > 100


def test_agents_in_one_point() -> None:
    shown = moment(5)
    assert painted(replace(shown, position=np.zeros((5, 3), np.float32))).max() > 100


def test_the_same_moment_gives_the_same_picture() -> None:
    assert np.array_equal(painted(moment()), painted(moment()))


def test_what_is_farther_is_paler() -> None:
    near, far = (alone((0, 0, z), forward=(1, 0, 0), up=(0, 0, 1)) for z in (8, -8))
    camera = looking(np.array((0.0, 0.0, 20.0)), np.zeros(3), 10.0)
    shades = [
        darts(m.position, m.forward, m.up, np.full((1, 3), 230, np.float32), camera, SIZE, 2.0).colours.mean() for m in (near, far)
    ]  # fmt: skip
    assert shades[0] > 1.5 * shades[1]


@pytest.mark.parametrize(
    "obstacle",
    [
        Sphere((0, 0, 0), 10.0), Box((0, 0, 0), 20, 20, 20), Sphere((0, 0, 0), 10.0, "both"), Sphere((0, 0, 0), 10.0, "inside"),
        Rectangle((0, 0, 0), 20, 20), Plane((0, 0, 0), (0, 1, 0)), Box((0, 0, 0), 20, 20, 20, seen="inside"),
    ],
    ids=lambda o: f"{type(o).__name__} {o.seen}",
)  # fmt: skip
def test_obstacles_are_drawn_and_hide_agents_when_they_are_solid(obstacle: Obstacle) -> None:
    bare = replace(moment(1), position=np.array([[0, 0, 1e6]], np.float32))  # nobody in sight
    assert (painted(bare, world=20.0) != painted(bare, world=20.0, obstacles=(obstacle,))).any()
    within = replace(moment(300), position=moment(300, radius=5.0).position)
    middle = (slice(60, 120), slice(130, 190))
    crowd = painted(within, camera="fixed", world=20.0, edge="none")[middle].std()
    hidden = Painter(view(world=20.0, edge="none", obstacles=(obstacle,)))
    hidden._reach = 20.0  # pyright: ignore[reportPrivateUsage]
    found = hidden.paint(within)[middle].std()
    assert (found < 20 < crowd) if obstacle.seen == "outside" else found > 20


@pytest.mark.parametrize("solid", [Box((0, 0, 0), 20, 20, 20), Sphere((0, 0, 0), 12.0)], ids=["box", "sphere"])
def test_what_faces_the_light_is_lighter(solid: Obstacle) -> None:
    bare = replace(moment(1), position=np.array([[0, 0, 1e6]], np.float32))
    found = painted(bare, world=20.0, obstacles=(solid,)).sum(axis=-1)
    upper, lower = found[45:52, 154:166].mean(), found[112:124, 154:166].mean()
    assert upper > 1.05 * lower  # the top is farther away, too


def test_the_selected_agent_is_white_and_leaves_a_trail() -> None:
    painter = Painter(view(camera="offset", select=7))
    still = moment(50)
    first = last = painter.paint(still).astype(int)
    for step in range(1, 10):
        moved = replace(still, position=still.position + still.forward * np.float32(0.4 * step), time=float(step))
        last = painter.paint(moved).astype(int)
    white = [(picture.min(axis=-1) > 120).sum() for picture in (first, last)]
    assert white[1] > white[0] > 20
    beyond = replace(still, position=-9 * still.position)
    painter.paint(beyond)
    assert len(painter._trail) == 1  # pyright: ignore[reportPrivateUsage]  # it came back at the other side


def test_without_a_choice_the_camera_goes_with_the_middle_of_the_largest_cluster() -> None:
    shown = moment(60, radius=30.0)
    position = shown.position.copy()
    position[20:60] = moment(40, radius=2.0).position + np.array((15, 0, 0))
    position[33] = (15, 0.01, 0)
    painter = Painter(view(camera="follow"))
    painter.paint(replace(shown, position=position))
    assert painter._selected == 33  # pyright: ignore[reportPrivateUsage]


def test_a_fixed_camera_draws_back_and_does_not_come_nearer() -> None:
    painter = Painter(view(edge="none"))
    reaches: list[float] = []
    for radius in (5.0, 30.0, 10.0):
        painter.paint(moment(radius=radius))
        reaches.append(painter._reach)  # pyright: ignore[reportPrivateUsage]
    assert reaches[0] < reaches[1] == reaches[2]


def test_numbers_are_written(tmp_path: Path) -> None:
    bare, told = (painted(replace(moment(), numbers=n)) for n in ((), ("step 12", "polarisation 0.3")))
    changed = np.argwhere(abs(bare - told).sum(axis=-1) > 100)
    assert len(changed) > 20
    assert (changed.max(axis=0) < (60, 120)).all()


def test_a_picture_is_a_png_of_the_wanted_size(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    plot_flock(path, moment(), view(), course=[(0.0, 0.1), (0.5, 0.2)])
    with Image.open(path) as image:
        assert (image.format, image.size) == ("PNG", (SIZE[1], SIZE[0]))
    with pytest.raises(InputError, match="the file exists already"):
        plot_flock(path, moment(), view())
    plot_flock(path, moment(), view(), overwrite=True)


@pytest.mark.parametrize("name", ["a.gif", "a.mp4"])
def test_a_movie_holds_every_moment(tmp_path: Path, name: str) -> None:
    with PaintedFilm(tmp_path / name, Painter(view(colour="cluster")).paint, fps=10) as movie:
        for step in range(4):
            movie.add(moment(time=step / 10, seed=step))
        assert movie.frames == 4
    if name.endswith("gif"):
        with Image.open(tmp_path / name) as image:
            film: Any = image
            assert (film.n_frames, film.size) == (4, (SIZE[1], SIZE[0]))
    assert (tmp_path / name).stat().st_size > 1000


REFUSED: dict[str, tuple[View, str]] = {
    "camera": (view(camera="up"), "unknown camera 'up'; wanted one of fixed, orbit, offset, follow, pov"),
    "colour": (view(colour="red"), "unknown colour 'red'; wanted one of heading, speed, cluster"),
    "radius": (view(cluster_radius=0.0), "the radius of clusters is 0; wanted a finite number above zero"),
    "agent": (view(select=200), "agent 200 is to be followed, and there is none with this number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_views_that_cannot_be_shown(tmp_path: Path, name: str) -> None:
    wrong, message = REFUSED[name]
    with pytest.raises(InputError) as error:
        plot_flock(tmp_path / "a.png", moment(), wrong)
    assert str(error.value) == message
    assert not list(tmp_path.iterdir())

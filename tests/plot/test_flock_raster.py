"""Triangles as pixels: what they cover, what hides what, and that threads change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.plot.triangles import Canvas, Triangles
from lanewise.runtime import cpu

SIZE = (40, 60)


def canvas() -> Canvas:
    return Canvas(np.zeros((SIZE[0], 3)), SIZE)


def triangles(corners: Any, colours: Any = ((255, 0, 0),), opacity: Any = (1.0,)) -> Triangles:
    return Triangles(*(np.array(a, np.float32) for a in (corners, colours, opacity)))


FRONT = [[[0, 0, 0.5], [60, 0, 0.5], [0, 40, 0.5]]]
BACK = [[[0, 0, 0.2], [60, 0, 0.2], [0, 40, 0.2]]]


def test_pixels_below_the_diagonal_are_covered_and_half_of_those_on_it() -> None:
    picture = canvas()
    picture.draw(triangles(FRONT))
    found = picture.pixels()
    y, x = np.mgrid[0 : SIZE[0], 0 : SIZE[1]]
    place = (x + 0.5) / 60 + (y + 0.5) / 40
    assert (found[place < 0.97] == (255, 0, 0)).all()
    assert (found[place > 1.03] == 0).all()
    assert found[..., 0].mean() == pytest.approx(127.5, abs=1.5)


@pytest.mark.parametrize("order", [(FRONT, BACK), (BACK, FRONT)])
def test_what_is_nearer_hides_what_is_farther(order: tuple[Any, Any]) -> None:
    picture = canvas()
    for corners in order:
        picture.draw(triangles(corners, [(255, 0, 0) if corners is FRONT else (0, 255, 0)]))
    assert tuple(picture.pixels()[5, 5]) == (255, 0, 0)


def test_glass_lets_shine_through_and_hides_nothing() -> None:
    picture = canvas()
    picture.draw(triangles(FRONT, [(200, 0, 0)], [0.5]), solid=False)
    picture.draw(triangles(BACK, [(0, 100, 0)], [1.0]))
    assert tuple(picture.pixels()[5, 5]) == (0, 100, 0)
    picture.clear()
    assert (picture.pixels() == 0).all()
    picture.draw(triangles(BACK, [(0, 100, 0)]))
    picture.draw(triangles(FRONT, [(200, 0, 0)], [0.5]), solid=False)
    assert tuple(picture.pixels()[5, 5]) == (100, 50, 0)
    picture.draw(triangles([[[0, 0, 0.1], [60, 0, 0.1], [0, 40, 0.1]]], [(0, 0, 255)], [0.5]), solid=False)
    assert tuple(picture.pixels()[5, 5]) == (100, 50, 0)


@pytest.mark.parametrize(
    "corners",
    [
        [[[np.nan] * 3] * 3],
        [[[5, 5, 0.5], [9, 9, 0.5], [7, 7, 0.5]]],  # a line
        [[[-90, -90, 0.5], [-80, -90, 0.5], [-90, -80, 0.5]]],
        [[[900, 5, 0.5], [990, 5, 0.5], [900, 9, 0.5]]],
        np.zeros((0, 3, 3)),
    ],
)
def test_what_is_nowhere_leaves_the_picture_as_it_is(corners: Any) -> None:
    picture = canvas()
    count = len(corners)
    picture.draw(triangles(corners, [(255, 0, 0)] * count if count else np.zeros((0, 3)), [1.0] * count))
    assert (picture.pixels() == 0).all()


def test_triangles_that_reach_far_beyond_the_picture() -> None:
    picture = canvas()
    picture.draw(triangles([[[-1e6, -1e6, 0.5], [1e6, -1e6, 0.5], [0, 1e6, 0.5]]]))
    assert (picture.pixels() == (255, 0, 0)).all()


def test_threads_change_no_pixel(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    corners = random.uniform(-10, 70, (300, 1, 3)) + random.normal(size=(300, 3, 3)) * 8
    corners[..., 2] = random.uniform(0.1, 1, (300, 3))
    shapes = triangles(corners, random.uniform(0, 255, (300, 3)), random.uniform(0.3, 1, 300))
    found: list[np.ndarray] = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(cpu, "cpu_threads", lambda threads=threads: threads)
        monkeypatch.setattr("lanewise.plot.triangles.GRAIN", 7)
        picture = canvas()
        picture.draw(shapes)
        picture.draw(shapes, solid=False)
        found.append(picture.pixels())
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])

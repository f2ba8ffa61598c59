"""Grids of the sky: how many directions, that they cover it, and that each stands for the same area."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lanewise.sims.waves.commands.sky import directions
from lanewise.sims.waves.sky import Cap, Rectangle, isotropic_sky, uniform_sky
from lanewise.support.errors import InputError


def vectors(grid: np.ndarray) -> np.ndarray:
    alpha, delta = grid.T
    return np.stack([np.cos(delta) * np.cos(alpha), np.cos(delta) * np.sin(alpha), np.sin(delta)], axis=1)


def random_sky(count: int, seed: int) -> np.ndarray:
    """Directions of equal density on the sphere; some at the poles, where grids are hardest."""
    rng = np.random.default_rng(seed)
    delta = np.arcsin(rng.uniform(-1, 1, count))
    near = rng.uniform(math.pi / 2 - 0.3, math.pi / 2, count // 4) * rng.choice([-1, 1], count // 4)
    delta[: count // 4] = near
    delta[:2] = math.pi / 2, -math.pi / 2
    return np.stack([rng.uniform(0, 2 * math.pi, count), delta], axis=1)


def distances(sky: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """From each direction to the nearest one of the grid, radians."""
    nearest = np.concatenate([(part @ vectors(grid).T).max(axis=1) for part in np.array_split(vectors(sky), 20)])
    return np.arccos(np.clip(nearest, -1, 1))


@pytest.mark.parametrize("step", [0.03, 0.1, 0.37, 0.8, 1.5])
def test_isotropic_grids_cover_the_sky(step):
    grid = isotropic_sky(step)
    assert (np.abs(grid[:, 1]) < math.pi / 2).all()
    assert ((grid[:, 0] >= 0) & (grid[:, 0] < 2 * math.pi)).all()
    assert distances(random_sky(4000, 1), grid).max() <= 0.75 * step
    assert distances(random_sky(4000, 2), grid).max() > 0.6 * min(step, 1.0)  # nor is it finer than was requested


def test_the_number_of_directions():
    """By hand: pi / 0.8 are 4 rings; rings of 2 pi sin(pi / 4) / 0.8^2 / (pi / 4) * 0.8 = 7.07 and 2.93 directions."""
    rings, counts = np.unique(isotropic_sky(0.8)[:, 1].round(9), return_counts=True)
    np.testing.assert_allclose(rings, np.array([-3, -1, 1, 3]) * math.pi / 8)
    assert counts.tolist() == [3, 8, 8, 3]
    for step in (0.1, 0.03):
        assert 1.0 <= len(isotropic_sky(step)) * step**2 / (4 * math.pi) < 1.05


@pytest.mark.parametrize("step", [0.02, 0.05])
def test_isotropic_cells_have_the_same_area(step):
    """Of each ring: its area over its directions; and random directions, of which all parts of the sky get as many per
    grid direction.
    """
    grid = isotropic_sky(step)
    deltas, counts = np.unique(grid[:, 1], return_counts=True)
    half = math.pi / len(deltas) / 2
    areas = 2 * math.pi * (np.sin(deltas + half) - np.sin(deltas - half)) / counts
    assert areas.max() <= step**2
    assert areas.min() > 0.75 * step**2
    assert areas[counts > 50].min() > 0.95 * step**2
    whole = len(grid)
    for low, high in ((-1.0, -0.5), (0.0, 0.5), (0.9, 1.2)):
        share = (math.sin(high) - math.sin(low)) / 2
        assert abs(((grid[:, 1] > low) & (grid[:, 1] <= high)).sum() / whole - share) < 0.03


def test_uniform_grids():
    grid = uniform_sky(0.1, 0.2)
    assert len(grid) == 63 * 16  # 2 pi / 0.1 and pi / 0.2, rounded up
    assert uniform_sky(math.pi / 2, math.pi / 3)[:4].tolist() == pytest.approx(
        np.array([[x * math.pi / 4, -math.pi / 3] for x in (1, 3, 5, 7)])
    )
    sky = random_sky(2000, 3)
    alpha = np.abs((sky[:, None, 0] - grid[None, :, 0] + math.pi) % (2 * math.pi) - math.pi)
    delta = np.abs(sky[:, None, 1] - grid[None, :, 1])
    assert ((alpha <= 0.05) & (delta <= 0.1)).any(axis=1).all()


@pytest.mark.parametrize("centre", [(0.1, 0.0), (6.2, 0.4), (2.0, -1.5), (1.0, math.pi / 2)])
def test_caps(centre):
    """What lies in the cap is covered; what is far from it is not searched."""
    step, radius = 0.02, 0.15
    grid = isotropic_sky(step, Cap(*centre, radius))
    sky = random_sky(200_000, 4)
    middle = vectors(np.array([centre]))[0]
    within = sky[vectors(sky) @ middle >= math.cos(radius)]
    assert len(within) > 100
    assert distances(within, grid).max() <= 0.75 * step
    assert np.arccos(np.clip(vectors(grid) @ middle, -1, 1)).max() <= radius + 0.75 * step
    assert 1.0 < len(grid) * step**2 / (2 * math.pi * (1 - math.cos(radius))) < 1.4


def test_rectangles():
    box = Rectangle(-0.2, 0.4, -0.3, 0.1)
    assert len(uniform_sky(0.1, 0.1, box)) == 24
    grid = isotropic_sky(0.05, box)
    rng = np.random.default_rng(5)
    within = np.stack([rng.uniform(-0.2, 0.4, 2000), rng.uniform(-0.3, 0.1, 2000)], axis=1)
    assert distances(within, grid).max() <= 0.75 * 0.05


@pytest.mark.parametrize(
    "region",
    [None, Rectangle(-0.2, 0.4, -0.3, 0.1), Rectangle(6.0, 6.9, 0.0, 0.1), Cap(0.1, 0.0, 0.3), Cap(6.2, 0.4, 0.3)],
)
def test_right_ascensions_are_within_a_turn(region):
    for grid in (uniform_sky(0.1, 0.1, region), isotropic_sky(0.1, region)):
        assert ((grid[:, 0] >= 0) & (grid[:, 0] < 2 * math.pi)).all()


def test_the_option(tmp_path):
    (tmp_path / "sky.txt").write_text("# alpha delta\n1.0 0.5\n2.0, -0.5\n", encoding="utf-8")
    assert directions(["0.3,-0.2", str(tmp_path / "sky.txt")]) == [(0.3, -0.2), (1.0, 0.5), (2.0, -0.5)]
    assert len(directions(["isotropic:0.1"])) == len(isotropic_sky(0.1))
    assert directions(["uniform:0.1,0.2"]) == [tuple(d) for d in uniform_sky(0.1, 0.2).tolist()]
    assert len(directions(["uniform:0.5"])) == 13 * 7
    assert len(directions(["isotropic:0.02@1.0,0.3,0.1"])) == len(isotropic_sky(0.02, Cap(1.0, 0.3, 0.1)))
    assert len(directions(["uniform:0.1@-0.2,0.4,-0.3,0.1"])) == 24


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nowhere.txt", "--sky is 'nowhere.txt': there is no such file; wanted ALPHA,DELTA in radians, a file of dir"),
        ("1,x", "--sky has 'x'; wanted a finite number"),
        ("isotropic:", "--sky isotropic: has ''; wanted a finite number"),
        ("isotropic:0", "a step of the grid of the sky is 0; wanted above zero, in radians"),
        ("isotropic:2", "the step of an isotropic grid is 2; wanted at most pi/2 radians"),
        ("isotropic:0.1,0.2", "wanted isotropic:STEP, or uniform:STEP,STEP for alpha and delta, in radians"),
        ("isotropic:1e-6", "the grid of the sky has about 1.3e+13 directions; wanted at most 20,000,000: a larger st"),
        ("isotropic:0.1@1,2", "wanted behind @ a cap ALPHA,DELTA,RADIUS, or a rectangle ALPHA,ALPHA,DELTA,DELTA, in"),
        ("isotropic:0.1@1,2,0.1", "the cap has the declination 2; wanted -pi/2 to pi/2 radians"),
        ("isotropic:0.1@1,1,4", "the radius of the cap is 4; wanted above 0 and at most pi radians"),
        ("uniform:0.1@2,1,0,1", "the rectangle is alpha 2 to 1, delta 0 to 1; wanted rising values, and at most a turn"),
    ],
)  # fmt: skip
def test_what_is_refused(text, message):
    with pytest.raises(InputError) as refusal:
        directions([text])
    assert message in str(refusal.value)

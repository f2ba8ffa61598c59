"""Flocks in the plane: they stay in it to the bit, fly as flocks in space do there, and every search finds the same."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanewise.sims import boids
from lanewise.sims.boids.settings import settings_from_json, settings_to_json
from lanewise.support.errors import InputError

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
BALL = boids.Sphere((10.0, 2.0, 5.0), 6.0)  # its middle is above the plane


def values(flock: Any) -> list[bytes]:
    s = flock.state
    return [getattr(s, n).tobytes() for n in ("position", "forward", "up", "speed", "acceleration")]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "more",
    [{}, {"boundary": "periodic"}, {"boundary": "open"}, {"obstacles": (BALL,)}, {"semantics": "thesis"}],
    ids=str,
)
def test_no_agent_leaves_the_plane(more: dict[str, Any], device: str) -> None:
    flock = boids.Flock(300, dimension=2, world=30.0, seed=1, device=device, **more)
    flock.advance(40)
    s = flock.state
    for values_of in (s.position, s.forward, s.acceleration):
        assert (values_of[:, 1] == 0).all()
    assert np.abs(s.position[:, [0, 2]]).max() > 1


@pytest.mark.parametrize("semantics", ["sync", "thesis"])
def test_it_flies_as_in_space(semantics: str) -> None:
    """Nothing in the rules leads out of the plane: three dimensions give the same, but for products that are added to
    zero.
    """
    how: dict[str, Any] = {"search": "all-pairs", "semantics": semantics, "precision": "f64", "device": "cpu"}
    flat = boids.Flock(200, dimension=2, seed=2, **how)
    deep = boids.Flock(state=flat.state, **how)
    for flock in (flat, deep):
        flock.advance(25)
    for name in ("position", "forward", "up", "speed", "acceleration"):
        np.testing.assert_allclose(getattr(flat.state, name), getattr(deep.state, name), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("boundary", ["wrap", "periodic"])
def test_every_search_finds_the_same(boundary: str) -> None:
    searches = ["all-pairs", "static-grid", "dynamic-grid", *(["cell-array"] if boundary == "wrap" else [])]
    flocks = [
        boids.Flock(400, dimension=2, seed=3, boundary=boundary, search=s, precision="f64", device="cpu")
        for s in searches
    ]
    for flock in flocks:
        flock.advance(10)
    for flock in flocks[1:]:
        np.testing.assert_allclose(flock.state.position, flocks[0].state.position, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("start", ["ball", "world", "cube", "shell", "disc", "clusters"])
def test_starts_lie_in_the_plane(start: str) -> None:
    state = boids.make_state(200, start=start, seed=4, dimension=2)
    assert (state.position[:, 1] == 0).all()
    assert (state.forward[:, 1] == 0).all()
    np.testing.assert_allclose(np.linalg.norm(state.forward, axis=1), 1)
    assert (state.up == (0, 1, 0)).all()
    assert np.linalg.norm(state.position, axis=1).max() <= 50


def test_a_checkpoint_goes_on(tmp_path: Path) -> None:
    flock = boids.Flock(150, dimension=2, collide=True, seed=5, device="cpu")
    flock.advance(10)
    flock.checkpoint(tmp_path / "flock.h5")
    again = boids.Flock.resume(tmp_path / "flock.h5")
    assert again.settings == flock.settings
    for f in (flock, again):
        f.advance(10)
    assert values(flock) == values(again)


def test_older_settings_are_in_space() -> None:
    flock = boids.Flock(10, device="cpu")
    text = settings_to_json(flock.settings)
    older = text.replace(', "dimension": 3', "").replace(', "collide": false', "")
    assert older != text
    assert settings_from_json(older) == flock.settings


def test_refusals() -> None:
    with pytest.raises(InputError, match="the dimension is 4; wanted 3, or 2 for a flock in the plane"):
        boids.Flock(10, dimension=4)
    with pytest.raises(InputError, match=r"has position\.y = .*; wanted zero, or dimension 3"):
        boids.Flock(state=boids.make_state(10), dimension=2)
    level = boids.make_state(10, dimension=2)
    with pytest.raises(InputError, match=r"has forward\.y = 1, and with"):
        boids.Flock(state=replace(level, forward=level.up, up=level.forward), dimension=2)

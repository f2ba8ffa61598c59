"""A run that is cut anywhere, written to a file and resumed has the bits of one that was not."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import lanewise as lw
from lanewise.loops.searches import Searching
from lanewise.sims.boids import Flock, Sphere
from lanewise.sims.boids import run as runner
from lanewise.sims.boids.checkpoint import ResumeWarning
from lanewise.sims.boids.options import Output
from lanewise.sims.boids.storage import REORDER
from tests.sims.boids.flocks import bits

SEARCHES = ("auto", "all-pairs", "static-grid", "dynamic-grid")
BOUNDARIES = ("open", "wrap", "periodic", "bounded", "outside-box")
AGENTS = 700
WORLD: dict[str, float] = {"open": 20.0, "bounded": 400.0}


def flock_of(boundary: str, **chosen: Any) -> Flock:
    world = WORLD.get(boundary, 20.0)
    return Flock(AGENTS, boundary=boundary, world=world, start_radius=12.0, seed=3, **chosen)


def check_cuts(cuts: tuple[int, ...], steps: int, folder: Path, boundary: str, **chosen: Any) -> None:
    """Of runs with a long step, so that agents spread over other cells than at the start."""
    dt = 0.1
    whole = flock_of(boundary, **chosen).run(steps, dt)
    part, done = flock_of(boundary, **chosen), 0
    for number, cut in enumerate(cuts):
        path = folder / f"{number}.h5"
        part.run(cut - done, dt).checkpoint(path, overwrite=True)
        part, done = Flock.resume(path), cut
    assert bits(part.run(steps - done, dt)) == bits(whole)
    assert part.describe_search() == whole.describe_search()


@pytest.mark.quick("open-{}", "open-{'k': 5, 'search': 'static-grid'}")
@pytest.mark.parametrize(
    ("boundary", "chosen"),
    [
        ("open", {}),
        ("open", {"think_every": 3, "search": "static-grid"}),
        ("open", {"k": 5, "search": "static-grid"}),
        ("wrap", {"search": "dynamic-grid"}),
    ],
    ids=str,
)
def test_cut_twice(boundary: str, chosen: dict[str, Any], tmp_path: Path) -> None:
    check_cuts((17, REORDER + 8), 60, tmp_path, boundary, **chosen)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["f32", "f64"])
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_cut_anywhere(boundary: str, search: str, precision: str, tmp_path: Path) -> None:
    random = np.random.default_rng(11)
    obstacles = () if boundary == "bounded" else (Sphere((3.0, 0.0, 1.0), 4.0),)
    for think_every, k in itertools.product((1, 3), (None, 6)):
        cuts = tuple(sorted({*random.integers(0, 90, 3).tolist(), REORDER}))
        chosen: dict[str, Any] = {"search": search, "precision": precision, "think_every": think_every, "k": k}
        check_cuts(cuts, 90, tmp_path, boundary, obstacles=obstacles, **chosen)


@pytest.mark.slow
@pytest.mark.parametrize(
    "search",
    [
        lw.StaticGrid(radius=9.0, cells=5),
        lw.CellArray(radius=9.0),
        lw.StaticGrid(radius=9.0, over=((-30.0, 30.0), (-9.0, 40.0), (-5.0, 5.0))),
    ],
    ids=str,
)
def test_cut_with_a_search_of_the_users(search: Any, tmp_path: Path) -> None:
    check_cuts((10, 40), 60, tmp_path, "open", search=search)


def test_after_a_change_of_settings_too(tmp_path: Path) -> None:
    """A change lays the cells anew, before the file and after it."""
    whole, part = flock_of("open"), flock_of("open")
    for flock in (whole, part):
        flock.run(12, 0.1).cohesion_weight = 5.0
        flock.run(11, 0.1)
    part.checkpoint(tmp_path / "a.h5")
    part = Flock.resume(tmp_path / "a.h5")
    assert bits(part.run(20, 0.1)) == bits(whole.run(20, 0.1))
    for flock in (whole, part):
        flock.max_speed = 8.0
    assert bits(part.run(20, 0.1)) == bits(whole.run(20, 0.1))


def test_older_files_resume_and_say_that_bits_may_differ(tmp_path: Path) -> None:
    path = tmp_path / "old.h5"
    run = runner.start({"agents": AGENTS, "boundary": "open", "start_radius": 12.0}, steps=5, output=Output(path))
    run.execute()
    with h5py.File(path, "r+") as file:
        group: Any = file["lanewise"]
        assert len(json.loads(group.attrs["laid"])["over"]) == 3
        del group.attrs["laid"]
    note = (
        "the cells of a static grid in an open world follow the first positions, which this older file does not keep; "
    )
    with pytest.warns(ResumeWarning, match="the last places may differ"):
        flock = Flock.resume(path)
    assert flock.run(3).step == 8
    resumed = runner.resume(path, steps=5, dt=None, device=None, output=Output())
    assert note in resumed.note
    resumed.execute()
    with h5py.File(path) as file:
        assert "laid" in file["lanewise"].attrs


def test_what_is_raised_within_a_step_says_that_it_is_one_of_the_flock(monkeypatch: pytest.MonkeyPatch) -> None:
    flock = flock_of("periodic", search="static-grid")
    flock.advance(3)

    def fail(*_: Any) -> None:
        raise ValueError("a fault")

    monkeypatch.setattr(Searching, "__call__", fail)
    with pytest.raises(ValueError, match="a fault") as raised:
        flock.advance(1)
    assert raised.value.__notes__ == ["raised in step 3 of the flock"]

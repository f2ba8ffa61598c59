"""The cells of a static grid as an axis of the ladder of flocks."""

from __future__ import annotations

import pytest

from lanewise.ladders import LADDERS, find_ladder
from lanewise.ladders.boids_cells import ALONG, QUICK
from lanewise.ladders.rung import Options
from tests.cli.command import Command
from tests.cli.conftest import lanewise as lanewise

CELLS = find_ladder("boids", "cells")


@pytest.fixture(scope="module")
def rungs():
    return list(CELLS.climb(Options("cpu", (500,), quick=True, worlds=(20.0,))))


def test_every_point_is_checked_against_float64(rungs):
    assert [r.extra["cells"] for r in rungs] == list(QUICK)
    assert all(r.seconds is not None for r in rungs), [r.skipped for r in rungs]
    assert all(r.relative_error is not None and r.relative_error < 1e-4 for r in rungs)


def test_names_and_what_they_are_compared_with(rungs):
    assert [r.name for r in rungs] == [f"W=20, {c}^3 cells, host" for c in QUICK]
    assert [r.over for r in rungs] == [None, *(["W=20, 6^3 cells, host"] * 3)]


def test_the_summary_names_the_minimum(rungs):
    (line,) = CELLS.summary(rungs)
    best = min(rungs, key=lambda r: r.seconds)
    assert line.startswith(f"500 agents, W=20, built by the host: fastest with {best.extra['cells']}^3 cells, ")


def test_the_picture(rungs, tmp_path):
    assert CELLS.draw is not None
    CELLS.draw(tmp_path / "cells.png", CELLS, rungs, "a test")
    assert (tmp_path / "cells.png").read_bytes()[:4] == b"\x89PNG"
    CELLS.draw(tmp_path / "none.png", CELLS, [], "a test")


def test_the_thesis_has_these_cells():
    """6^3 to 48^3, the side of the radius among them."""
    assert (ALONG[0], ALONG[-1]) == (6, 48)
    assert 24 in ALONG
    assert set(QUICK) <= set(ALONG)


def test_every_axis_is_a_ladder():
    for name, axes in LADDERS.items():
        assert [find_ladder(name, axis).name for axis in axes] == [f"{name} {axis}" for axis in axes]


@pytest.mark.parametrize(
    ("name", "axis", "said"),
    [
        ("tree", "cells", "--axis cells: ladder tree has no axes; wanted ladder layouts or lbm or boids"),
        ("boids", "cell", "--axis cell: unknown; did you mean 'cells'? ladder boids has cells, agents"),
    ],
)
def test_axes_that_are_not_there(lanewise: Command, name: str, axis: str, said: str) -> None:
    outcome = lanewise("ladder", name, "--axis", axis)
    assert (outcome.code, outcome.err.strip()) == (2, f"error: {said}")

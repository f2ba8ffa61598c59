"""What is lost at the end of a run is written first: whatever fails there, the results are on the disk, and
complete.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

from lanewise.cli.main import app
from lanewise.sims.boids.run import SimulatedFlock
from lanewise.sims.common.films import PaintedFilm
from lanewise.sims.gravity.run import SimulatedBodies
from lanewise.sims.lbm.run import Measurements, SimulatedFlow
from lanewise.sims.lbm.view.movie import FlowMovie

STEPS = 8
RUNS: dict[str, tuple[str, ...]] = {
    "gravity": (
        *("gravity", "run", "--bodies", "16", "--ic", "plummer", "--softening", "0.1", "--out", "a.h5"),
        *("--diagnostics-every", "2", "--movie", "a.gif", "--movie-every", "4", "--plot", "a.png"),
    ),
    "lbm": (
        *(
            "lbm",
            "run",
            "cylinder",
            "--size",
            "10",
            "--speed",
            "0.1",
            "--out",
            "a.h5",
            "--vti",
            "a.vti",
            "--forces",
            "a.csv",
        ),
        *("--movie", "a.gif", "--every", "4", "--plot", "a.png"),
    ),
    "boids": (
        *("boids", "run", "--agents", "16", "--search", "all-pairs", "--out", "a.h5", "--final", "a.csv"),
        *("--every", "4", "--movie", "a.gif", "--plot", "a.png"),
    ),
}
"""With everything that a run writes."""

KEPT = {"gravity": ("a.h5",), "lbm": ("a.h5", "a.vti", "a.csv"), "boids": ("a.h5", "a.csv")}
LAST: dict[str, tuple[type, str]] = {
    "gravity: diagnostics": (SimulatedBodies, "_measure"),
    "gravity: frame": (SimulatedBodies, "_add_frame"),
    "gravity: film": (PaintedFilm, "__exit__"),
    "gravity: picture": (SimulatedBodies, "finish"),
    "gravity: summary": (SimulatedBodies, "summary"),
    "lbm: probe": (Measurements, "take"),
    "lbm: frame": (SimulatedFlow, "_add_picture"),
    "lbm: film": (FlowMovie, "__exit__"),
    "lbm: picture": (SimulatedFlow, "finish"),
    "lbm: summary": (SimulatedFlow, "summary"),
    "boids: statistics": (SimulatedFlock, "_add_frame"),
    "boids: order": (SimulatedFlock, "_look_at_order"),
    "boids: frame": (SimulatedFlock, "_add_picture"),
    "boids: film": (PaintedFilm, "__exit__"),
    "boids: picture": (SimulatedFlock, "finish"),
    "boids: summary": (SimulatedFlock, "summary"),
}

QUICK = {"gravity: diagnostics", "gravity: summary", "lbm: film", "boids: order"}


class LastStepError(Exception):
    """What no part of lanewise expects."""


def failing(method: Callable[..., Any]) -> Callable[..., Any]:
    """Fails from the last step on; films when they are closed."""

    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        if isinstance(self, PaintedFilm | FlowMovie):
            method(self, *arguments, **named)
            raise LastStepError
        simulation = getattr(self, "simulation", self)
        if simulation.step >= STEPS:
            raise LastStepError
        return method(self, *arguments, **named)

    return call


def run(words: tuple[str, ...]) -> Any:
    return CliRunner().invoke(app, [*words, "--steps", str(STEPS), "--device", "cpu", "--quiet"])


def numbers(path: Path) -> Any:
    """What decides how the simulation goes on, and what was requested."""
    if path.suffix != ".h5":
        return path.read_bytes()
    found: dict[str, Any] = {}

    def take(name: str, held: Any) -> None:
        if isinstance(held, h5py.Dataset) and not {"history", "trajectory"} & set(name.split("/")):
            found[name] = np.asarray(held[()]).tobytes()

    with h5py.File(path) as file:
        file.visititems(take)
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The files of runs of which nothing fails."""
    folders = {name: tmp_path_factory.mktemp(name) for name in RUNS}
    with pytest.MonkeyPatch.context() as patch:
        for name, words in RUNS.items():
            patch.chdir(folders[name])
            done = run(words)
            assert done.exit_code == 0, done.output
    return folders


@pytest.mark.parametrize("last", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in LAST])
def test_what_fails_at_the_end_leaves_the_results(
    last: str, whole: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    product, place = last.partition(":")[0], LAST[last]
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(*place, failing(getattr(*place)))
        if place[0] is Measurements:  # whose interval the case chooses
            patch.setattr(Measurements, "due", lambda *_, **__: True)
        assert isinstance(run(RUNS[product]).exception, LastStepError)
    for name in KEPT[product]:
        if last == "lbm: probe" and name == "a.csv":
            continue  # the measurement is what failed
        kept, wanted = numbers(tmp_path / name), numbers(whole[product] / name)
        assert kept == wanted, name
    again = (product, "run", "--resume", "a.h5", "--steps", "2", "--quiet", "--device", "cpu")
    went_on = CliRunner().invoke(app, list(again))
    assert went_on.exit_code == 0, went_on.output + str(went_on.exception)

"""Checkpoints: 20 steps are 10 steps, a file, and 10 steps; to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from lanewise.sims.boids import Flock, Sphere
from lanewise.sims.boids import run as runner
from lanewise.sims.boids.options import Output
from lanewise.support.errors import InputError
from tests.io.samples import renew_sums
from tests.sims.boids.flocks import bits

SEARCHES = ("auto", "all-pairs", "static-grid", "dynamic-grid")
VARIANTS: dict[str, dict[str, Any]] = {
    "all-pairs": {"search": "all-pairs"},
    "seq": {"semantics": "seq"},
    "thinkers": {"search": "all-pairs", "think_every": 3},
}
SLOW: dict[str, dict[str, Any]] = {
    **{f"{s} {p}": {"search": s, "precision": p} for s in SEARCHES for p in ("f32", "f64")},
    **{f"{s} k": {"search": s, "k": 5} for s in SEARCHES},
    "thesis": {"semantics": "thesis", "think_every": 3},
    "obstacles": {"boundary": "outside-box", "obstacles": (Sphere((1, 2, 3), 4.0, "both"),)},
    "periodic": {"boundary": "periodic", "search": "static-grid"},
    "open": {"boundary": "open", "search": "dynamic-grid"},
    "constants": {"cohesion_weight": 3.0, "radius": 6.0, "layout": "aosoa(8)"},
}


@pytest.mark.parametrize(
    "chosen",
    [
        *(pytest.param(v, id=n) for n, v in VARIANTS.items()),
        *(pytest.param(v, id=n, marks=pytest.mark.slow) for n, v in SLOW.items()),
    ],
)
def test_20_steps_are_10_and_10(chosen: dict[str, Any], tmp_path: Path) -> None:
    whole, half = (Flock(300, world=30, seed=4, **chosen) for _ in range(2))
    whole.run(20, 0.02)
    half.run(10, 0.02).checkpoint(tmp_path / "a.h5")
    again = Flock.resume(tmp_path / "a.h5")
    assert bits(again) == bits(half)
    assert again.settings == half.settings
    assert bits(again.run(10, 0.02)) == bits(whole)


def test_a_resumed_run_that_loses_an_agent_leaves_its_file(tmp_path: Path) -> None:
    """It is where its first step finds it lost."""
    path = tmp_path / "a.h5"
    chosen = {"agents": 20, "world": 20.0, "search": "all-pairs", "boundary": "open"}
    runner.start(chosen, steps=2, output=Output(path)).execute()
    with h5py.File(path, "r+") as file:
        positions: Any = np.array(file["state/position"])
        positions[3] = 1e30
        del file["state/position"]
        file["state/position"] = positions
        renew_sums(file)
    before = path.read_bytes()
    run = runner.resume(path, steps=4, dt=0.1, device="cpu", output=Output())
    with pytest.raises(InputError, match="agent 3"):
        run.execute()
    assert path.read_bytes() == before


def test_a_run_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    def start(steps: int, out: Path) -> runner.FlockRun:
        run = runner.start(
            {"agents": 100, "world": 20.0, "search": "all-pairs"},
            steps=steps,
            output=Output(out, every=4, overwrite=True),
        )
        run.execute()
        return run

    whole = start(20, tmp_path / "whole.h5")
    start(10, tmp_path / "half.h5")
    run = runner.resume(tmp_path / "half.h5", steps=10, dt=None, device=None, output=Output())
    assert run.note == ""
    run.execute()
    assert bits(run.state.flock) == bits(whole.state.flock)
    a: Any
    b: Any
    with h5py.File(tmp_path / "whole.h5") as a, h5py.File(tmp_path / "half.h5") as b:
        for group in ("trajectory", "history", "state"):
            assert set(a[group]) == set(b[group])
            for name in a[group]:
                assert np.array_equal(a[f"{group}/{name}"], b[f"{group}/{name}"]), name
        assert a["trajectory/step"][()].tolist() == [0, 4, 8, 12, 16, 20]
        assert a["trajectory/position"].shape == (6, 100, 3)
        assert a.attrs["cohesion_weight"] == 8
        assert a.attrs["agents"] == 100
        assert np.array_equal(a["trajectory/position"][-1], a["state/position"])
    summary = run.finish()
    assert summary["steps"] == 10
    assert summary["polarisation_initial"] == whole.finish()["polarisation_initial"]


@pytest.mark.parametrize("steps", [[0, 4, 3], [0, 4, 4], [0, 4, 9]], ids=["back", "twice", "still to come"])
def test_frames_that_cannot_be_those_of_the_run_are_refused(steps: list[int], tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    chosen = {"agents": 20, "world": 20.0, "search": "all-pairs"}
    runner.start(chosen, steps=8, output=Output(path, every=4)).execute()
    Flock.resume(path)
    file: Any
    with h5py.File(path, "r+") as file:
        assert file["trajectory/step"][()].tolist() == [0, 4, 8]
        file["trajectory/step"][...] = steps
        renew_sums(file)
    with pytest.raises(InputError, match="damaged checkpoint: its frames are not of growing steps up to 8"):
        Flock.resume(path)


def test_checkpoints_by_the_way_change_nothing(tmp_path: Path) -> None:
    runs = [
        runner.start(
            {"agents": 60, "search": "all-pairs"},
            steps=12,
            output=Output(tmp_path / f"{n}.h5", every=3, checkpoint_every=n),
        )
        for n in (0, 1, 5)
    ]
    for run in runs:
        run.execute()
    assert bits(runs[0].state.flock) == bits(runs[1].state.flock) == bits(runs[2].state.flock)
    a: Any
    b: Any
    with h5py.File(tmp_path / "0.h5") as a, h5py.File(tmp_path / "1.h5") as b:
        assert np.array_equal(a["trajectory/position"], b["trajectory/position"])


def test_files_that_are_no_checkpoints(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"] = 1
    with pytest.raises(InputError) as error:
        Flock.resume(path)
    assert (
        str(error.value)
        == f"{path}: no checkpoint of lanewise boids; wanted a file that --out or Flock.checkpoint has written"
    )
    Flock(10).checkpoint(path, overwrite=True)
    with pytest.raises(InputError) as error:
        runner.resume(path, steps=1, dt=None, device=None, output=Output())
    assert (
        str(error.value)
        == f"{path}: a checkpoint without a run, written by Flock.checkpoint; continue it with Flock.resume"
    )
    with h5py.File(path, "r+") as file:
        file["lanewise"].attrs["settings"] = "{}"
    with pytest.raises(InputError, match="damaged checkpoint: its settings cannot be read"):
        Flock.resume(path)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(InputError, match=r"a\.h5"):
        Flock.resume(path)

"""What ladders show on a GPU alone: in the files of results, and as they measure it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lanewise.ladders import find_ladder
from lanewise.ladders.rung import Options

RESULTS = Path(__file__).parents[2] / "bench" / "results" / "ladders"
Rungs = dict[str, dict[str, Any]]


def check_waves(rungs: Rungs) -> None:
    for name in ("2: packed data", "3: one kernel per band", "4: stacks in the grid", "4d: in float64"):
        assert 0 <= rungs[name]["idle_threads"] < rungs[name]["threads"], name
        assert rungs[name]["over_cpu"] > 0, name
    assert rungs["4d: in float64"]["relative_error"] < 1e-8 < rungs["4: stacks in the grid"]["relative_error"]
    assert rungs["5b: Hough on the host during F"]["over"] == "5: Hough on the host"


def check_tutorial(rungs: Rungs) -> None:
    for name in ("N threads", "shared-memory blocking", "automatic plan"):
        rung = rungs[name]
        assert rung["precision"] == "f64"
        assert 0 < rung["share_of_peak"] < rung["share_of_arithmetic"] <= rung["share_of_bound"] < 1.2, name
        assert rung["memory_bytes_per_second"] > 0, name
        assert rung["relative_error"] < 1e-13, name
    assert all(rungs[n]["seconds"] > 0 for n in ("hybrid, 10 % on the CPU", "hybrid, both finish together"))


def check_bodies(rungs: Rungs) -> None:
    assert rungs["one CPU thread"]["in_seconds"] == 0
    for name in ("AoS", "SoA", "automatic"):
        parts = [rungs[name][f"{part}_seconds"] for part in ("in", "kernel", "out")]
        assert min(parts) > 0, name
        assert sum(parts) == pytest.approx(rungs[name]["seconds"]), name


def check_cells(rungs: Rungs) -> None:
    assert {r["curve"] for r in rungs.values()} == {f"W=50, built by the {where}" for where in ("host", "device")}
    assert all(r["relative_error"] < 1e-4 for r in rungs.values())


def check_solid(rungs: Rungs) -> None:
    assert len(rungs) == 9
    assert all(r["relative_error"] < 1e-4 for r in rungs.values())
    assert len({r["share"] for r in rungs.values()}) == 3


@pytest.mark.parametrize("measured", [False, pytest.param(True, marks=pytest.mark.cuda)])
@pytest.mark.parametrize(
    ("file", "ladder", "axis", "options", "check"),
    [
        ("waves_quick", "waves", None, {}, check_waves),
        ("tutorial_f64", "tutorial", None, {"bodies": (2048,), "precision": "f64"}, check_tutorial),
        # few bodies: one thread of a busy machine is left out where it would take too long
        ("layouts_bodies", "layouts", "bodies", {"bodies": (8192,)}, check_bodies),
        ("boids_cells", "boids", "cells", {}, check_cells),
        ("lbm_solid", "lbm", "solid", {}, check_solid),
    ],
)
def test_shown(
    file: str, ladder: str, axis: str | None, options: dict[str, Any], check: Callable[[Rungs], None], measured: bool
) -> None:
    if measured:
        found = find_ladder(ladder, axis)
        usual = Options("cuda", found.sizes("cuda", True), quick=True)
        rungs: Any = [r.as_dict() for r in found.climb(replace(usual, **options))]
    else:
        rungs = json.loads((RESULTS / f"{file}.json").read_text())["rungs"]
    first = rungs[0]["bodies"]
    check({r["name"]: r for r in rungs if r["bodies"] == first})

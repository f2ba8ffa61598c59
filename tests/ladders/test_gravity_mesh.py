"""The ladder `gravity-mesh`: one device and two parts, checked in float64 and bit by bit, with the
crossover of the first step; one device is said to be one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import lanewise as lw
from lanewise.ladders import find_ladder, gravity_mesh
from lanewise.ladders.gravity_mesh import (
    ONE,
    PART,
    TWO,
    VIRTUAL,
    crossover,
    draw,
    places,
    summary,
)
from lanewise.ladders.rung import Options, Rung, as_json


def test_rungs_have_both_times_and_the_picture_both_curves(tmp_path: Path) -> None:
    ladder = find_ladder("gravity-mesh")
    rungs = list(ladder.climb(Options("cpu", (100, 301), quick=True)))
    assert [r.name for r in rungs] == [ONE, PART, VIRTUAL] * 2
    assert [r.device for r in rungs[:3]] == ["cpu", "cpu*1", "cpu*2"]
    for rung in rungs:
        assert rung.skipped is None
        assert float(rung.extra["first_seconds"] or 0) > 0
        assert (rung.relative_error or 1) < 1e-6
        assert (rung.speedup is None) == (rung.name == ONE)
    assert [r.extra["virtual"] for r in rungs[:3]] == ["no", "no", "yes"]
    assert "no gain of two" in summary(rungs)[-1]
    document = json.loads(json.dumps(as_json({}, ladder, rungs)))
    assert {"first_seconds", "overhead_seconds", "first_speedup", "parts"} <= set(document["rungs"][0])
    draw(tmp_path / "a.png", ladder, rungs, "a machine")
    with Image.open(tmp_path / "a.png") as image:
        assert image.width > 900


def test_another_gpu_is_taken_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Named:
        def __init__(self, devices: Any, parts: int = 0) -> None:
            self.devices = [devices] * parts if parts else devices

    monkeypatch.setattr(gravity_mesh.lw, "Mesh", Named)
    for device, count, name, wanted in (
        ("cuda", 1, VIRTUAL, ["cuda:0", "cuda:0"]),
        ("cuda", 2, TWO, ["cuda:0", "cuda:1"]),
        ("cuda:1", 2, TWO, ["cuda:1", "cuda:0"]),
        ("cuda:1", 4, TWO, ["cuda:1", "cuda:0"]),
        ("cpu", 2, VIRTUAL, ["cpu", "cpu"]),
    ):
        monkeypatch.setattr(gravity_mesh, "cuda_device_count", lambda count=count: count)
        assert places(device)[name].devices == wanted  # pyright: ignore[reportAttributeAccessIssue]


def test_wrong_forces_and_other_bits_have_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options("cpu", (200,), quick=True)
    own = gravity_mesh._on_host

    def nearly(result: Any) -> Any:
        found = own(result)
        two = isinstance(result, lw.SplitArray) and len(result.parts) == 2
        return np.nextafter(found, np.float32(2)) if two else found

    monkeypatch.setattr(gravity_mesh, "_on_host", nearly)
    rungs = list(find_ladder("gravity-mesh").climb(options))
    assert [r.skipped is None for r in rungs] == [True, True, False]
    assert "its bits are not those of a mesh of one part" in str(rungs[2].skipped)
    monkeypatch.setattr(gravity_mesh, "_on_host", lambda result: own(result) * 1.01)
    rungs = list(find_ladder("gravity-mesh").climb(options))
    assert all(r.extra["skip"] == "wrong" for r in rungs)


def test_what_takes_too_long_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gravity_mesh, "_pilot", lambda problem, place: 1.0)
    rungs = list(find_ladder("gravity-mesh").climb(Options("cpu", (40_000,), quick=True)))
    assert [r.extra["skip"] for r in rungs] == ["too long"] * 3
    assert "a rung gets 10 minutes" in str(rungs[0].skipped)


def rung(name: str, count: int, speedup: float | None, first: float | None) -> Rung:
    return Rung(name=name, bodies=count, seconds=1.0, speedup=speedup, extra={"first_speedup": first})


def test_the_crossover_is_behind_the_last_size_that_is_slower() -> None:
    rungs = [
        rung(TWO, 400, 1.9, 1.5), rung(TWO, 100, 0.5, 0.2), rung(ONE, 400, None, None),
        rung(TWO, 200, 1.2, 0.9),
    ]  # fmt: skip
    assert crossover(rungs, "first_speedup") == "from 400 bodies on (slower at 200)"
    assert crossover(rungs, None) == "from 200 bodies on (slower at 100)"
    assert crossover(rungs[1:2], None) == "at none of these sizes"
    lines = summary(rungs)
    assert len(lines) == 2
    assert "1.90 times (paper, 22 million bodies: 14.22 h, 7.43 h, 1.91 times)" in lines[1]
    assert summary([]) == []

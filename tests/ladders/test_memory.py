"""The ladder of memory accesses: every cell runs and is checked on a CPU, and compiles for a GPU, with and without the clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.ladders import find_ladder
from lanewise.ladders.memory import LADDER, climb, cpu_cache_bytes, is_cached, layouts, sizes
from lanewise.ladders.memory_cells import (
    ACCESSES,
    Bodies,
    MemoryCell,
    cell_program,
    clocked_program,
    make_bodies,
    predicted_seconds,
)
from lanewise.ladders.rung import Options, Rung, as_json
from lanewise.runtime.nvrtc import compile_cubin

NAMES = [f"{access}, {layout}" for access in ACCESSES for layout in ("AoS", "SoA", "AoAS", "SoAoAS", "AoSoA")]


@pytest.fixture(scope="module")
def rungs() -> list[Rung]:
    return list(climb(Options("cpu", (3000,), quick=True)))


def test_every_cell_is_measured_and_checked(rungs: list[Rung]) -> None:
    assert [r.name for r in rungs] == NAMES
    for r in rungs:
        assert r.skipped is None
        assert r.seconds is not None
        assert r.seconds > 0
        assert r.relative_error is not None
        assert r.relative_error < 1e-6
        assert r.extra["cached"] == "yes"  # 84 kB fit every last-level cache
        assert isinstance(cycles := r.extra["cycles_per_element"], float)
        assert cycles > 0


def test_factors_compare_with_aos_of_the_same_access(rungs: list[Rung]) -> None:
    for r in rungs:
        access, _, layout = r.name.partition(", ")
        assert r.over == (None if layout == "AoS" else f"{access}, AoS")
        if r.over is not None:
            base = next(x for x in rungs if x.name == r.over)
            assert r.speedup == pytest.approx(base.extra["cycles_per_element"] / r.extra["cycles_per_element"])  # type: ignore[operator]
            assert r.predicted == pytest.approx(base.predicted_seconds / r.predicted_seconds)  # type: ignore[operator]


def test_the_papers_figures_stand_where_the_paper_measured(rungs: list[Rung]) -> None:
    assert {r.name: r.paper for r in rungs if r.paper} == {
        "streamed, SoA": {"CUDA 1.0": 1.1},
        "streamed, SoAoAS": {"CUDA 1.0": 1.5, "CUDA 2.2": 1.3},
    }


def test_report(rungs: list[Rung]) -> None:
    found = json.loads(json.dumps(as_json({"name": "here"}, LADDER, rungs)))
    wanted = {"name", "seconds", "speedup", "predicted", "paper", "relative_error", "skipped", "cycles_per_element"}
    assert all(wanted <= row.keys() for row in found["rungs"])
    lines = LADDER.summary(rungs)
    assert [line.split(":")[0] for line in lines] == [f"{access}, from the cache" for access in ACCESSES]
    assert find_ladder("memory") is LADDER


def test_wrong_sums_have_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    true = Bodies.sums
    monkeypatch.setattr(Bodies, "sums", lambda self, access: true(self, access) * (1 + 1e-5))
    rung = next(iter(climb(Options("cpu", (100,), quick=True))))
    assert rung.seconds is None
    assert rung.skipped == "wrong: the relative error against float64 is 1.0e-05, and 1e-06 is allowed"
    assert rung.extra["skip"] == "wrong"


def test_float64_sums() -> None:
    data = make_bodies(50, 4)
    every = np.concatenate([np.asarray(a, np.float64).reshape(50, -1) for a in data.fields.values()], axis=1)
    np.testing.assert_allclose(data.sums("streamed"), every.sum(axis=1))
    np.testing.assert_allclose(data.sums("gathered"), data.sums("subset")[data.order])
    assert sorted(data.order.tolist()) == list(range(50))


def test_sizes_lie_on_both_sides_of_the_cache() -> None:
    for quick in (False, True):
        cached, beyond = sizes("cpu", quick)
        assert is_cached("cpu", cached)
        assert not is_cached("cpu", beyond)


def test_cache_sizes_of_the_system(tmp_path: Path) -> None:
    assert cpu_cache_bytes(tmp_path) == 0
    for n, text in enumerate(("32K\n", "1024K\n", "32M\n")):
        (tmp_path / f"index{n}").mkdir()
        (tmp_path / f"index{n}" / "size").write_text(text)
    assert cpu_cache_bytes(tmp_path) == 32 << 20


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("name", ["AoS", "SoA", "AoAS", "SoAoAS", "AoSoA"])
def test_compiles_for_sm_90(name: str, access: Any) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    cell = MemoryCell(layouts("cuda")[name], access)
    for program in (cell_program(cell, "cuda"), clocked_program(cell, "cuda")):
        (kernel,) = program.kernels
        cubin = compile_cubin(emit_cuda(kernel, "test"), kernel.name, "sm_90")
        assert "warning" not in cubin.log.lower(), cubin.log
        found = cubin.resources
        assert (found.spill_stores, found.spill_loads, found.stack_bytes) == (0, 0, 0)
        assert found.registers <= 40


@pytest.mark.cuda
def test_on_a_gpu() -> None:
    found = list(climb(Options("cuda", (100_003,), quick=True)))
    assert [r.name for r in found] == NAMES
    for r in found:
        assert r.skipped is None, r.skipped
        assert r.relative_error is not None
        assert r.relative_error < 1e-6
        cycles = r.extra["cycles_per_element"]
        assert isinstance(cycles, float)
        assert 10 < cycles < 1e5  # no access to memory takes less


def test_the_model_knows_what_a_gather_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU: one sector for position and mass under SoAoAS, four under SoA."""
    monkeypatch.setattr("lanewise.runtime.devices.missing_for_cuda", lambda: ("no GPU",))
    one, four = (
        predicted_seconds(MemoryCell(x, "gathered"), "cuda", 20_000_000, cached=False) for x in (lw.SoAoAS(), lw.SoA())
    )
    assert four / one == pytest.approx((128 / 1.84 + 8 / 4.42) / (32 / 1.84 + 8 / 4.42), rel=0.01)

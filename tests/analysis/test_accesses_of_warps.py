"""What a warp asks of caches and memory, and what a compiler does not ask twice."""

from __future__ import annotations

import numpy as np
import pytest

import lanewise as lw
from lanewise.analysis.instructions import mix
from lanewise.analysis.region import KernelWork
from lanewise.analysis.region_costs import lie_of_warp
from lanewise.analysis.regions import analyse
from lanewise.analysis.sampling import sample_warps
from lanewise.compiler.pipeline import Program, build_program
from lanewise.explanation.calls import call_subject
from lanewise.models.devices import table_model
from lanewise.models.gpu_time import unit_cycles
from lanewise.models.least import least_time

H200 = table_model("sm_90")
LANES = np.arange(32)[None]
EVERY = np.ones((1, 32), bool)


@pytest.mark.parametrize(
    ("places", "size", "passes"),
    [
        (LANES, 4, 1),
        (LANES + 1, 4, 1),  # two lines, but every bank once
        (LANES * 4, 4, 4),
        (LANES * 32, 4, 32),  # one bank
        (LANES * 33, 4, 16),  # every bank, but as many lines as lanes
        (LANES, 16, 4),
        (LANES // 8, 16, 2),
    ],
)
def test_passes_are_those_of_the_fullest_bank(places: np.ndarray, size: int, passes: float) -> None:
    assert lie_of_warp(places, EVERY, size).wavefronts == passes


def test_warps_of_an_index_space_are_looked_at_side_by_side() -> None:
    assert list(sample_warps(256, in_rows=True)) == list(range(8))
    assert list(np.diff(sample_warps(1024, in_rows=True))) == [1] * 7
    assert list(sample_warps(1024, in_rows=False)) == [4, 12, 20, 28]


def _built(kernel, plan: lw.Plan, grid: tuple[int, ...], **given: np.ndarray) -> tuple[Program, dict[str, object]]:
    subject, _, _ = call_subject(kernel, (), {**given, "grid": grid}, "cuda", H200)
    return build_program(subject.reference, subject.default(plan), "cuda"), dict(subject.environment)


def _work(program: Program, environment: dict[str, object]) -> KernelWork:
    return analyse(program.kernels[0], environment)


@lw.threadwise
def strided(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    r[y, x] = a[3 * y, x] + a[3 * y + 1, x]


def test_rows_that_nothing_reads_are_not_moved() -> None:
    a, r = np.empty((3 * 2048, 4096), np.float32), np.empty((2048, 4096), np.float32)
    for plan in (lw.Plan(), lw.Plan(block=256), lw.Plan(block=256, rows=4, across=32, targets=4)):
        program, environment = _built(strided, plan, r.shape, a=a, r=r)
        assert _work(program, environment).reached == {"a/0/read": pytest.approx(2 / 3)}
        bound = least_time(program, environment, H200, cold=True)
        assert bound.details["memory"] == pytest.approx((a.nbytes * 2 / 3 + r.nbytes) / H200.most_bandwidth)


@lw.threadwise
def distances(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += (a[y, k] - b[k, x]) * (a[y, k] - b[k, x])
    r[y, x] = s


def test_what_is_read_twice_of_a_ring_of_tiles_is_computed_once() -> None:
    """As in the machine code of NVRTC: 8 x 8 points of a thread, 8 rounds."""
    a, b, r = (np.empty(shape, np.float32) for shape in ((1024, 128), (128, 4096), (1024, 4096)))
    program, environment = _built(distances, lw.Plan(), r.shape, a=a, b=b, r=r)
    assert program.plan.prefetch == "async"
    inner = max(_work(program, environment).regions, key=lambda x: x.instructions["fp32 add"])
    assert (inner.instructions["fp32 add"], inner.instructions["fp32 fma"]) == (512, 512)
    assert inner.instructions["shared load 16"] == 32
    assert inner.instructions["shared load 4"] == 0


@lw.threadwise
def column(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    r[y, x] = a[y, x] + a[y + 1, x] + a[y + 2, x]


def test_what_warps_of_a_block_read_alike_counts_once() -> None:
    a, r = np.empty((4098, 4096), np.float32), np.empty((4096, 4096), np.float32)
    program, environment = _built(column, lw.Plan(block=256, across=32, rows=1, targets=1), r.shape, a=a, r=r)
    region = max(_work(program, environment).regions, key=lambda x: x.sectors.get("a/0/read", 0.0) * x.executions)
    assert region.sectors["a/0/read"] == pytest.approx(12)  # three rows of 128 bytes a warp
    assert region.together["a/0/read"] == pytest.approx(5)  # ten rows a block of eight warps


def test_choices_move_to_the_pipe_of_products_where_that_is_idle() -> None:
    def integer(**counts: float) -> float:
        return unit_cycles(mix({k.replace("_", " "): n for k, n in counts.items()}), (), H200)["integer"] * 2

    assert integer(extreme=256, compare=256, select=256) == pytest.approx(512)
    assert integer(fp32_mul=256, compare=256, select=256) == pytest.approx(512)  # no choice moves
    assert integer(integer=100) == pytest.approx(50)
    assert integer(compare=100, integer=20) == pytest.approx(100)

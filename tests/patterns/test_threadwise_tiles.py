"""Where tiles lie in shared memory, what caches are told of elements that are touched once, and layers one after the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.analysis.regions import analyse
from lanewise.compiler.pipeline import build_program
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements
from lanewise.ir.verify import verify_kernel
from lanewise.launch.support import compile_kernel
from lanewise.models import predict
from lanewise.models.devices import table_model
from lanewise.passes.points.boxes import wavefronts
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime.nvrtc import Resources
from tests.passes.ptx import check_cubin
from tests.patterns.threadwise import run_stage, stages

Array = np.ndarray[Any, Any]
SQUARES = Plan(block=64, neighbours="first", across=8, rows=4, targets=4, tile=1)
LAYERS = Plan(block=32, across=8, rows=2, targets=4, layers=4)


@lw.threadwise
def turn(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[x, y] = a[y, x]


@lw.threadwise
def turn_wide(y: lw.index, x: lw.index, a: lw.Array2[lw.f64], c: lw.Array2[lw.f64]):
    c[x, y] = a[y, x]


@lw.threadwise
def symmetric(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[x, y] = a[y, x] + a[x, y]


@lw.threadwise
def add_turned(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[x, y] += a[y, x]


@lw.threadwise
def repeated(z: lw.index, y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array3[lw.f32]):
    c[z, y, x] = a[x, y]


@lw.threadwise
def inner(z: lw.index, y: lw.index, x: lw.index, a: lw.Array3[lw.f32], c: lw.Array3[lw.f32]):
    if 0 < z < a.shape[0] - 1 and 0 < y < a.shape[1] - 1 and 0 < x < a.shape[2] - 1:
        s = a[z - 1, y, x] + a[z + 1, y, x] + a[z, y - 1, x] + a[z, y + 1, x] + a[z, y, x - 1] + a[z, y, x + 1]
        c[z, y, x] = s - 6.0 * a[z, y, x]


def wide(kernel: Any, shapes: dict[str, tuple[int, ...]], grid: tuple[int, ...], kind: Any = np.float32) -> ir.Kernel:
    """The reference kernel for arrays whose rows begin at multiples of 16 bytes."""
    reference = kernel.compile(**{n: np.zeros(s, kind) for n, s in shapes.items()}, grid=grid).reference
    return replace(reference, arrays=tuple(replace(a, multiple=4) for a in reference.arrays))


# ------------------------------------------------------------ swizzled tiles


@settings(max_examples=5, deadline=None)
@drawn(st.integers(1, 10), st.integers(1, 10))
def test_a_swizzled_tile_turns_a_matrix(rows: int, columns: int) -> None:
    h, w = 4 * rows, 4 * columns
    a = np.arange(h * w, dtype=np.float32).reshape(h, w)
    environment = turn.compile(a, np.zeros((w, h), np.float32), grid=(h, w)).environment
    kernels = stages(wide(turn, {"a": (h, w), "c": (w, h)}, (h, w)), SQUARES)
    assert kernels["shared-memory tiles"].array("$tile.a").shape == (32, 32)  # rows without a gap
    for stage in ("shared-memory tiles", "wide accesses"):
        changed = {"a": a.copy(), "c": np.full((w, h), np.nan, np.float32)}
        run_stage(kernels[stage], changed, environment)
        np.testing.assert_array_equal(changed["c"], a.T)


def test_a_swizzle_spreads_columns_over_the_banks() -> None:
    """Stores of a warp to places of shared memory: as the kernel computes them."""
    reference = wide(turn, {"a": (64, 64), "c": (64, 64)}, (64, 64))
    kernel = stages(reference, SQUARES)["wide accesses"]
    stores = [s for s in statements(kernel.body) if isinstance(s, ir.StoreElement) and s.array == "$tile.a"]
    assert stores
    lanes = np.arange(32)
    columns, rows = lanes % 8 * 4, lanes // 8
    plain, swizzled = columns * 36 + rows, columns * 32 + (rows ^ columns // 4 % 8 * 4)
    assert (wavefronts(plain.tolist(), 1), wavefronts(swizzled.tolist(), 1)) == (4, 1)
    reads = [s for s in statements(kernel.body) if isinstance(s, ir.LoadElement) and s.array == "$tile.a"]
    assert {len(s.names) for s in reads} == {4}  # still one load of four


def test_products_keep_their_tiles() -> None:
    @lw.threadwise
    def product(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
        s = 0.0
        for k in range(a.shape[1]):
            s += a[y, k] * b[k, x]
        c[y, x] = s

    reference = wide(product, dict.fromkeys("abc", (64, 64)), (64, 64))
    kernel = stages(reference, Plan(block=64, across=8, rows=4, targets=4, tile=32))["wide accesses"]
    every = [e for s in statements(kernel.body) if isinstance(s, ir.LoadElement) for e in s.indices]
    assert not any("^" in str(e) for e in every)
    assert not any(a.once for a in kernel.arrays)


# ------------------------------------------------------------ wide accesses, wherever they begin


@pytest.mark.parametrize("right", range(6))
def test_a_window_that_begins_anywhere_is_read_as_widely_as_it_can(right: int) -> None:
    """Only elements at a multiple of their number can be read at once."""

    @lw.threadwise
    def windows(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], w: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
        s = 0.0
        for k in range(4):
            s += a[y + 1, x + (right + k)] * w[k]
        c[y, x] = s

    a, weights = np.arange(800, dtype=np.float32).reshape(20, 40), np.array([1, 2, 4, 8], np.float32)
    shapes = {"a": (20, 40), "w": (4,), "c": (16, 32)}
    environment = windows.compile(a, weights, np.zeros((16, 32), np.float32), grid=(16, 32)).environment
    kernels = stages(wide(windows, shapes, (16, 32)), SQUARES)
    tiles = kernels["shared-memory tiles"]
    loads = [s for s in statements(tiles.body) if isinstance(s, ir.LoadElement) and s.array == "a"]
    assert {len(s.names) for s in loads} == {next(n for n in (4, 2, 1) if right % n == 0)}
    for stage in ("shared-memory tiles", "wide accesses"):
        changed = {"a": a.copy(), "w": weights.copy(), "c": np.full((16, 32), np.nan, np.float32)}
        run_stage(kernels[stage], changed, environment)
        wanted = sum(a[1:17, right + k : right + k + 32] * weights[k] for k in range(4))
        np.testing.assert_array_equal(changed["c"], wanted)


@pytest.mark.parametrize("slices", [4, 8])
@pytest.mark.parametrize("right", range(6))
def test_rows_that_are_summed_from_anywhere(right: int, slices: int) -> None:
    @lw.threadwise
    def sums(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array1[lw.f32]):
        s = 0.0
        for k in range(a.shape[1] - 8):
            s += a[y, k + right]
        c[y] = s

    a = np.arange(216, dtype=np.float32).reshape(3, 72)
    environment = sums.compile(a, np.zeros(3, np.float32), grid=3).environment
    *_, kernel = stages(wide(sums, {"a": (3, 72), "c": (3,)}, (3,)), Plan(slices=slices, block=32)).values()
    changed = {"a": a.copy(), "c": np.full(3, np.nan, np.float32)}
    run_stage(kernel, changed, environment)
    np.testing.assert_array_equal(changed["c"], a[:, right : right + 64].sum(1))


# ------------------------------------------------------------ elements that are touched once


@pytest.mark.parametrize(
    ("kernel", "shapes", "grid", "once"),
    [
        (turn, {"a": (64, 64), "c": (64, 64)}, (64, 64), {"a", "c"}),
        (symmetric, {"a": (64, 64), "c": (64, 64)}, (64, 64), set[str]()),
        (add_turned, {"a": (64, 64), "c": (64, 64)}, (64, 64), {"a"}),
        (repeated, {"a": (64, 64), "c": (4, 64, 64)}, (4, 64, 64), set[str]()),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_what_is_touched_once(kernel: Any, shapes: Any, grid: tuple[int, ...], once: set[str]) -> None:
    plan = SQUARES if len(grid) == 2 else Plan(block=64, across=8, down=8, rows=4, targets=4, tile=1)
    staged = stages(wide(kernel, shapes, grid), plan)["shared-memory tiles"]
    assert {a.name for a in staged.arrays if a.once} == once


def test_caches_are_told() -> None:
    executable = compile_kernel(
        wide(turn, {"a": (64, 64), "c": (64, 64)}, (64, 64)), SQUARES.filled(NEUTRAL), "cuda", arch="sm_90"
    )
    assert "__ldcs(&a_array[" in executable.source
    assert "__stcs(&c_array[" in executable.source
    assert all(not c.resources.spill_stores for c in executable.cubins)


def test_numbers_of_eight_bytes_are_streamed_too() -> None:
    reference = wide(turn_wide, {"a": (64, 64), "c": (64, 64)}, (64, 64), np.float64)
    reference = replace(reference, arrays=tuple(replace(a, multiple=2) for a in reference.arrays))
    plan = Plan(block=64, neighbours="first", across=8, rows=2, targets=2, tile=1)
    program = build_program(reference, plan.filled(NEUTRAL), "cuda")
    check_cubin(program.kernels[0])


# ------------------------------------------------------------ layers


@lw.threadwise
def padded(z: lw.index, y: lw.index, x: lw.index, a: lw.Array3[lw.f32], c: lw.Array3[lw.f32]):
    c[z, y, x] = a[z, y, x] + a[z + 2, y, x]


def test_under_tests_a_layer_is_written_before_the_next_one_is_read() -> None:
    """What has no tests has registers to read all layers first."""
    reference = wide(inner, {"a": (16, 16, 64), "c": (16, 16, 64)}, (16, 16, 64))
    split = stages(reference, LAYERS)["thread merging"].body[-1]
    assert isinstance(split, ir.If)
    early = split.otherwise[0]
    assert isinstance(early, ir.If)
    assert [_last_load(b) < _first_store(b) for b in (split.then, early.then, early.otherwise)] == [False] * 3
    plain = wide(padded, {"a": (18, 16, 64), "c": (16, 16, 64)}, (16, 16, 64))
    split = stages(plain, LAYERS)["thread merging"].body[-1]
    assert isinstance(split, ir.If)
    assert [_last_load(b) < _first_store(b) for b in (split.then, split.otherwise)] == [True] * 2


def _last_load(block: ir.Block) -> int:
    return max(n for n, s in enumerate(block) if any(isinstance(x, ir.LoadElement) for x in statements((s,))))


def _first_store(block: ir.Block) -> int:
    return next(n for n, s in enumerate(block) if any(isinstance(x, ir.StoreElement) for x in statements((s,))))


def test_layers_share_what_they_read() -> None:
    """Four layers of two rows read six planes of rows in the middle, whether tests stand before the stores or not."""
    reference = wide(inner, {"a": (16, 16, 64), "c": (16, 16, 64)}, (16, 16, 64))
    kernel = stages(reference, LAYERS)["wide accesses"]
    split = kernel.body[-1]
    assert isinstance(split, ir.If)
    early = split.otherwise[0]
    assert isinstance(early, ir.If)
    counts = [
        sum(isinstance(s, ir.LoadElement) and len(s.names) == 4 for s in statements(b))
        for b in (split.then, early.then)
    ]
    assert counts == [6 * 2 + 4 * 2] * 2


@settings(max_examples=5, deadline=None)
@drawn(st.integers(1, 7), st.integers(1, 7), st.integers(1, 36))
def test_layers_of_any_shape(d: int, h: int, w: int) -> None:
    a = np.random.default_rng(d * h * w).random((d, h, w)).astype(np.float32)
    compiled = inner.compile(a, np.zeros_like(a), grid=a.shape)
    expected = np.full_like(a, np.nan)
    i = slice(1, -1)
    expected[i, i, i] = (
        a[:-2, i, i] + a[2:, i, i] + a[i, :-2, i] + a[i, 2:, i] + a[i, i, :-2] + a[i, i, 2:] - 6 * a[i, i, i]
    )
    kernels = stages(compiled.reference, LAYERS)
    changed = {"a": a.copy(), "c": np.full_like(a, np.nan)}
    run_stage(kernels["wide accesses"], changed, compiled.environment)
    np.testing.assert_allclose(changed["c"], expected, rtol=1e-5, atol=1e-5)


# ------------------------------------------------------------ programs that are compared


def test_programs_that_are_not_verified_between_passes_are_the_same() -> None:
    reference = wide(turn, {"a": (64, 64), "c": (64, 64)}, (64, 64))
    plan = SQUARES.filled(NEUTRAL)
    assert (
        build_program(reference, plan, "cuda", between=False).kernels == build_program(reference, plan, "cuda").kernels
    )


def test_a_kernel_is_analysed_once_for_all_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers that the compiler reports change the time, and not what a kernel does."""
    shapes = {"a": (64, 64), "c": (64, 64)}
    a = np.zeros((64, 64), np.float32)
    compiled = turn.compile(a, a.copy(), grid=a.shape)
    analysed: list[ir.Kernel] = []

    def count(kernel: ir.Kernel, *arguments: Any, **named: Any) -> Any:
        analysed.append(kernel)
        return analyse(kernel, *arguments, **named)

    monkeypatch.setattr(predict, "analyse", count)
    program = build_program(wide(turn, shapes, (64, 64)), SQUARES.filled(NEUTRAL), "cuda")
    model, analyses = table_model("sm_90"), predict.Analyses()
    times = [
        predict.predict(program, compiled.environment, model, resources, analyses=analyses).seconds
        for resources in (None, Resources(255, 16384, 0, 0, 0), None)
    ]
    assert len(analysed) == 1
    assert times[0] == times[2]


# ------------------------------------------------------------ places that follow from a round


@pytest.mark.slow
def test_what_a_round_decides_is_read_in_the_round() -> None:
    """A place that hangs on a variable of the loop's body by more than a sum is no place of a tile."""

    @lw.threadwise
    def wrapped(i: lw.index, t: lw.Array1[lw.i32], u: lw.Array1[lw.i32], c: lw.Array1[lw.i32], n: lw.i32):
        s = 0
        for k in range(512):
            y = k // 2
            s += t[n - 1 - y % n] * u[k]
        c[i] = s

    given = {"t": np.arange(7, dtype=np.int32), "u": np.arange(512, dtype=np.int32), "c": np.zeros(256, np.int32)}
    compiled = wrapped.compile(**given, n=np.int32(7), grid=256)
    found = stages(compiled.reference, Plan(block=128, tile=128))
    for kernel in found.values():
        verify_kernel(kernel)
    run_stage(list(found.values())[-1], given, compiled.environment)
    np.testing.assert_array_equal(given["c"], (np.arange(7)[6 - np.arange(512) // 2 % 7] * np.arange(512)).sum())
    assert not any(a.name.startswith("$tile.t") for a in found["shared-memory tiles"].arrays)

"""Blocks at edges: one body with those in the inside, loads before the user's tests, and who brings which element of a tile."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import evaluate
from lanewise.ir.names import own
from lanewise.ir.printer import print_kernel
from lanewise.ir.traverse import blocks, statements
from lanewise.language.types import I32
from lanewise.launch.support import compile_kernel
from lanewise.passes.base import source_loops
from lanewise.passes.points import merging, staging, unrolling
from lanewise.passes.points.shape import THREAD, shape_of
from lanewise.patterns.threadwise.kernel import Threadwise
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.support.errors import VerificationError
from tests.patterns.test_threadwise import arguments, copies
from tests.patterns.threadwise import interpret, run_stage, stages
from tests.patterns.threadwise_kernels import BY_NAME

Array = np.ndarray[Any, Any]
TILED = Plan(block=32, across=4, targets=4, tile=4)


def reference_of(name: str, sizes: tuple[int, ...]) -> ir.Kernel:
    given, grid = arguments(BY_NAME[name], sizes)
    return BY_NAME[name].kernel.compile(**given, grid=grid).reference


# ------------------------------------------------------------ one body


def test_the_inside_and_the_edges_share_their_rounds(golden: Any) -> None:
    found = stages(reference_of("convolve", (11, 23, 3, 5)), TILED)
    apart, joined = (source_loops(found[n]) for n in ("shared-memory tiles", "inside and edges together"))
    assert len(joined) * 2 == len(apart)
    golden("inside_and_edges", print_kernel(found["inside and edges together"]))


def test_what_is_loaded_ahead_keeps_two_bodies_and_writes_out_little_at_the_edges() -> None:
    plan = Plan(block=32, across=8, rows=2, targets=2, tile=8, prefetch="registers", unroll=0)
    found = stages(reference_of("matmul", (13, 7, 21)), plan)
    assert "inside and edges together" not in found
    split = found["unrolling"].body[-1]
    assert isinstance(split, ir.If)
    steps = [[s.step for s in statements(b) if isinstance(s, ir.For) and s.role == "sources"] for b in blocks(split)]
    kind = found["unrolling"].counts[0].type
    assert ir.Literal(unrolling.FEW, kind) in steps[1]
    assert all(step == ir.Literal(1, kind) for step in steps[0])  # only what is no whole tile has rounds left


@lw.threadwise
def clipped(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k] * b[k, x] if c[y, x] > 0.0 else -b[k, x]
    c[y, x] = s


def test_rounds_that_differ_are_not_joined() -> None:
    """What is written is read with a test at the edges, in each round."""
    a, b, c = np.ones((9, 6), np.float32), np.ones((6, 21), np.float32), np.ones((9, 21), np.float32)
    c[::2] = -1
    reference = clipped.compile(a, b, c, grid=c.shape).reference
    found = stages(reference, Plan(block=32, across=8, targets=2, tile=4))
    assert "inside and edges together" not in found
    changed = {"a": a, "b": b, "c": c.copy()}
    interpret(found["wide accesses"], changed, c.shape)
    np.testing.assert_array_equal(changed["c"], np.where(c > 0, 6, -6))


# ------------------------------------------------------------ loads before tests

EDGES = Plan(block=32, across=8, rows=2, targets=2)


@settings(deadline=None)
@drawn(st.integers(1, 6), st.integers(1, 18), st.integers(1, 35))
def test_neighbours_are_loaded_before_the_tests_of_edges(d: int, h: int, w: int) -> None:
    case = BY_NAME["laplace"]
    given, grid = arguments(case, (d, h, w))
    compiled = case.kernel.compile(**given, grid=grid)
    found = stages(compiled.reference, replace(EDGES, layers=2))
    assert any(isinstance(s, ir.LoadElement) and s.early for s in statements(found["thread merging"].body))
    for stage in ("thread merging", "wide accesses"):
        changed = copies(given)
        run_stage(found[stage], changed, compiled.environment)
        np.testing.assert_allclose(changed["c"], case.expect(**copies(given))["c"], rtol=1e-5, atol=1e-4)


def test_the_passes_of_a_smoothed_picture(golden: Any) -> None:
    """Blocks in the inside, blocks that load early, and the others; with rows of multiples of four."""
    reference = reference_of("smooth", (8, 64))
    wide = replace(reference, arrays=tuple(replace(a, multiple=4) for a in reference.arrays))
    golden("loads_before_tests", print_kernel(stages(wide, EDGES)["wide accesses"]))
    executable = compile_kernel(wide, EDGES.filled(NEUTRAL), "cuda", arch="sm_90")
    assert all(c.resources.registers for c in executable.cubins)


def early_loads(kernel: Threadwise, **given: Any) -> list[ir.LoadElement]:
    """Those of a kernel whose blocks have 8 x 8 threads of 2 x 2 points; the kernel is checked with the reference."""
    grid = given["c"].shape
    reference = kernel.compile(**given, grid=grid).reference
    shape = shape_of(EDGES.filled(NEUTRAL), 2)
    merged = merging.apply(reference, shape, early=True)
    results: list[Array] = []
    for k in (reference, merged):
        changed = copies(given)
        interpret(k, changed, grid)
        results.append(changed["c"])
    np.testing.assert_array_equal(results[0], results[1])
    return [s for s in statements(merged.body) if isinstance(s, ir.LoadElement) and s.early]


@lw.threadwise
def inner(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    if 0 < x < a.shape[1] - 1:
        c[y, x] = a[y, x - 1] + a[y, x + 1]


@lw.threadwise
def reads_what_it_writes(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    if 0 < x < a.shape[1] - 1:
        c[y, x] += a[y, x - 1]


@lw.threadwise
def lasting(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    left = 0.0
    if 0 < x < a.shape[1]:
        left = a[y, x - 1]
    c[y, x] = left


@lw.threadwise
def gathered(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    if 0 < x < a.shape[1] - 1:
        c[y, x] = a[y, lw.i32(a[y, x - 1])]


@lw.function
def halved(v: lw.f32) -> lw.i32:
    n = 0
    while v > 1.0:
        v = v / 2
        n += 1
    return n


@lw.threadwise
def counted(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    if 0 < x < a.shape[1] - 1:
        c[y, x] = halved(a[y, x - 1])


@lw.threadwise
def steep(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    if x < 3:
        c[y, x] = a[y, x * 9]


@pytest.mark.parametrize("kernel", [reads_what_it_writes, lasting, gathered, counted, steep], ids=lambda k: k.__name__)
def test_what_must_not_be_loaded_early(kernel: Threadwise) -> None:
    """Values that change or last, places that are no sums, and functions that may not end."""
    a = np.random.default_rng(1).uniform(1, 30, (19, 37)).astype(np.float32)
    assert early_loads(inner, a=a, c=np.zeros_like(a))
    assert not early_loads(kernel, a=a, c=np.ones_like(a))


def test_a_place_outside_of_the_array_is_not_loaded_early() -> None:
    """The grid is larger than the array: blocks beyond it test first, and the interpreter would say so."""
    a = np.arange(20 * 24, dtype=np.float32).reshape(20, 24)
    assert early_loads(inner, a=a[:, :24].copy(), c=np.zeros((20, 24), np.float32))

    @lw.threadwise
    def within(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
        if y < a.shape[0] and 0 < x < a.shape[1]:
            c[y, x] = a[y, x - 1]

    assert early_loads(within, a=a, c=np.zeros((64, 64), np.float32))


def test_the_interpreter_knows_early_places() -> None:
    load = ir.LoadElement("a", (ir.Literal(0, I32), ir.Literal(-1, I32)), "u", early=True)
    given, grid = arguments(BY_NAME["smooth"], (4, 4))
    arrays = {n: v for n, v in given.items() if isinstance(v, np.ndarray)}
    kernel = replace(reference_of("smooth", (4, 4)), body=(load,))
    with pytest.raises(VerificationError, match=r"a is read early at \[0, -1\], outside of the array"):
        interpret(kernel, arrays, grid)


# ------------------------------------------------------------ who brings what


@pytest.mark.parametrize("guarded", [False, True])
@settings(deadline=None)
@drawn(
    st.sampled_from([(32, 4, 1, 1), (32, 8, 2, 2), (96, 4, 1, 4), (128, 4, 1, 8), (64, 16, 3, 1)]), st.integers(3, 12)
)
def test_every_element_of_a_tile_is_brought_once(guarded: bool, block: tuple[int, int, int, int], tile: int) -> None:
    threads, across, rows, targets = block
    plan = Plan(block=threads, across=across, rows=rows, targets=targets, adjacent=targets).filled(NEUTRAL)
    shape = shape_of(plan, 2)
    merged = merging.apply(reference_of("convolve", (40, 40, 13, 13)), shape)
    brought: Counter[tuple[int, ...]] = Counter()
    staged = staging.apply(merged, shape, ("y", "x"), tile)
    split = staged.body[-1]
    assert isinstance(split, ir.If)
    box = staged.array(own("tile.a"))
    values: dict[str, Any] = {p.name: np.int32(200) for p in staged.counts}
    values |= {own(n): np.int32(0) for n in ("y.first", "x.first", "j.start", "i.start")}
    body = split.otherwise if guarded else split.then
    (tiles,) = [s for s in statements(body) if isinstance(s, ir.If) and has_stores(s.then, box.name)][:1]
    for thread in range(threads):
        values[THREAD] = np.int32(thread)
        count(tiles.otherwise if guarded else tiles.then, box.name, values, brought)
    lengths = (shape.side(0) + tile - 1, shape.side(1) + tile - 1)
    assert brought == Counter(dict.fromkeys(np.ndindex(*lengths), 1))


def has_stores(body: ir.Block, array: str) -> bool:
    return any(isinstance(s, ir.StoreElement) and s.array == array for s in statements(body))


def count(body: ir.Block, array: str, values: dict[str, Any], brought: Counter[tuple[int, ...]]) -> None:
    """Where one thread stores."""
    for s in body:
        match s:
            case ir.If():
                count(s.then if evaluate(s.condition, values) else s.otherwise, array, values, brought)
            case ir.For():
                for n in range(int(evaluate(s.start, values)), int(evaluate(s.stop, values))):
                    count(s.body, array, {**values, s.variable: np.int32(n)}, brought)
            case ir.StoreElement() if s.array == array:
                brought[tuple(int(evaluate(i, values)) for i in s.indices)] += 1
            case _:
                pass


# ------------------------------------------------------------ tiles that differ


@lw.threadwise
def turned(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32], n: lw.i32):
    s = a[(x + y) % n, n - 1 - y]
    if y != y:
        c[y, x] = a[x, y]
        return
    for _ in range(n):
        s += a[n - 1 - y, y]
    c[y, x] += s


@pytest.mark.parametrize("tile", [4, 8])
def test_the_inside_and_the_edges_may_have_tiles_of_other_shapes(tile: int) -> None:
    """What the edges read apart in memory need not be what the inside does: they have memory of their own then."""
    n = 37
    a = np.random.default_rng(5).integers(-8, 9, (n, n)).astype("f4")
    wanted, found = np.ones((n, n), "f4"), np.ones((n, n), "f4")
    turned(a, wanted, n, grid=(n, n))
    compiled = turned.compile(a, found, n, grid=(n, n))
    kernel = stages(compiled.reference, Plan(block=32, across=4, targets=2, tile=tile))["shared-memory tiles"]
    assert len({x.shape for x in kernel.arrays if x.space == "shared"}) > 1
    interpret(kernel, {"a": a, "c": found}, (n, n), n=np.int32(n))
    assert np.array_equal(found, wanted)

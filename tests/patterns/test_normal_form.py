"""Short loops and the same text without them are one program: one normal form, one plan, the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.analysis.affine import nest_of
from lanewise.compiler.pipeline import build_program, simplified
from lanewise.compiler.work import describe_work
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements
from lanewise.language.target import CPU, CUDA
from lanewise.passes import constant_loops, normal_form, promotion
from lanewise.planning.plan import NEUTRAL, Plan
from tests.patterns.reductions import reference, run

F32 = np.float32
Image = lw.Array3[lw.f32]


@lw.threadwise
def windows(o: lw.index, y: lw.index, x: lw.index, a: Image, w: Image, c: Image):
    """A loop over channels stays; the window in it goes."""
    s = 0.0
    for k in range(a.shape[0]):
        for v in range(3):
            for u in range(3):
                s += a[k, y + v, x + u] * w[o, k, 3 * v + u]
    c[o, y, x] = s


@lw.threadwise
def windows_written(o: lw.index, y: lw.index, x: lw.index, a: Image, w: Image, c: Image):
    s = 0.0
    for k in range(a.shape[0]):
        s += a[k, y, x] * w[o, k, 0]
        s += a[k, y, x + 1] * w[o, k, 1]
        s += a[k, y, x + 2] * w[o, k, 2]
        s += a[k, y + 1, x] * w[o, k, 3]
        s += a[k, y + 1, x + 1] * w[o, k, 4]
        s += a[k, y + 1, x + 2] * w[o, k, 5]
        s += a[k, y + 2, x] * w[o, k, 6]
        s += a[k, y + 2, x + 1] * w[o, k, 7]
        s += a[k, y + 2, x + 2] * w[o, k, 8]
    c[o, y, x] = s


@lw.threadwise
def edges(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    """Tests of edges within the loops."""
    s = 0.0
    for v in range(-1, 2):
        for u in range(1, -2, -1):
            if 0 <= y + v < a.shape[0] and 0 <= x + u < a.shape[1]:
                s += a[y + v, x + u]
    c[y, x] = s


@lw.threadwise
def median(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    """A local array, sorted by exchanges whose places the loops say."""
    t = lw.zeros(lw.f32, 9)
    for v in range(3):
        for u in range(3):
            t[3 * v + u] = a[y + v, x + u]
    for i in range(5):
        for k in range(8 - i):
            if t[k] > t[k + 1]:
                e = t[k]
                t[k] = t[k + 1]
                t[k + 1] = e
    c[y, x] = t[4]


@lw.threadwise
def left_behind(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    """What loops leave: the variable of one, a value of the last round, a value that goes on."""
    last = 0
    d = 1.0
    e = 0.0
    for v in range(0, 4, 2):
        e = a[y, x + v] * d
        if e > 0.5:
            d = e
        last = v
    c[y, x] = e + d + last


@lw.threadwise
def leaves(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    """A loop that may end early stays a loop; one without rounds goes."""
    s = 0.0
    for v in range(3):
        if a[y, x + v] < 0.2:
            break
        s += a[y, x + v]
    for _v in range(3, 3):
        s += 1.0
    c[y, x] = s


@lw.threadwise
def around(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    """A constant loop around one that is not stays: its rounds would be loops apart."""
    s = 0.0
    for v in range(3):
        for k in range(a.shape[1]):
            s += a[y + v, k] * (v + 1)
    c[y, x] = s


@lw.threadwise
def bilateral(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    m = a[y + 1, x + 1]
    s = 0.0
    n = 0.0
    for v in range(3):
        for u in range(3):
            q = a[y + v, x + u]
            w = lw.exp(-(q - m) * (q - m))
            s += w * q
            n += w
    c[y, x] = s / n


@lw.threadwise
def scores(h: lw.index, i: lw.index, q: Image, k: Image, c: Image):
    """A loop over keys that writes: as good as an index."""
    for j in range(k.shape[1]):
        s = 0.0
        for d in range(q.shape[2]):
            s += q[h, i, d] * k[h, j, d]
        c[h, i, j] = s


@lw.threadwise
def from_the_second(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32], n: lw.i32):
    """Bounds that are no length, and may be none at all."""
    first = a[y, 0]
    m = n - 1
    for k in range(1, m):
        c[y, k] = a[y, k] - first


@lw.threadwise
def columns_of(x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    """Neighbouring threads write neighbours already: the new index is the slower one."""
    for k in range(a.shape[0]):
        c[k, x] = 2.0 * a[k, x]


@lw.threadwise
def channels_inside(y: lw.index, x: lw.index, a: Image, w: Image, c: Image):
    for o in range(w.shape[0]):
        s = 0.0
        for k in range(a.shape[0]):
            for v in range(3):
                for u in range(3):
                    s += a[k, y + v, x + u] * w[o, k, 3 * v + u]
        c[o, y, x] = s


Given = tuple[list[np.ndarray[Any, Any]], tuple[int, ...]]


def sixteenths(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Numbers whose sums of products are exact: plans may add up in another order."""
    return (rng.integers(0, 17, shape) / 16).astype(F32)


def planes(h: int, w: int) -> Given:
    rng = np.random.default_rng(7)
    return [sixteenths(rng, (h + 2, w + 3)), np.zeros((h, w), F32)], (h, w)


def whole(h: int, w: int) -> Given:
    rng = np.random.default_rng(8)
    return [sixteenths(rng, (h, w)), np.zeros((h, w), F32)], (h, w)


def channels(h: int, w: int) -> Given:
    rng = np.random.default_rng(9)
    arrays = [sixteenths(rng, (4, h + 2, w + 2)), sixteenths(rng, (3, 4, 9)), np.zeros((3, h, w), F32)]
    return arrays, (3, h, w)


def attention(h: int, w: int) -> Given:
    rng = np.random.default_rng(10)
    arrays = [sixteenths(rng, (3, h, 6)), sixteenths(rng, (3, w, 6)), np.zeros((3, h, w), F32)]
    return arrays, (3, h)


def rows_of(h: int, w: int) -> Given:
    arrays, _ = whole(h, w)
    return arrays, (h,)


def columns_given(h: int, w: int) -> Given:
    arrays, _ = whole(h, w)
    return arrays, (w,)


def channels_given(h: int, w: int) -> Given:
    arrays, grid = channels(h, w)
    return arrays, grid[1:]


CASES: dict[str, tuple[Any, Callable[[int, int], Given]]] = {
    "windows": (windows, channels), "edges": (edges, whole), "median": (median, planes),
    "left behind": (left_behind, planes), "leaves": (leaves, planes), "around": (around, planes),
    "bilateral": (bilateral, planes), "scores": (scores, attention), "columns": (columns_of, columns_given),
    "channels inside": (channels_inside, channels_given),
}  # fmt: skip
PLANS = (
    Plan(block=64),
    Plan(block=64, across=8, rows=2, targets=2),
    Plan(block=64, across=8, rows=2, targets=2, tile=4),
    Plan(block=64, across=16, targets=4, tile=2, unroll=0),
)


def loops(kernel: ir.Kernel) -> int:
    return sum(isinstance(s, ir.For) for s in statements(kernel.body))


def normal(kernel: Any, given: Given) -> ir.Kernel:
    arrays, grid = given
    return normal_form.apply(simplified(reference(kernel, arrays, grid)), CUDA)


@pytest.mark.quick("edges-size1", "left behind-size0", "leaves-size1", "around-size0", "scores-size0", "columns-size1")
@pytest.mark.parametrize("size", [(5, 7), (16, 33)])
@pytest.mark.parametrize("name", CASES)
def test_every_plan_has_the_bits_of_the_text(name: str, size: tuple[int, int]) -> None:
    kernel, make = CASES[name]
    arrays, grid = make(*size)
    text = reference(kernel, arrays, grid)
    wanted = run([text], kernel, arrays, grid)
    work = describe_work(text, int(np.prod(grid)), CUDA)
    assert work.suggested is not None
    plans = [*PLANS, *(p for p in work.suggested.plans if work.suggested.is_legal(p))]
    tried = 0
    for plan in plans:
        try:
            program = build_program(text, plan.filled(NEUTRAL), "cuda")
        except lw.PlanError:
            continue
        tried += 1
        for found, expected in zip(run(program.kernels, kernel, arrays, grid), wanted, strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=f"{name} with {plan}")
    assert tried >= 1 + (name not in ("leaves",))


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("windows", 1),
        ("edges", 0),
        ("median", 0),
        ("left behind", 0),
        ("leaves", 1),
        ("around", 2),
        ("bilateral", 0),
        ("scores", 1),
        ("columns", 0),
        ("channels inside", 1),
    ],
)
def test_loops_that_the_text_counts_are_gone(name: str, left: int) -> None:
    kernel, make = CASES[name]
    found = normal(kernel, make(6, 8))
    assert loops(found) == left
    assert not any(isinstance(s, ir.DeclareArray) for s in statements(found.body))


def test_a_window_in_loops_is_the_window_without_them() -> None:
    arrays, grid = channels(6, 8)
    plans = [describe_work(reference(k, arrays, grid), 240, CUDA) for k in (windows, windows_written)]
    first, second = (p.suggested for p in plans)
    assert first is not None
    assert second is not None
    assert first.plans == second.plans
    one, other = (run([reference(k, arrays, grid)], k, arrays, grid)[-1] for k in (windows, windows_written))
    np.testing.assert_array_equal(one, other)


@lw.threadwise
def long_loop(x: lw.index, a: lw.Array2[lw.f32], c: lw.Array1[lw.f32]):
    s = 0.0
    for k in range(33):
        s += a[x, k]
    c[x] = s


@lw.threadwise
def deep_nest(x: lw.index, a: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
    s = 0.0
    for i in range(6):
        for j in range(6):
            for k in range(6):
                s += a[x + i + 2 * j + 3 * k]
    c[x] = s


@pytest.mark.parametrize(("kernel", "shape", "left"), [(long_loop, (4, 33), 1), (deep_nest, (64,), 1)])
def test_long_loops_stay(kernel: Any, shape: tuple[int, ...], left: int) -> None:
    arrays = [np.ones(shape, F32), np.zeros(4, F32)]
    assert loops(normal(kernel, (arrays, (4,)))) == left
    assert not constant_loops.legal(reference(deep_nest, [np.ones(64, F32), np.zeros(4, F32)], (4,)))


def test_a_cpu_keeps_what_was_written() -> None:
    arrays, grid = channels(6, 8)
    simple = simplified(reference(windows, arrays, grid))
    assert normal_form.apply(simple, CPU) is simple


# ---------------------------------------------------------------- loops that write become indices


def indices(kernel: ir.Kernel) -> tuple[str, ...]:
    return nest_of(kernel)[0]


def test_a_loop_that_writes_is_an_index() -> None:
    assert indices(normal(scores, attention(4, 5))) == ("h", "i", "j")
    assert indices(normal(columns_of, columns_given(4, 5))) == ("k", "x")
    assert indices(normal(channels_inside, channels_given(4, 5))) == ("o", "y", "x")


@pytest.mark.parametrize("n", [0, 1, 2, 3, 9])
def test_bounds_of_values(n: int) -> None:
    arrays, grid = rows_of(5, 9)
    text = reference(from_the_second, arrays, grid, n=np.int32(n))
    assert len(indices(normal_form.apply(simplified(text), CUDA))) == 2
    wanted = run([text], from_the_second, arrays, 5, n=np.int32(n))
    for plan in PLANS[:2]:
        program = build_program(text, plan.filled(NEUTRAL), "cuda")
        found = run(program.kernels, from_the_second, arrays, 5, n=np.int32(n))
        np.testing.assert_array_equal(found[-1], wanted[-1])


def test_a_call_counts_its_points() -> None:
    arrays, grid = attention(4, 5)
    calls = scores._calls
    given = calls.given(tuple(arrays), {"grid": grid})
    work = describe_work(calls.subject.reference(given), 12, CUDA)
    assert work.at(calls.subject.environment(given), 12).targets == 60


def test_plans_that_share_rounds_have_them() -> None:
    """A plan whose threads share a loop that writes keeps the loop."""
    arrays, grid = rows_of(6, 40)
    text = reference(from_the_second, arrays, grid, n=np.int32(40))
    wanted = run([text], from_the_second, arrays, 6, n=np.int32(40))
    program = build_program(text, Plan(block=64, slices=32).filled(NEUTRAL), "cuda")
    found = run(program.kernels, from_the_second, arrays, 6, n=np.int32(40))
    np.testing.assert_array_equal(found[-1], wanted[-1])


@lw.threadwise
def layer_norm(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k]
    for k in range(a.shape[1]):
        c[y, k] = a[y, k] - s


@lw.threadwise
def running(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    m = a[y, 0]
    for k in range(a.shape[1]):
        m = lw.max(m, a[y, k])
        c[y, k] = m


@lw.threadwise
def in_place(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    for k in range(1, a.shape[1]):
        c[y, k] = c[y, k - 1] + a[y, k]


@lw.threadwise
def one_place(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    for k in range(a.shape[1]):
        c[y, 0] = a[y, k]


@lw.threadwise
def by_data(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    for k in range(lw.i32(a[y, 0])):
        c[y, k] = a[y, k]


@lw.threadwise
def worth_keeping(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    e = lw.exp(a[y, 0])
    for k in range(a.shape[1]):
        c[y, k] = e * a[y, k]


@lw.threadwise
def goes_on(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32], b: lw.Array1[lw.f32]):
    for k in range(a.shape[1]):
        c[y, k] = a[y, k]
    b[y] = a[y, 0]


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (layer_norm, "prepared by more than some values"),
        (running, "m keeps a value from one round to the next"),
        (in_place, "it reads what it writes"),
        (one_place, "two rounds, or two threads, may write one element"),
        (by_data, "is not known before threads do"),
        (worth_keeping, "is worth keeping"),
        (goes_on, "not written by one loop"),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_what_stays_a_loop(kernel: Any, reason: str) -> None:
    arrays, grid = rows_of(4, 6)
    if kernel is goes_on:
        arrays = [*arrays, np.zeros(4, F32)]
    simple = simplified(reference(kernel, arrays, grid))
    assert reason in (promotion.legal(simple) or "")
    assert len(indices(normal_form.apply(simple, CUDA))) == 1

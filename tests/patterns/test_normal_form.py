"""Short loops and the same text without them are one program: one normal form, one plan, the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program, simplified
from lanewise.compiler.work import describe_work
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements
from lanewise.language.target import CPU, CUDA
from lanewise.passes import constant_loops, normal_form
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
    for v in range(3, 3):
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
    arrays = [sixteenths(rng, (4, h + 2, w + 2)), sixteenths(rng, (5, 4, 9)), np.zeros((5, h, w), F32)]
    return arrays, (5, h, w)


CASES: dict[str, tuple[Any, Callable[[int, int], Given]]] = {
    "windows": (windows, channels), "edges": (edges, whole), "median": (median, planes),
    "left behind": (left_behind, planes), "leaves": (leaves, planes), "around": (around, planes),
    "bilateral": (bilateral, planes),
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
    [("windows", 1), ("edges", 0), ("median", 0), ("left behind", 0), ("leaves", 1), ("around", 2), ("bilateral", 0)],
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
    assert first is not None and second is not None and first.plans == second.plans
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

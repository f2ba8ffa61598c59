"""Loops over independent data become several loops of one kernel: figure 1 of Carrillo, Siegel and Li (2009)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.emit.cuda import emit_cuda
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.printer import print_kernel
from lanewise.ir.traverse import statements
from lanewise.ir.verify import verify_kernel
from lanewise.passes import independent_loops
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime.nvrtc import compile_cubin
from lanewise.support.errors import PlanError
from tests.patterns.reductions import reference, run


@lw.threadwise
def figure1(
    i: lw.index, ptr1: lw.Array2[lw.f32], ptr2: lw.Array2[lw.f32], ptr3: lw.Array2[lw.f32], ptr4: lw.Array2[lw.f32], result: lw.Array2[lw.f32]
):  # fmt: skip
    x = 0.0
    y = 0.0
    for k in range(ptr1.shape[1]):
        x += ptr1[i, k] * ptr2[i, k]
        y += ptr3[i, k] / ptr4[i, k]
    result[i, 0] = x
    result[i, 1] = y


@lw.threadwise
def places(
    i: lw.index,
    ptr1: lw.Array2[lw.f32],
    ptr2: lw.Array2[lw.f32],
    ptr3: lw.Array2[lw.f32],
    ptr4: lw.Array2[lw.f32],
    result: lw.Array2[lw.f32],
):
    """A place that both need, a branch, a value that is carried, a loop that writes."""
    x = 0.0
    y = 1.0
    most = -1.0
    for k in range(ptr1.shape[1] - 1):
        after = k + 1
        if ptr1[i, after] > 1.5:
            x = x * 0.5 + ptr2[i, k]
        most = lw.max(most, ptr3[i, after])
        y = ptr4[i, k] / y
    result[i, 0] = x + most
    result[i, 1] = y


@lw.threadwise
def nested(
    i: lw.index,
    ptr1: lw.Array2[lw.f32],
    ptr2: lw.Array2[lw.f32],
    ptr3: lw.Array2[lw.f32],
    ptr4: lw.Array2[lw.f32],
    result: lw.Array2[lw.f32],
):
    x = 0.0
    y = 0.0
    for j in range(ptr1.shape[0]):
        for k in range(ptr1.shape[1]):
            x += ptr1[j, k] * ptr2[i, k]
            y += ptr3[j, k] - ptr4[i, k]
    result[i, 0] = x
    result[i, 1] = y


@lw.threadwise
def afterwards(
    i: lw.index,
    ptr1: lw.Array2[lw.f32],
    ptr2: lw.Array2[lw.f32],
    ptr3: lw.Array2[lw.f32],
    ptr4: lw.Array2[lw.f32],
    result: lw.Array2[lw.f32],
):
    """Places that are read behind the loop alone, one of them made of the other."""
    x = 0.0
    y = 0.0
    last = -1
    twice = -2
    for k in range(ptr1.shape[1]):
        last = k + i
        twice = last * 2
        x += ptr1[i, k] * ptr2[i, k]
        y += ptr3[i, k] / ptr4[i, k]
    result[i, 0] = x + lw.f32(twice)
    result[i, 1] = y


KERNELS = {k.__name__: k for k in (figure1, places, nested, afterwards)}
LOOPS = {"figure1": 2, "places": 3, "nested": 4, "afterwards": 2}


def inputs(rows: int, columns: int, seed: int = 0) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    four = tuple(rng.uniform(1, 2, (rows, columns)).astype(np.float32) for _ in range(4))
    return (*four, np.zeros((rows, 2), np.float32))


def loops(kernel: ir.Kernel) -> int:
    return sum(isinstance(s, ir.For) for s in statements(kernel.body))


def test_golden(golden):
    before = reference(figure1, inputs(3, 5), 3)
    golden("figure1", print_kernel(independent_loops.apply(before)))


def test_the_source_of_a_gpu(golden):
    golden("figure1.cu", emit_cuda(*_program(True, reference(figure1, inputs(3, 5), 3)), "test"))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (7, 40)])
def test_bits_stay(name, shape):
    kernel, given = KERNELS[name], inputs(*shape)
    before = reference(kernel, given, shape[0])
    after = independent_loops.apply(before)
    verify_kernel(after)
    assert loops(after) == LOOPS[name]
    for one, other in zip(run((after,), kernel, given, shape[0]), run((before,), kernel, given, shape[0]), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("seed", range(4))
def test_the_public_interface_against_float64(name, seed):
    """Figure 1 on this machine, divided and whole, beside the same in float64."""
    kernel, given = KERNELS[name], inputs(9, 33, seed)
    kernel.bind(*given, grid=9, plan=Plan(fission=True))()
    a, b, c, d = (x.astype(np.float64) for x in given[:4])
    if name == "figure1":
        wanted = np.stack([(a * b).sum(1), (c / d).sum(1)], axis=1)
    elif name == "nested":
        wanted = np.stack([(a[None] * b[:, None]).sum((1, 2)), (c[None] - d[:, None]).sum((1, 2))], axis=1)
    elif name == "afterwards":
        wanted = np.stack([(a * b).sum(1) + 2 * (32 + np.arange(9)), (c / d).sum(1)], axis=1)
    else:
        wanted = np.array([_places(a[i], b[i], c[i], d[i]) for i in range(9)])
    np.testing.assert_allclose(given[4], wanted, rtol=2e-5, atol=2e-4)


def _places(a, b, c, d) -> tuple[float, float]:
    x, y, most = 0.0, 1.0, -1.0
    for k in range(len(a) - 1):
        x = x * 0.5 + b[k] if a[k + 1] > 1.5 else x
        most = max(most, c[k + 1])
        y = d[k] / y
    return x + most, y


def test_elementwise_functions_have_such_loops():
    """Tables that a function reads, and one result: a loop for each pair of them."""

    @lw.elementwise
    def both(
        share: lw.f32, a: lw.Array1[lw.f32], b: lw.Array1[lw.f32], c: lw.Array1[lw.f32], d: lw.Array1[lw.f32]
    ) -> lw.f32:
        x = 0.0
        y = 0.0
        for k in range(a.shape[0]):
            x += a[k] * b[k]
            y += c[k] / d[k]
        return x + share * y

    rng = np.random.default_rng(1)
    share, *tables = (rng.uniform(1, 2, n).astype(np.float32) for n in (20, 50, 50, 50, 50))
    (kernel,) = both.compile(share, *tables, plan=Plan(fission=True)).executable.program.kernels
    (function,) = functions(kernel.body)
    assert sum(isinstance(s, ir.For) for s in statements(function.body)) == 2
    np.testing.assert_array_equal(both.bind(share, *tables, plan=Plan(fission=True))(), both(share, *tables))


def _program(fission: bool, before: ir.Kernel) -> tuple[ir.Kernel, ...]:
    plan = Plan(fission=fission, block=256).filled(NEUTRAL)
    return build_program(before, plan, "cuda").kernels


@lw.threadwise
def heavy(i: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    """Two groups of sums, each of which needs the registers of a loop for itself."""
    p0 = p1 = p2 = p3 = p4 = p5 = p6 = p7 = 0.0
    q0 = q1 = q2 = q3 = q4 = q5 = q6 = q7 = 0.0
    for k in range(a.shape[1]):
        x = a[i, k]
        p0 += x * 1.5
        p1 += x * x * 2.5
        p2 += lw.exp(x)
        p3 += lw.sqrt(x)
        p4 += 1.0 / (x + 3.0)
        p5 = lw.max(p5, x)
        p6 += lw.sin(x)
        p7 = p7 * 0.5 + x
        y = b[i, k]
        q0 += y * 1.5
        q1 += y * y * 2.5
        q2 += lw.exp(y)
        q3 += lw.sqrt(y)
        q4 += 1.0 / (y + 3.0)
        q5 = lw.max(q5, y)
        q6 += lw.sin(y)
        q7 = q7 * 0.5 + y
    r[i, 0] = p0 + p1 + p2 + p3 + p4 + p5 + p6 + p7
    r[i, 1] = q0 + q1 + q2 + q3 + q4 + q5 + q6 + q7


def test_two_heavy_loops_take_fewer_registers_than_one():
    """Priced by the compiler, for sm_90."""
    given = (*inputs(3, 5)[:2], np.zeros((3, 2), np.float32))
    before = reference(heavy, given, 3)
    taken = {k.name: _registers(k) for k in _program(True, before)}
    assert taken["heavy"] < _registers(*_program(False, before))


def _registers(kernel: ir.Kernel) -> int:
    return compile_cubin(emit_cuda(kernel, "test"), kernel.name, "sm_90").resources.registers


@lw.threadwise
def one(i: lw.index, a: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[i, k]
    r[i] = s


@lw.threadwise
def tied(i: lw.index, a: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    s = 0.0
    t = 0.0
    for k in range(a.shape[1]):
        s += a[i, k] + t
        t += s
    r[i] = s + t


@lw.threadwise
def shared(i: lw.index, a: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    s = 0.0
    t = 0.0
    for k in range(a.shape[1]):
        s += a[i, k]
        t += a[i, k] * 2.0
    r[i] = s + t


@lw.threadwise
def early(i: lw.index, a: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    s = 0.0
    n = 0
    for k in range(a.shape[1]):
        if a[i, k] < 0.0:
            break
        n += 1
        s += a[i, k]
    r[i] = s + lw.f32(n)


@lw.threadwise
def plain(i: lw.index, a: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    r[i] = a[i, 0]


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (one, "one statement of its loop gathers or writes"),
        (tied, "the parts of its loop depend on each other"),
        (shared, "the parts of its loop both read a, which would be loaded twice"),
        (early, "its loop may end before its last round"),
        (plain, "it has no loop"),
    ],
)
def test_refusals(kernel, reason):
    a, r = np.ones((3, 5), np.float32), np.zeros(3, np.float32)
    before = reference(kernel, (a, r), 3)
    assert independent_loops.legal(before) == reason
    with pytest.raises(PlanError) as error:
        kernel.bind(a, r, grid=3, plan=Plan(fission=True))
    assert str(error.value) == f"loop splitting cannot be applied to {kernel.__name__}: {reason}"


def test_arrays_that_are_written_in_a_loop_keep_it_whole():
    @lw.threadwise
    def written(i: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
        for k in range(a.shape[1]):
            r[i, k] = a[i, k]
            r[i, k] += b[i, k]

    arrays = tuple(np.ones((3, 5), np.float32) for _ in range(3))
    reason = independent_loops.legal(reference(written, arrays, 3))
    assert reason == "the parts of its loop touch one array that is written"

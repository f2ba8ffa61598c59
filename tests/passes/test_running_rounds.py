"""Threads of a point share rounds that read what was gathered so far: the values of one thread, in another order of sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.analysis.reductions import FOLDS
from lanewise.explanation.calls import compile_call
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_kernel
from lanewise.ir.traverse import statements
from lanewise.passes import loop_sharing
from lanewise.passes.shared_loops import Sharing
from lanewise.support.errors import PlanError
from tests.passes.ptx import check_cubin
from tests.patterns.reductions import reference, run
from tests.patterns.running import ANSWERS, answer, farthest, inputs, largest, least_by_test, sums

SHARINGS = (
    Sharing("row", 2, 16),
    Sharing("row", 32, 2, unroll=4),
    Sharing("row", 64, 1),
    Sharing("row", 64, 2),
)
named = pytest.mark.parametrize("kernel", ANSWERS, ids=lambda k: k.__name__)


def shared(kernel: Any, given: list[np.ndarray], sharing: Sharing, multiple: int = 1) -> ir.Kernel:
    text = reference(kernel, given, (len(given[0]),), multiple=multiple)
    return loop_sharing.apply(text, sharing, running=True)


def test_golden(golden):
    golden("sums", print_kernel(shared(sums, inputs(3, 36), Sharing("row", 64, 2), multiple=4)))


@named
@pytest.mark.parametrize("shape", [(3, 37), (1, 1), (5, 300), (2, 64)])
def test_values_are_those_of_one_thread(kernel, shape):
    given = inputs(*shape)
    for sharing in SHARINGS:
        found = run((shared(kernel, given, sharing),), kernel, given, (shape[0],))[1]
        np.testing.assert_allclose(found, answer(kernel, given), rtol=2e-5, atol=2e-5, err_msg=str(sharing))


@named
@pytest.mark.parametrize("columns", [4, 36, 128, 520])
def test_neighbouring_rounds_go_together_where_rows_are_wide(kernel, columns):
    given = inputs(3, columns)
    for sharing in (Sharing("row", 8, 4), Sharing("row", 64, 1, unroll=2)):
        text = shared(kernel, given, sharing, multiple=4)
        assert any(isinstance(s, ir.LoadElement) and s.more for s in statements(text.body))
        found = run((text,), kernel, given, (3,))[1]
        np.testing.assert_allclose(found, answer(kernel, given), rtol=2e-5, atol=2e-5, err_msg=str(sharing))


def test_extremes_have_the_bits_of_one_thread():
    given = inputs(3, 200)
    for kernel in (largest, least_by_test):
        found = run((shared(kernel, given, SHARINGS[1]),), kernel, given, (3,))[1]
        assert np.array_equal(found, answer(kernel, given).astype(np.float32))


@pytest.mark.parametrize("columns", [5, 300])
def test_running_values_gather_once_more(columns):
    """An extreme of running sums is what all threads found together; the sum itself is read after the loop."""
    a, r = inputs(5, columns)
    given = [a, r, np.zeros(5, np.float32)]
    s = np.cumsum(a.astype(np.float64) - 0.5, axis=1)
    for sharing in SHARINGS:
        found = run((shared(farthest, given, sharing),), farthest, given, (5,))
        np.testing.assert_allclose(found[1], s, rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(found[2], np.abs(s).max(axis=1) + s[:, -1], rtol=2e-5, atol=2e-5)


@lw.threadwise
def shares(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32], n: lw.i32):
    s = 0.0
    for k in range(n):
        s += a[y, k]
        r[y, k] = s
    for k in range(n):
        r[y, k] = r[y, k] / s


@lw.threadwise
def sums_of_doubles(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32], n: lw.i32):
    for k in range(n):
        r[y, k] = a[y, k] * 2.0
    s = 0.0
    for k in range(n):
        s += r[y, k]
        r[y, k] = s


@pytest.mark.parametrize("n", [19, 20, 36])
@pytest.mark.parametrize("kernel", [shares, sums_of_doubles], ids=lambda k: k.__name__)
def test_a_thread_has_the_same_rounds_of_all_loops(kernel, n):
    """What one loop wrote another reads, and no barrier stands between them."""
    given = inputs(3, 36)
    text = reference(kernel, given, (3,), multiple=4, n=np.int32(n))
    s = np.cumsum(given[0][:, :n].astype(np.float64), axis=1)
    wanted = s / s[:, -1:] if kernel is shares else 2 * s
    for sharing in (Sharing("row", 8, 4), *SHARINGS):
        found = run((loop_sharing.apply(text, sharing, running=True),), kernel, given, (3,), n=np.int32(n))[1]
        np.testing.assert_allclose(found[:, :n], wanted, rtol=2e-5, err_msg=str(sharing))


def test_no_rounds_write_nothing():
    given = inputs(3, 0)
    assert run((shared(sums, given, SHARINGS[1]),), sums, given, (3,))[1].shape == (3, 0)


@named
def test_it_compiles_without_spills(kernel):
    given = inputs(64, 512)
    for sharing in (Sharing("row", 32, 8, unroll=4), Sharing("row", 256, 1)):
        subject = shared(kernel, given, sharing, multiple=4)
        check_cubin(lowered(subject))


def lowered(kernel: ir.Kernel) -> ir.Kernel:
    from lanewise.passes import layout_lowering

    return layout_lowering.apply(kernel, vector_loads=True)


# ---------------------------------------------------------------- refusals


@lw.threadwise
def recurrence(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s = 0.5 * s + a[y, k]
        r[y, k] = s


@lw.threadwise
def sums_of_sums(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    t = 0.0
    for k in range(a.shape[1]):
        s += a[y, k]
        t += s
        r[y, k] = t


@lw.threadwise
def what_was_written(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(1, a.shape[1]):
        s += r[y, k - 1] + a[y, k]
        r[y, k] = s


@lw.threadwise
def to_its_point(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(lw.min(y, a.shape[1])):
        s += a[y, k]
        r[y, k] = s


@lw.threadwise
def until(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        if s > 9.0:
            break
        s += a[y, k]
        r[y, k] = s


@lw.threadwise
def column_sums(x: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[0]):
        s += a[k, x]
        r[k, x] = s


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (recurrence, f"s keeps a value from one round to the next, and is not gathered {FOLDS}"),
        (sums_of_sums, "what t gathers depends on what was gathered so far"),
        (to_its_point, "where k begins and ends is not the same for all points"),
        (until, "a round may end early, or declares an array"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_rounds_that_depend_on_each_other_otherwise_are_refused(kernel, reason):
    with pytest.raises(PlanError) as error:
        shared(kernel, inputs(5, 8), SHARINGS[0])
    assert str(error.value) == f"slicing cannot be applied to {kernel.__name__}: its rounds cannot be shared: {reason}"


def test_what_another_round_wrote_is_refused():
    with pytest.raises(PlanError, match=r"r is written in a loop and touched elsewhere|may touch one element of r"):
        shared(what_was_written, inputs(5, 8), SHARINGS[0])


def test_columns_have_a_thread_each():
    with pytest.raises(PlanError, match="reads running values along columns, of which each has a thread"):
        shared(column_sums, inputs(5, 8), SHARINGS[0])


def test_rows_are_not_kept():
    with pytest.raises(PlanError, match="it reads running values, and its rows are read once"):
        shared(sums, inputs(5, 8), Sharing("row", 32, 1, keep=128))


def test_a_cpu_has_no_such_lanes():
    given = inputs(8, 64)
    with pytest.raises(PlanError, match="s keeps a value from one round to the next"):
        sums(*given, grid=(8,), plan=lw.Plan(slices=16))


# ---------------------------------------------------------------- default plans


@pytest.mark.parametrize(
    ("shape", "slices"),
    [
        ((1 << 17, 128), 32),
        ((4096, 4096), 128),
        ((64, 1 << 16), 1024),
        ((1 << 20, 7), 1),
        ((1 << 17, 40), 8),
        ((1 << 20, 16), 4),
    ],
)
def test_default_plans_fill_the_gpu(shape, slices):
    a = np.empty(shape, np.float32)
    offline = compile_call(sums, a, np.empty(shape, np.float32), grid=(shape[0],), device="cuda", arch="sm_90")
    assert offline.executable.program.plan.slices == slices

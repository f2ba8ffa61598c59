from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import lanewise as lw
from lanewise.explanation.calls import compile_call
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_kernel
from lanewise.ir.traverse import statements
from lanewise.passes import loop_sharing, shared_loops
from lanewise.passes.shared_loops import Sharing
from lanewise.support.errors import PlanError
from tests.passes.ptx import check_cubin, ptx
from tests.patterns.reductions import columns, expected, inputs, reference, rows, run, several, softmax, total
from tests.written import module

SHAPES = [(1, 1), (5, 37), (2, 132), (0, 5), (13, 4)]


def test_golden(golden):
    arguments, grid = inputs(rows, 5, 37)
    kernel = reference(rows, arguments, grid)
    golden("rows", print_kernel(loop_sharing.apply(kernel, Sharing("row", 64, 2))))
    arguments, grid = inputs(columns, 5, 37)
    golden("columns", print_kernel(loop_sharing.apply(reference(columns, arguments, grid), Sharing("column", 4, 16))))


def test_golden_wide_rounds_and_kept_rows(golden):
    arguments, grid = inputs(softmax, 3, 64)
    kernel = reference(softmax, arguments, grid, multiple=4)
    golden("softmax", print_kernel(loop_sharing.apply(kernel, Sharing("row", 32, 1, unroll=2, keep=128))))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("kernel", [rows, columns, softmax, several, total], ids=lambda k: k.__name__)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("multiple", [1, 4])
def test_meaning_is_kept(kernel, shape, multiple):
    if kernel in (softmax, several) and shape[1] == 0:
        return
    arguments, grid = inputs(kernel, *shape)
    before = reference(kernel, arguments, grid, multiple=multiple)
    plans = [Sharing("row", 8, 4), Sharing("row", 64, 1, unroll=4), Sharing("column", 4, 8)]
    plans += [Sharing("row", 32, 1, keep=128), Sharing("row", 8, 4, keep=32)] if kernel is softmax else []
    for sharing in plans:
        found = run((loop_sharing.apply(before, sharing),), kernel, arguments, grid)
        for one, other in zip(found[-len(expected(kernel, arguments)) :], expected(kernel, arguments), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6, err_msg=str(sharing))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("size", [64, 1_000, 4_096])
@pytest.mark.parametrize("kernel", [rows, columns, softmax, several, total], ids=lambda k: k.__name__)
def test_every_size_has_a_default_plan_for_a_gpu(kernel, size):
    """Shapes of blocks that an index space has no room for are no plans of it."""
    arguments, grid = inputs(kernel, size, 64)
    offline = compile_call(kernel, *arguments, grid=grid, device="cuda", arch="sm_90")
    assert "__global__" in offline.executable.source


def test_stores_of_neighbouring_rounds_keep_their_numbers():
    arguments, grid = inputs(softmax, 3, 64)
    kernel = loop_sharing.apply(reference(softmax, arguments, grid, multiple=4), Sharing("row", 32, 1))
    wide = [s for s in statements(kernel.body) if isinstance(s, ir.StoreElement) and s.more]
    assert wide, "neighbouring rounds are stored together"
    found = run((kernel,), softmax, arguments, grid)
    np.testing.assert_allclose(found[-1], expected(softmax, arguments)[-1], rtol=2e-5, atol=2e-6)


ORDERS = list(permutations(["u = u * 3.0", "r[y, k] = u", "if u > 1.0:\n            r[y, k] = 9.0"]))
KINDS = ("u = t; s += t", "s += t; u = s")  # gathers alone, or reads what was gathered


@pytest.mark.parametrize("lines", [(kind, *order) for kind in KINDS for order in ORDERS], ids=str)
def test_stores_of_wide_rounds_write_what_they_did_where_they_stood(lines):
    """Behind a round other statements may have changed the value, or written the same element."""
    body = "\n        ".join(("t = a[y, k]", *lines))
    kernel = module(ORDERED.format(body=body)).ordered
    a = np.random.default_rng(1).random((3, 36), np.float32)
    arguments = (a, np.full_like(a, np.nan), np.zeros(3, np.float32))
    before = reference(kernel, arguments, (3,), multiple=4)
    wanted = run((before,), kernel, arguments, (3,))
    text = loop_sharing.apply(before, Sharing("row", 8, 4), running=True)
    assert any(isinstance(s, ir.LoadElement) and s.more for s in statements(text.body))
    for one, other in zip(run((text,), kernel, arguments, (3,)), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5)


ORDERED = """
import lanewise as lw

@lw.threadwise
def ordered(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32], q: lw.Array1[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        {body}
    q[y] = s
"""


def test_the_way_is_that_of_coalesced_loads():
    ways = {k: shared_loops.best_way(reference(k, *inputs(k, 5, 8))) for k in (rows, columns, softmax, several, total)}
    assert ways == {rows: "row", columns: "column", softmax: "row", several: "row", total: "row"}


def test_neighbouring_rounds_are_one_load_of_16_bytes():
    arguments, grid = inputs(rows, 5, 64)
    sharing = Sharing("row", 32, 4, unroll=4)
    plain, wide = (_lowered(reference(rows, arguments, grid, multiple=m), sharing) for m in (1, 4))
    assert "ld.global.nc.v4.f32" in ptx(wide)
    assert "ld.global.nc.v4.f32" not in ptx(plain)
    check_cubin(plain)
    check_cubin(wide)


def test_a_row_that_is_kept_is_loaded_once():
    arguments, grid = inputs(softmax, 3, 64)
    kernel = loop_sharing.apply(reference(softmax, arguments, grid), Sharing("row", 32, 1, keep=128))
    first = [s for s in statements(kernel.body) if isinstance(s, ir.For)][:1]
    loads = [s.array for s in statements(kernel.body) if isinstance(s, ir.LoadElement)]
    assert loads.count("$kept.0") == 2, "the second and the third loop take what the first one kept"
    assert [s.array for s in statements(first[0].body) if isinstance(s, ir.StoreElement)] == ["$kept.0"]
    check_cubin(_lowered(reference(softmax, arguments, grid, multiple=4), Sharing("row", 256, 1, unroll=4, keep=4096)))


def _lowered(kernel, sharing):
    from lanewise.passes import layout_lowering

    return layout_lowering.apply(loop_sharing.apply(kernel, sharing), vector_loads=True)


@lw.threadwise
def carried(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s = 0.5 * s + a[y, k]
    r[y] = s


@lw.threadwise
def last(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s = a[y, k]
    r[y] = s


@lw.threadwise
def early(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        if a[y, k] < 0.0:
            break
        s += a[y, k]
    r[y] = s


@lw.threadwise
def meeting(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    for k in range(a.shape[1]):
        r[y] = a[y, k]


@lw.threadwise
def behind(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k]
    r[y] = s
    r[y] = r[y] + 1.0


@lw.threadwise
def scaled(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    f = r[y]
    for k in range(a.shape[1]):
        c[y, k] = a[y, k] * f
    r[y] = 0.0


def test_what_all_slices_read_is_written_after_they_met():
    a = np.arange(15, dtype=np.float32).reshape(3, 5)
    given = (a, np.zeros_like(a), np.array([1, 2, 3], np.float32))
    kernel = loop_sharing.apply(reference(scaled, given, 3), Sharing("row", 32, 1))
    _, c, r = run((kernel,), scaled, given, 3)
    np.testing.assert_array_equal(c, a * given[2][:, None])
    assert not r.any()


@lw.threadwise
def plain(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    r[y] = a[y, 0]


GATHERED = "and is not gathered by x += e, x -= e, x *= e, x = lw.min(x, e), x = lw.max(x, e), if e > x: x = e, or by x = x or e or x = x and e, where e reads no element"


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (carried, f"its rounds cannot be shared: s keeps a value from one round to the next, {GATHERED}"),
        (last, f"its rounds cannot be shared: s is what the last round made it, {GATHERED}"),
        (early, "its rounds cannot be shared: a round may be the last one: it has a break"),
        (
            meeting,
            "its rounds cannot be shared: two rounds, or two threads, may touch one element of r, which it writes",
        ),
        (behind, "r is read after it was written: threads that share a point would have to wait for each other"),
        (plain, "it has no loop whose rounds several threads could share"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_reasons(kernel, reason):
    a = np.zeros((4, 5), np.float32)
    made = reference(kernel, (a, np.zeros(4, np.float32)), 4)
    assert loop_sharing.legal(made) == reason
    with pytest.raises(PlanError) as error:
        loop_sharing.apply(made, Sharing("row", 32, 1))
    assert str(error.value) == f"slicing cannot be applied to {kernel.__name__}: {reason}"


def test_rows_that_cannot_be_kept():
    arguments, grid = inputs(rows, 5, 64)
    made = reference(rows, arguments, grid)
    for sharing, reason in (
        (Sharing("row", 32, 1, keep=128), "no two of its loops over one range, from 0 on, read the same row"),
        (Sharing("row", 32, 1, keep=100), "100 elements are no multiple of 4 for each of 32 slices"),
        (Sharing("column", 4, 8, keep=128), "neighbouring threads are neighbouring points, and no thread reads a row"),
    ):
        with pytest.raises(PlanError) as error:
            loop_sharing.apply(made, sharing)
        assert str(error.value) == f"keeping of rows cannot be applied to rows: {reason}"

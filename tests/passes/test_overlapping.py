"""Points one behind the other, the last loop of each beside a loop of the next one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_kernel
from lanewise.ir.traverse import statements
from lanewise.passes.points import overlapping
from lanewise.patterns.threadwise.host import sliced
from lanewise.planning.plan import Plan
from lanewise.support.errors import PlanError
from tests.lines import part_of_memory
from tests.patterns.reductions import expected, inputs, reference, rows, run, softmax

LANES = 8


@lw.threadwise
def normal(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = 1.0
    for k in range(a.shape[1]):
        s += a[y, k] * a[y, k]
    for k in range(a.shape[1]):
        c[y, k] = a[y, k] / s


@lw.threadwise
def scaled(
    z: lw.index, y: lw.index, a: lw.Array3[lw.f32], g: lw.Array2[lw.f32], b: lw.Array1[lw.f32], c: lw.Array3[lw.f32]
):
    """Of two indices; what is written needs an element of a point's own, and one of a round's."""
    f = g[z, y]
    s = 0.0
    for k in range(a.shape[2]):
        s += a[z, y, k]
    for k in range(a.shape[2]):
        d = (a[z, y, k] - s) * f
        c[z, y, k] = d + b[k]


@lw.threadwise
def in_place(y: lw.index, c: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(c.shape[1]):
        s += c[y, k]
    for k in range(c.shape[1]):
        c[y, k] = c[y, k] / s


@lw.threadwise
def filled(y: lw.index, c: lw.Array2[lw.f32]):
    for k in range(c.shape[1]):
        c[y, k] = lw.f32(k)


@lw.threadwise
def half(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k]
    for k in range(1, a.shape[1]):
        c[y, k] = s


@lw.threadwise
def beside(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k]
    for k in range(a.shape[1]):
        c[y, k + 1] = s


@lw.threadwise
def twice(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    """What the last loop writes has to stay, so that the one before it is not the one that may come late."""
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k]
    for k in range(a.shape[1]):
        c[y, k] = s
    for k in range(a.shape[1]):
        c[y, k] = a[y, k]


@lw.threadwise
def going_on(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    """The last loop has statements behind its store, which give variables other values."""
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k]
    for k in range(a.shape[1]):
        t = a[y, k]
        c[y, k] = t - s
        t += 1.0


@lw.threadwise
def loading_on(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = 1.0
    for k in range(a.shape[1]):
        s += lw.exp(a[y, k])
    for k in range(a.shape[1]):
        t = lw.exp(a[y, k]) / s
        c[y, k] = t
        t = t * a[y, 0]


def hosted(kernel: Any, arguments: Any, grid: Any, values: int = 0, lanes: int = LANES) -> ir.Kernel:
    return sliced(reference(kernel, arguments, grid), lanes, values)


def test_golden(golden: Callable[[str, str], None]) -> None:
    golden("softmax", print_kernel(overlapping.apply(hosted(softmax, *inputs(softmax, 5, 37), values=16), 2)))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("shape", [(1, 1), (5, 37), (0, 5), (13, 4), (4, 64), (3, 8)])
@pytest.mark.parametrize("values", [0, 16, 64])
def test_meaning_is_kept(shape: tuple[int, int], values: int) -> None:
    """Of rows shorter and longer than what is kept of them, and of the last block's points that there are not."""
    arguments, grid = inputs(softmax, *shape)
    before = hosted(softmax, arguments, grid, values)
    for points in (1, 2, 4):
        found = run((overlapping.apply(before, points),), softmax, arguments, grid)
        np.testing.assert_allclose(found[-1], expected(softmax, arguments)[-1], rtol=2e-5, atol=2e-6)


def test_meaning_of_long_rows() -> None:
    """Rows of which each begins elsewhere in a line of memory, and is written in lines."""
    arguments, grid = inputs(softmax, 3, 2061)
    found = run((overlapping.apply(hosted(softmax, arguments, grid, 512, 64), 2),), softmax, arguments, grid)
    np.testing.assert_allclose(found[-1], expected(softmax, arguments)[-1], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("length", [37, 3000])
def test_what_is_written_last_stays(length: int) -> None:
    a = np.random.default_rng(3).normal(size=(9, length)).astype("f4")
    c = np.zeros_like(a)
    twice(a, c, grid=9, plan=Plan(slices=16, targets=4))
    np.testing.assert_array_equal(c, a)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("plan", [Plan(slices=16, targets=4), Plan(slices=64, targets=2), Plan()], ids=Plan.short)
@pytest.mark.parametrize("kernel", [going_on, loading_on], ids=lambda k: k.__name__)
def test_what_is_stored_is_what_was_there_then(kernel: Any, plan: Plan) -> None:
    """Not what statements behind the store make of it."""
    for rows_, length in ((8, 100), (300, 3000)):
        a = np.random.default_rng(4).normal(size=(rows_, length)).astype("f4")
        found, expected_ = np.zeros_like(a), np.zeros_like(a)
        kernel(a, found, grid=rows_, plan=plan)
        kernel(a, expected_, grid=rows_, plan=Plan(across=0))
        np.testing.assert_allclose(found, expected_, rtol=1e-4, atol=1e-4)


def test_a_point_writes_beside_the_next_one() -> None:
    made = overlapping.apply(hosted(normal, (np.ones((9, 99), "f4"), np.ones((9, 99), "f4")), 9), 4)
    both = [s for s in statements(made.body) if isinstance(s, ir.For) and s.role == "late" and _gathers(s)]
    assert len(both) == 1
    (walk,) = [s for s in statements(made.body) if isinstance(s, ir.For) and s.role == "points"]
    assert not any(
        _stores(s) and not isinstance(s, ir.If) for s in walk.body
    )  # nothing is written in a point's own time
    assert not any(a.space == "shared" for a in made.arrays)  # what is read again is still in memory


def _gathers(s: ir.For) -> bool:
    return any(isinstance(x, ir.Assign) and x.name == "$s.own" for x in s.body)


def _stores(s: ir.Statement) -> bool:
    return any(isinstance(x, ir.StoreElement) for x in statements((s,)))


# ------------------------------------------------------------ machine code


def written(kernel: Any, data: tuple[Any, ...], shape: tuple[int, ...], before: int, plan: Plan) -> Any:
    """What a kernel writes into an array that begins anywhere in a line of memory; it writes nothing beside it."""
    part = part_of_memory(shape, before)
    kernel(*data, part.array, grid=shape[:-1], plan=plan)
    part.assert_nothing_beside()
    return part.array


SHAPES = ((1, 5), (7, 64), (5, 63), (33, 130), (5, 2061), (4, 2112), (3, 3000))


@lw.threadwise
def far_softmax(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    m = a[y, 0]
    for k in range(a.shape[1]):
        m = lw.max(m, a[y, k])
    s = 0.0
    for k in range(a.shape[1]):
        s += lw.exp(a[y, k] - m)
    for k in range(a.shape[1]):
        c[y, k] = lw.exp(a[y, k] - m) / s


@lw.threadwise
def far_normal(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = 1.0
    for k in range(a.shape[1]):
        s += a[y, k] * a[y, k]
    for k in range(a.shape[1]):
        c[y, k] = a[y, k] / s


@pytest.mark.quick("kernels0-few")
@pytest.mark.parametrize("shapes", [SHAPES[::2], SHAPES[1::2]], ids=["few", "others"])
@pytest.mark.parametrize("kernels", [((far_softmax, 0), (far_normal, 0)), ((far_softmax, 1024),)])
def test_the_same_bits_wherever_rows_begin(
    all_is_far: None, monkeypatch: pytest.MonkeyPatch, kernels: Any, shapes: tuple[tuple[int, int], ...]
) -> None:
    for kernel, tile in kernels:
        for rows_, length in shapes:
            a = np.random.default_rng(length).normal(size=(rows_, length)).astype("f4")
            for before, threads in ((0, "1"), (1, "3"), (4, "1"), (13, "3")):
                monkeypatch.setenv("LANEWISE_THREADS", threads)
                one, several = (
                    written(kernel, (a,), a.shape, before, Plan(slices=64, targets=n, tile=tile)) for n in (1, 4)
                )
                np.testing.assert_array_equal(several, one)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 4), st.integers(0, 9), st.integers(0, 150), st.integers(0, 16), st.sampled_from([8, 16, 32]))
def test_points_of_two_indices(planes: int, many: int, length: int, before: int, lanes: int) -> None:
    rng = np.random.default_rng(planes * 1000 + many * 100 + length)
    a, g, b = (rng.normal(size=s).astype("f4") for s in ((planes, many, length), (planes, many), (length,)))
    one, several = (written(scaled, (a, g, b), a.shape, before, Plan(slices=lanes, targets=n)) for n in (1, 3))
    np.testing.assert_allclose(several, one, rtol=1e-5, atol=1e-5)  # products and sums may be fused, or not


def test_registers_of_both_loops_are_whole() -> None:
    a = np.ones((40, 5000), "f4")
    source = softmax.compile(a, np.empty_like(a), grid=40, plan=Plan(slices=64, targets=8, tile=16_384)).source
    (both,) = [
        x
        for x in re.split(r"\n  ; +for k_first_round in ", source)
        if "exp(" in x and "past the caches if far_c" in x and "before" in x
    ]
    whole = both.split("k_begin = ")[0]
    assert "masked" not in whole
    assert re.search(r"prefetch a_array\[i64\(y \+ 1\) \* i64\(a_shape1\)", both)  # the next row of the block
    assert "in some lanes, past the caches if far_c" in source  # the ends of rows
    assert "getelementptr float, ptr %value_0_kept_array.room" in source


def test_long_rows_overlap_by_default() -> None:
    def chosen(kernel: Any, many: int, length: int) -> str:
        a = np.empty((many, length), "f4")
        return kernel.compile(a, np.empty_like(a), grid=many, plan=Plan(vector_bits=512)).plan.short()

    assert chosen(softmax, 4096, 3000) == "targets=16, tile=16384, slices=64, vector_bits=512"
    assert chosen(normal, 4096, 3000) == "targets=16, slices=32, vector_bits=512"
    assert "targets" not in chosen(softmax, 4096, 2048), "ends of short rows take longer than is saved"
    assert "targets" not in chosen(softmax, 3, 3000), "too few for all cores"


# ------------------------------------------------------------ what does not fit


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (in_place, "c is read and written, and points would come one after the other"),
        (filled, "no loop that only writes elements runs over the range of one before it, from 0 on"),
        (half, "no loop that only writes elements runs over the range of one before it, from 0 on"),
        (beside, "no loop that only writes elements runs over the range of one before it, from 0 on"),
    ],
    ids=lambda v: v.__name__ if hasattr(v, "__name__") else "",
)
def test_what_does_not_fit_is_refused(kernel: Any, reason: str) -> None:
    a = np.ones((5, 37), "f4")
    arguments = (a,) if len(kernel.signature.arrays) == 1 else (a, np.ones((5, 38), "f4"))
    with pytest.raises(PlanError) as error:
        kernel(*arguments, grid=5, plan=Plan(slices=8, targets=2))
    assert reason in str(error.value)


@pytest.mark.parametrize(("points", "said"), [(0, "0 points were requested"), (-1, "wanted an integer from 0")])
def test_no_points_are_refused(points: int, said: str) -> None:
    a = np.ones((5, 37), "f4")
    with pytest.raises(PlanError, match=said):
        softmax(a, np.empty_like(a), grid=5, plan=Plan(slices=8, targets=points))


def test_points_that_write_nothing_in_loops_go_side_by_side() -> None:
    arguments, grid = inputs(rows, 40, 200)
    compiled = rows.compile(*arguments, grid=grid, plan=Plan(slices=8, targets=2))
    assert "before" not in compiled.source

"""Affine indices: what threads and rounds share, what lies side by side, what boxes touch, and that no two threads write one element."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.analysis.access_groups import groups
from lanewise.analysis.affine import AffineAccess, accesses, nest_of
from lanewise.patterns.threadwise.kernel import threadwise
from lanewise.support.errors import CompileError

YX = ("y", "x")


def reference(function, *, points=(0, 0), **arguments):  # no thread, so that no place of one is outside
    kernel = threadwise(function)
    given = {}
    for name, kind in kernel.signature.arrays.items():
        given[name] = np.zeros((4,) * kind.rank, kind.element.dtype)
    return kernel.compile(**given, **arguments, grid=points[: len(kernel.signature.indices)]).reference


def found(function, **options) -> list[AffineAccess]:
    indices, body = nest_of(reference(function, **options))
    return list(accesses(body, indices))


def matmul(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k] * b[k, x]
    c[y, x] = s


def test_a_matrix_product():
    a, b, c = found(matmul)
    assert [a.way(v) for v in "yxk"] == ["row", "same", "next"]
    assert [b.way(v) for v in "yxk"] == ["same", "next", "row"]
    assert [c.way(v) for v in "yx"] == ["row", "next"]
    assert (a.reused(("y", "x", "k")), b.reused(("y", "x", "k"))) == (("x",), ("y",))
    assert [(loop.variable, loop.shared, loop.rounds) for loop in a.loops] == [("k", True, None)]
    assert a.footprint({"y": 16, "x": 16, "k": 8}) == (16, 8)
    assert b.footprint({"y": 16, "x": 16, "k": 8}) == (8, 16)
    assert c.keeps_apart(YX)
    assert not a.keeps_apart(YX)
    assert not a.guards


def forms(y: lw.index, x: lw.index, n: lw.i32, a: lw.Array2[lw.f32], i: lw.Array1[lw.i32], c: lw.Array2[lw.f32]):
    row = 2 * y - 1
    v = a[row + n, 3 - x] + a[row, 4 * x + 1]
    v += a[i[x], n * n] + a[y // 2, x] + a[n * y, x]
    c[y, x] = v


def test_forms_of_indices():
    first, second, index, gather, divided, scaled, store = found(forms, n=1)
    assert str(first.statement.location.line) != "0"
    assert [f.coefficients if f else f for f in first.indices] == [(("y", 2),), (("x", -1),)]
    assert first.indices[0] is not None
    assert (first.indices[0].constant, len(first.indices[0].terms)) == (-1, 1)
    assert (first.way("x"), first.stride("x")) == ("next", -1)
    assert (second.way("x"), second.stride("x")) == ("apart", 4)
    assert second.footprint({"y": 3, "x": 5}) == (5, 17)
    assert index.way("x") == "next"
    assert (gather.way("x"), gather.way("y"), gather.footprint({"x": 2})) == ("unknown", "unknown", None)
    assert divided.indices[0] is None
    assert (scaled.way("x"), scaled.way("y")) == ("next", "unknown")
    assert scaled.footprint({"y": 2}) is None
    assert scaled.footprint({"x": 8}) == (1, 8)
    assert store.keeps_apart(YX)


def stencil(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    if y < 1 or x < 1 or y >= a.shape[0] - 1 or x >= a.shape[1] - 1:
        return
    c[y, x] = a[y, x] + a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1]


def test_a_stencil_is_one_group():
    loads = [g for g in groups(tuple(found(stencil))) if not g.accesses[0].is_store]
    assert len(loads) == 1
    assert (len(loads[0].accesses), loads[0].low, loads[0].high) == (5, (-1, -1), (1, 1))
    assert loads[0].footprint({"y": 4, "x": 32}) == (6, 34)
    assert loads[0].accesses[0].guards == {"y", "x"}


def rounds(y: lw.index, x: lw.index, n: lw.i32, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    last = 0
    for k in range(n):
        last = k
        if a[y, k] > 0.0:
            break
    for j in range(y):
        c[y, x] = a[j, last]
    i = 0
    while i < n:
        c[y, x] += a[i, x]
        i += 1


def test_loops_and_guards():
    first, inner, store, before, walked, _ = found(rounds, n=1)
    assert [(loop.variable, loop.shared) for loop in first.loops] == [("k", False)], (
        "threads leave it at different times"
    )
    assert [(loop.variable, loop.shared) for loop in inner.loops] == [("j", False)]
    assert inner.indices[1] is None, "what a loop leaves behind is no sum"
    assert store.guards == {"y"}
    assert walked.indices[0] is None
    assert before.array == "c"


def test_a_sum_of_threads_is_not_shared_by_them():
    def skewed(y: lw.index, x: lw.index, a: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
        c[y, x + y] = a[x + y]

    load, store = found(skewed)
    assert store.keeps_apart(YX), "y by the row, then x"
    assert not load.keeps_apart(YX)
    assert load.footprint({"y": 4, "x": 8}) == (11,)


def chosen(y: lw.index, x: lw.index, i: lw.Array1[lw.i32], a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    if y > 2:
        first = i[0]
        c[y, x] = a[first, x]
    else:
        row = 1
        if x > 3:
            row = 2
        c[y, x] = a[row, x]


def test_a_condition_decides_whether_a_variable_has_its_value_and_not_which():
    loads = {str(a.statement.location.line): a for a in found(chosen) if a.array == "a"}
    by_load, by_branch = loads.values()
    assert by_load.indices[0] is not None
    assert by_load.reused(YX) == ("y",)
    assert by_branch.indices[0] is None


def kept(y: lw.index, x: lw.index, n: lw.i32, c: lw.Array2[lw.f32]):
    for k in range(4):
        c[y, 4 * x + k] = 1.0


def mixed(y: lw.index, x: lw.index, n: lw.i32, c: lw.Array2[lw.f32]):
    for k in range(5):
        c[y, 4 * x + k] = 1.0


def unknown(y: lw.index, x: lw.index, n: lw.i32, c: lw.Array2[lw.f32]):
    for k in range(n):
        c[y, 4 * x + k] = 1.0


@pytest.mark.parametrize(("function", "apart"), [(kept, True), (mixed, False), (unknown, False)])
def test_rounds_that_keep_threads_apart(function, apart):
    (store,) = found(function, n=2)
    assert store.keeps_apart(YX) is apart


# ------------------------------------------------------------ surely a race


def column(y: lw.index, x: lw.index, c: lw.Array2[lw.f32]):
    c[y, 0] = 1.0


def in_a_loop(y: lw.index, x: lw.index, c: lw.Array2[lw.f32]):
    for k in range(c.shape[1]):
        c[y, k] = 1.0


def test_several_threads_that_write_one_element_are_refused():
    with pytest.raises(CompileError) as error:
        reference(column)
    assert str(error.value).split("\n", 1)[1] == (
        "    c[y, 0] = 1.0\n"
        "    ^^^^^^^\n"
        "  found: c[y, 0], the same for all values of x\n"
        "  wanted: x among the indices, or a condition that one value of x meets: if x == 0:\n"
        "  hint: a sum over x is a loop in one thread: leave x out of the indices; numbers are added by many threads with "
        "lw.scatter_add"
    )
    assert ": several threads write one element\n" in str(error.value)
    with pytest.raises(CompileError, match="several threads write one element"):
        reference(in_a_loop)


def guarded(y: lw.index, x: lw.index, c: lw.Array2[lw.f32]):
    if x > 0:
        return
    c[y, 0] = 1.0


def by_data(y: lw.index, x: lw.index, i: lw.Array1[lw.i32], c: lw.Array2[lw.f32]):
    j = i[x]
    if j == 3:
        c[y, 0] = 1.0


def by_loop(y: lw.index, x: lw.index, i: lw.Array1[lw.i32], c: lw.Array2[lw.f32]):
    for _k in range(i[x]):
        c[y, 0] = 1.0


@pytest.mark.parametrize("function", [guarded, by_data, by_loop])
def test_what_a_condition_may_tell_apart_is_not_refused(function):
    assert reference(function)


# ------------------------------------------------------------ against every place that is touched

NUMBERS = st.integers(-3, 3)


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=2), st.tuples(*[st.integers(1, 4)] * 3)
)
def test_boxes_and_apartness_agree_with_all_places(rows, sides):
    from lanewise.analysis.affine import AccessLoop, Affine
    from lanewise.ir import nodes as ir
    from lanewise.language.types import F32

    names = ("y", "x", "k")
    indices = tuple(
        Affine(tuple((n, c) for n, c in zip(names, row[:3], strict=True) if c), constant=row[3]) for row in rows
    )
    store = ir.StoreElement("c", (), ir.Literal(0.0, F32))
    access = AffineAccess(
        store, indices, (AccessLoop("k", True, sides[2], ir.While(ir.Literal(True, F32), ())),), frozenset()
    )
    places: dict[tuple[int, ...], set[tuple[int, int]]] = {}
    for y, x, k in itertools.product(*map(range, sides)):
        place = tuple(sum(c * v for c, v in zip(row[:3], (y, x, k), strict=True)) + row[3] for row in rows)
        places.setdefault(place, set()).add((y, x))
    box = access.footprint(dict(zip(names, sides, strict=True)))
    assert box is not None
    for d, side in enumerate(box):
        assert max(p[d] for p in places) - min(p[d] for p in places) + 1 == side
    if access.keeps_apart(YX):
        assert all(len(threads) == 1 for threads in places.values())

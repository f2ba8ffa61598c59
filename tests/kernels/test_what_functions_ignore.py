"""Functions that ignore parameters, return constants or use only uniform values: in every pattern, layout and width of
lanes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.runtime import cuda
from lanewise.runtime.memory import to_host
from lanewise.support.errors import PlanError
from tests.written import module

DEVICES = ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


class Thing(lw.Record):
    position: lw.vec2
    x: lw.f32
    n: lw.i32


# How a result of each type is written of one number. The last column is what it is of 3.
RESULTS = {
    "lw.f32": "lw.f32({0})", "lw.f64": "lw.f64({0})", "lw.i32": "lw.i32({0})", "lw.vec2": "lw.vec2(lw.f32({0}))",
    "tuple[lw.f32, lw.i32]": "(lw.f32({0}), lw.i32({0}))",
}  # fmt: skip
# What a function uses: none of its parameters, the uniform one, one element or the other. Each with what it is for
# elements i and j.
USES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "2": lambda c, i, j: 2,
    "c": lambda c, i, j: c,
    "a.n": lambda c, i, j: i,
    "b.n": lambda c, i, j: j,
}
NUMBERS = itertools.count()  # of files: source is read when a kernel is called for the first time
COUNTS = (1, 31, 32, 33, 130)
LAYOUTS = [lw.SoA(), lw.AoS(), lw.AoSoA(8)]


def written(pattern: str, parameters: str, result: str, use: str) -> Any:
    text = f"""
    @lw.{pattern}
    def kernel({parameters}, c: lw.i32) -> {result}:
        return {RESULTS[result].format(use)}
    """
    return module(text, f"kernels_{next(NUMBERS)}.py", Thing=Thing).kernel


def things(count: int, layout: lw.Layout | None, device: str) -> Any:
    places = np.stack([np.arange(count) * 0.01, np.zeros(count)], axis=1)
    return Thing.array(position=places, x=np.zeros(count), n=np.arange(count), layout=layout, device=device)


def check(found: Any, expected: np.ndarray[Any, Any], what: Any) -> None:
    for part in found if isinstance(found, tuple) else (found,):
        values = np.asarray(to_host(part))
        wide = expected[..., None] if values.ndim > expected.ndim else expected
        np.testing.assert_array_equal(values, np.broadcast_to(wide, values.shape), err_msg=str(what))


def table(use: str, rows: int, columns: int) -> np.ndarray[Any, Any]:
    """What the function gives for each pair."""
    i, j = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    return np.broadcast_to(np.asarray(USES[use](3, i, j)), (rows, columns))


def elementwise(use: str, result: str, device: str, layout: lw.Layout, counts: tuple[int, ...]) -> None:
    kernel = written("elementwise", "a: Thing, v: lw.f32", result, use)
    alone = written("elementwise", "a: Thing", result, use)
    for count in counts:
        a = things(count, layout, device)
        check(kernel(a, a.contiguous("x"), 3), table(use, count, 1)[:, 0], (count, layout))
        check(alone(a, 3), table(use, count, 1)[:, 0], (count, layout))


def pairwise(use: str, result: str, device: str, layout: lw.Layout, counts: tuple[int, ...]) -> None:
    kernel = written("pairwise", "a: Thing, b: Thing", result, use)
    for count, others in zip(counts, (5, 33, 32, 1, 0), strict=False):
        a, b = things(count, layout, device), things(others, layout, device)
        for search in (lw.AllPairs(), lw.AllPairs(radius=90.0), lw.StaticGrid(radius=90.0)):
            for plan in (None, lw.Plan(targets=4), lw.Plan(tile=128), lw.Plan(across=32)):
                try:
                    found = kernel.using(search)(a, b, 3, plan=plan)
                except PlanError:
                    continue
                check(found, table(use, count, others).sum(axis=1), (count, others, layout, plan))


def segmentwise(use: str, result: str, device: str, layout: lw.Layout, counts: tuple[int, ...]) -> None:
    one = written("segmentwise", "b: Thing", result, use) if use != "a.n" else None
    kernel = written("segmentwise", "a: Thing, b: Thing", result, use)
    lengths = np.array([2, 0, 33, 1])
    items = lw.ragged(things(int(lengths.sum()), layout, "cpu"), counts=lengths).to(device)
    ends = np.cumsum(lengths)
    for count in counts:
        values = table(use, count, int(lengths.sum()))
        expected = np.stack([values[:, e - n : e].sum(axis=1) for e, n in zip(ends, lengths, strict=True)], axis=-1)
        for plan in (None, lw.Plan(targets=1), lw.Plan(targets=16), lw.Plan(targets=4), lw.Plan(vector_bits=256)):
            try:
                found = kernel(things(count, layout, device), items, 3, plan=plan)
            except PlanError:
                continue
            parts = found if isinstance(found, tuple) else (found,)
            check(tuple(np.asarray(to_host(p)) for p in parts), expected, (count, layout, plan))
        if one is not None:
            check(one(items, 3), expected[0], layout)


PATTERNS = {"elementwise": elementwise, "pairwise": pairwise, "segmentwise": segmentwise}
QUICK = [
    ("segmentwise", "2", "lw.f32"), ("segmentwise", "b.n", "lw.vec2"), ("segmentwise", "c", "tuple[lw.f32, lw.i32]"),
    ("pairwise", "2", "lw.vec2"), ("pairwise", "c", "lw.f64"), ("elementwise", "2", "lw.i32"),
]  # fmt: skip


@pytest.mark.grid(every=40)
@pytest.mark.parametrize(("pattern", "use", "result"), QUICK)
@pytest.mark.parametrize("device", DEVICES)
def test_some_functions(device: str, pattern: str, use: str, result: str) -> None:
    PATTERNS[pattern](use, result, device, lw.SoA(), (1, 31, 33))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "use", "result"),
    [c for c in itertools.product(PATTERNS, USES, RESULTS) if c[:2] != ("elementwise", "b.n")],
)
@pytest.mark.parametrize("device", DEVICES)
def test_every_function(device: str, pattern: str, use: str, result: str) -> None:
    layout = LAYOUTS[(list(USES).index(use) + list(RESULTS).index(result)) % len(LAYOUTS)]
    PATTERNS[pattern](use, result, device, layout, COUNTS)


@pytest.mark.parametrize("device", DEVICES)
def test_items_without_a_field_that_is_read(device: str) -> None:
    """How long each list is, for every template: what somebody writes first."""
    kernel = module("""
    @lw.segmentwise
    def length(a: Thing, b: Thing, row: lw.Row[lw.f32]) -> lw.f32:
        return 1.0
    """, f"kernels_{next(NUMBERS)}.py", Thing=Thing).length  # fmt: skip
    items = lw.ragged(things(6, lw.SoA(), "cpu"), counts=[2, 0, 4]).to(device)
    rows = lw.ragged(np.ones(6, "f4"), counts=np.ones(6, int)).to(device)
    for count in (3, 32, 40):
        found = np.asarray(to_host(kernel(things(count, lw.SoA(), device), items, rows)))
        assert (found == [2, 0, 4]).all()


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(5,), (40,), (3, 70)])
def test_threadwise_functions(device: str, shape: tuple[int, ...]) -> None:
    axes, kind = ", ".join("ij"[n] for n in range(len(shape))), f"lw.Array{len(shape)}[lw.f32]"
    for use, value in (("2.0", 2), ("lw.f32(c)", 3)):
        kernel = module(f"""
        @lw.threadwise
        def fill({", ".join(f"{x}: lw.index" for x in axes.split(", "))}, unused: {kind}, written: {kind}, c: lw.i32):
            total = lw.f32(0)
            for k in range(4):
                total += {use}
            written[{axes}] = total
        """, f"kernels_{next(NUMBERS)}.py").fill  # fmt: skip
        arrays: list[Any] = [np.zeros(shape, "f4"), np.zeros(shape, "f4")]
        if device == "cuda":
            arrays = [cuda.cupy().asarray(x) for x in arrays]
        with lw.device(device):
            kernel(*arrays, 3, grid=shape)
        assert (np.asarray(to_host(arrays[1])) == 4 * value).all()


@pytest.mark.parametrize("device", DEVICES)
def test_stencils(device: str) -> None:
    for use, value in (("2.0", 2), ("lw.f32(c)", 3)):
        kernel = module(f"""
        @lw.stencil(lw.D2Q5)
        def kernel(t: lw.Field[lw.f32], c: lw.i32) -> lw.f32:
            return {use}
        """, f"kernels_{next(NUMBERS)}.py").kernel  # fmt: skip
        for shape in ((5, 7), (3, 64)):
            sites = kernel.sites(shape, device=device, t=np.zeros(shape))
            kernel(sites, c=3)
            assert (np.asarray(to_host(kernel.field(sites, "t"))) == value).all()

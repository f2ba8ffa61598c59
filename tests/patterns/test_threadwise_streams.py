"""Rows that are written past the caches, wherever they begin and end: what is stored, and that nothing else is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.emit.block_numbers import numbers_of
from lanewise.emit.walks import walk_of
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import meaning_of
from lanewise.ir.names import own
from lanewise.ir.traverse import rewrite
from lanewise.language.types import BOOL, I64, STORED, Scalar
from lanewise.passes.points import lanes, merging
from lanewise.passes.points.shape import BLOCK
from lanewise.planning.plan import Plan
from tests.emit.comments import comments
from tests.fuzz.texts import executed
from tests.lines import part_of_memory

WIDTHS = (1, 15, 16, 63, 64, 65, 100, 129, 387, 2065)
Numbers = Callable[..., Any]


@lw.threadwise
def far_twice(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] = 2.0 * a[y, x]


@lw.threadwise
def far_difference(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    if 0 < y < a.shape[0] - 1 and 2 < x < a.shape[1] - 1:
        c[y, x] = a[y - 1, x] - a[y + 1, x] + a[y, x - 3] - a[y, x + 1]


@lw.threadwise
def far_smooth(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    h, w = a.shape
    if y == 0 or x == 0 or y >= h - 1 or x >= w - 1:
        c[y, x] = -a[y, x]
        return
    c[y, x] = a[y - 1, x] - a[y + 1, x] + a[y, x - 1] - a[y, x + 1]


@lw.threadwise
def far_doubles(y: lw.index, x: lw.index, a: lw.Array2[lw.f64], c: lw.Array2[lw.f64]):
    if x < a.shape[1] - 5:
        c[y, x] = a[y, x + 5] - a[y, x]


@lw.threadwise
def far_numbers(i: lw.index, a: lw.Array1[lw.i32], c: lw.Array1[lw.i32]):
    if 4 < i < len(a) - 1:
        c[i] = a[i - 5] + a[i + 1]


@lw.threadwise
def far_every_other(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    if (y + x) % 2 == 0:
        c[y, x] = 2.0 * a[y, x]


def _differences(a: Any, c: Any) -> None:
    c[1:-1, 3:-1] = a[:-2, 3:-1] - a[2:, 3:-1] + a[1:-1, :-4] - a[1:-1, 4:]


def _smooth(a: Any, c: Any) -> None:
    c[...] = -a
    c[1:-1, 1:-1] = a[:-2, 1:-1] - a[2:, 1:-1] + a[1:-1, :-2] - a[1:-1, 2:]


def _doubles(a: Any, c: Any) -> None:
    if a.shape[1] > 5:
        c[:, :-5] = a[:, 5:] - a[:, :-5]


def _numbers(a: Any, c: Any) -> None:
    c[5:-1] = a[:-6] + a[6:]


def _every_other(a: Any, c: Any) -> None:
    even = np.add.outer(np.arange(a.shape[0]), np.arange(a.shape[1])) % 2 == 0
    c[even] = 2 * a[even]


def _twice(a: Any, c: Any) -> None:
    c[...] = 2 * a


KERNELS: tuple[tuple[Any, Numbers, str, tuple[Plan, ...]], ...] = (
    (far_twice, _twice, "f4", (Plan(across=16), Plan(across=8, targets=2), Plan(across=8), Plan(across=16, targets=2), Plan(across=16, rows=2))),
    (far_difference, _differences, "f4", (Plan(across=16), Plan(across=8), Plan(across=4), Plan(across=16, targets=2))),
    (far_smooth, _smooth, "f4", (Plan(across=16), Plan(across=8, targets=2))),
    (far_doubles, _doubles, "f8", (Plan(across=8), Plan(across=4, targets=2))),
    (far_numbers, _numbers, "i4", (Plan(across=16), Plan(across=16, targets=4))),
    (far_every_other, _every_other, "f4", (Plan(across=16),)),
)  # fmt: skip


def stored(kernel: Any, expect: Numbers, dtype: str, plan: Plan, rows: int, columns: int, before: int) -> str:
    """Run a kernel over a part of memory that begins anywhere, and compare all of that memory. Returns the generated text."""
    shape = (rows * columns,) if kernel is far_numbers else (rows, columns)
    a = (np.random.default_rng(columns).random(shape) * 100).astype(dtype)
    part = part_of_memory(shape, before, dtype)
    expected = part.array.copy()
    expect(a, expected)
    run = kernel.bind(a, part.array, grid=shape, plan=plan)
    run()
    np.testing.assert_array_equal(part.array, expected)
    part.assert_nothing_beside()
    return run.compiled.source


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize(("kernel", "expect", "dtype", "plans"), KERNELS, ids=lambda x: getattr(x, "__name__", ""))
def test_what_is_stored_past_the_caches(
    kernel: Any, expect: Numbers, dtype: str, plans: tuple[Plan, ...], threads: str, all_is_far: None, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setenv("LANEWISE_THREADS", threads)
    for plan in plans:
        for columns in WIDTHS:
            for before in (0, 1, 4, 13):
                stored(kernel, expect, dtype, plan, 7, columns, before)


FAR_COPY = """
@lw.threadwise
def far_copy(y: lw.index, x: lw.index, a: lw.Array2[lw.{kind}], c: lw.Array2[lw.{kind}]):
    if x < a.shape[1] - 3:
        c[y, x] = a[y, x]
"""


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("across", [4, 8])
@pytest.mark.parametrize("kind", STORED, ids=str)
def test_a_register_may_be_shorter_than_a_store_past_the_caches(kind: Scalar, across: int, all_is_far: None) -> None:
    """Four numbers of a byte are a quarter of the 16 bytes that such a store has."""

    def expect(a: Any, c: Any) -> None:
        if a.shape[1] > 3:
            c[:, :-3] = a[:, :-3]

    with executed(FAR_COPY.format(kind=kind), f"far_copy_{kind}_{across}.py") as names:
        for columns in (5, 65, 387):
            text = stored(names.far_copy, expect, str(kind.dtype), Plan(across=across), 7, columns, 3)
    for place in re.finditer(r"shufflevector <(\d+) x \w+> \S+, <\d+ x \w+> poison, <\d+ x i32> <(.*)>", text):
        assert max(int(n) for n in re.findall(r"i32 (\d+)", place[2])) < int(place[1]), place[0]


def test_ends_of_rows_are_streams_where_blocks_follow_memory(all_is_far: None) -> None:
    text = stored(far_difference, _differences, "f4", Plan(across=16), 7, 387, 3)
    assert comments(text)[0] == "far_c = len(c_array) > 0 and (x_extent >= 64)"
    assert "call void @lw_pieces_v16f32(" in text
    assert "in some lanes, past the caches if far_c" in text
    assert text.count("call void @llvm.masked.store") == text.count("call void @lw_pieces_v16f32("), (
        "where it is not far"
    )
    beside = stored(far_twice, _twice, "f4", Plan(across=16, rows=2), 7, 387, 3)  # two rows at once
    assert comments(beside)[0] == "far_c = len(c_array) > 0 and (x_extent % 16 == 0 or x_extent >= 2048)"
    assert "call void @llvm.masked.store" in beside
    assert "lw_pieces" not in beside
    parts = stored(
        far_every_other, _every_other, "f4", Plan(across=16), 7, 387, 3
    )  # each line in parts that nobody completes
    assert "nontemporal" not in parts
    assert "past the caches" not in parts


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 9), st.integers(1, 300), st.integers(0, 20), st.integers(0, 4))
def test_rows_of_any_length_wherever_they_begin(
    all_is_far: None, rows: int, columns: int, before: int, which: int
) -> None:
    kernel, expect, dtype, plans = KERNELS[which]
    stored(kernel, expect, dtype, plans[0], max(3, rows), max(8, columns), before)


# ------------------------------------------------------------ how the walk along a row is written


@lw.threadwise
def far_cube(z: lw.index, y: lw.index, x: lw.index, c: lw.Array3[lw.f32]):
    c[z, y, x] = 1.0


def local(name: str) -> ir.Local:
    return ir.Local(name, I64)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 5), st.integers(0, 40), st.integers(0, 15), st.integers(-40, 700), st.integers(-40, 700), st.booleans(),
       st.integers(1, 3))  # fmt: skip
def test_blocks_inside_are_those_of_the_inner_loop(
    start: int, stop: int, phase: int, low: int, high: int, gate: bool, side: int
) -> None:
    side *= 8
    number, first = local(own("x.number")), local(own("x.first"))
    place = ir.Assign(first.name, build.subtract(build.multiply(number, side), local("phase")))
    tests = (
        ir.Local("rows", BOOL), ir.Compare("<=", build.add(first, side), local("high")), ir.Compare("<", local("low"), first),
        ir.Compare("<", build.subtract(first, local("high")), ir.Literal(3, I64)),
    )  # fmt: skip
    branch = ir.If(build.all_of(*tests), (ir.Assign("in", first),), (ir.Assign("out", first),))
    walk = ir.For(number.name, local("start"), local("stop"), ir.Literal(1, I64), (place, branch))
    split = walk_of(walk)
    assert split is not None
    bounds = split.bounds
    env: dict[str, Any] = {"start": start, "stop": stop, "phase": phase, "low": low, "high": high, "rows": gate}
    env = {n: np.int64(v) if n != "rows" else np.bool_(v) for n, v in env.items()}
    inner = min(max(start, *(int(meaning_of(e)(env)) for e in bounds.least)), stop)
    outer = max(min(stop, *(int(meaning_of(e)(env)) for e in bounds.most)), inner)
    if bounds.gate is not None and not meaning_of(bounds.gate)(env):
        outer = inner
    for n in range(start, stop):
        env[number.name] = np.int64(n)
        env[first.name] = meaning_of(place.value)(env)
        assert bool(meaning_of(branch.condition)(env)) == (inner <= n < outer)


def test_walks_that_stay_one_loop() -> None:
    number, first = local(own("x.number")), local(own("x.first"))
    place = ir.Assign(first.name, build.multiply(number, 16))
    inside, body = ir.Compare("<", first, local("high")), (ir.Assign("in", first),)

    def walk(*statements: ir.Statement, step: int = 1) -> ir.For:
        return ir.For(number.name, local("start"), local("stop"), ir.Literal(step, I64), statements)

    assert walk_of(walk(place, ir.If(inside, body, body))) is not None
    assert walk_of(walk(place, ir.If(inside, body))) is None  # nothing at the edges
    early = walk_of(walk(place, ir.If(inside, body, (ir.If(inside, body, body),))))
    assert early is not None
    assert early.early is not None
    once = walk_of(walk(place, ir.If(inside, body, (ir.If(ir.Compare("==", first, local("high")), body, body),))))
    assert once is not None
    assert once.early is None  # each block at the ends tests whether it may
    assert walk_of(walk(place, ir.If(inside, body, body), step=2)) is None
    assert walk_of(walk(place, ir.If(ir.Local("rows", BOOL), body, body))) is None  # nothing changes along it
    assert walk_of(walk(place, ir.If(ir.Compare("==", first, local("high")), body, body))) is None
    both = ir.Logical("or", inside, ir.Local("rows", BOOL))
    assert walk_of(walk(place, ir.If(both, body, body))) is None
    product = ir.Compare("<", ir.Binary("*", first, first, I64), local("high"))
    assert walk_of(walk(place, ir.If(product, body, body))) is None
    loop = ir.For("k", local("start"), local("stop"), ir.Literal(1, I64), body)
    assert walk_of(walk(place, ir.If(inside, (loop,), body))) is None  # whose blocks take long


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 500), st.integers(0, 80), st.integers(1, 30))
def test_numbers_of_blocks_are_counted_as_they_were_divided(z: int, y: int, x: int, begin: int, count: int) -> None:
    cube = np.zeros((2, 3, 4), "f4")
    loops, _ = merging.nest(far_cube.compile(cube, grid=cube.shape).reference)
    counts = [build.ceil_divide(loop.extent, 16 if loop is loops[-1] else 1) for loop in loops]
    head, _, _ = lanes.numbers(loops, counts, 2, lanes.ROUND)
    kind = loops[0].extent.type
    block, number = ir.Local("block", kind), kind.dtype.type
    head = tuple(_for_block(s, block) for s in head)
    body = (*head, *(ir.Assign(f"kept.{n}", local(own(n))) for n in ("x.round", "y.number", "z.number")))
    numbers = numbers_of(block, body)
    assert numbers is not None
    assert numbers.rest == body[len(head) :]
    env: dict[str, Any] = {}
    for loop, extent in zip(loops, (z, y, x), strict=True):
        assert isinstance(loop.extent, ir.Local)
        env[loop.extent.name] = number(extent)

    def divided(at: int) -> list[int]:
        here = {**env, "block": number(at)}
        for s in head:
            here[s.name] = meaning_of(s.value)(here)
        return [int(here[own(n)]) for n in ("x.round", "y.number", "z.number")]

    here: dict[str, Any] = {**env, "block": number(begin)}
    for s in numbers.first:
        here[s.name] = meaning_of(s.value)(here)
    words = {name: f"n{k}" for k, name in enumerate(here)}
    values = {words[name]: int(v) for name, v in here.items()}
    step = compile("\n".join(numbers.next(lambda name: words[name])), "next", "exec")
    for at in range(begin, begin + count):
        assert [values[words[own(n)]] for n in ("x.round", "y.number", "z.number")] == divided(at)
        exec(step, {}, values)


def _for_block(s: ir.Statement, block: ir.Local) -> ir.Assign:
    assert isinstance(s, ir.Assign)
    return replace(s, value=rewrite(s.value, lambda e: block if isinstance(e, ir.Local) and e.name == BLOCK else e))

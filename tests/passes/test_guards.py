"""Conditions that a block tests once for all of its points: against every point of every block."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import evaluate
from lanewise.ir.traverse import flat_map, rewrite, rewrite_statement
from lanewise.language.types import BOOL, I32, I64, U32, Scalar
from lanewise.language.types import limits as limits_of
from lanewise.launch.shaped_arrays import NARROW
from lanewise.passes.points.guards import decided, tightest
from lanewise.passes.points.shape import Shape, first_of

COMPARISONS = ["<", "<=", ">", ">=", "==", "!="]
EXTENTS = {"y": 6, "x": 16}


def number(n: int) -> ir.Literal:
    return ir.Literal(n, I32)


def local(name: str) -> ir.Local:
    return ir.Local(name, I32)


def binary(operator: Any, left: ir.Expression, right: ir.Expression) -> ir.Binary:
    return ir.Binary(operator, left, right, I32, bounded=True)


@st.composite
def index_sum(draw: st.DrawFn) -> ir.Expression:
    e: ir.Expression = number(draw(st.integers(-2, 16)))
    for name in ("y", "x", "n"):
        if c := draw(st.sampled_from([0, 0, 1, 1, -1, 2])):
            e = binary("+", e, binary("*", number(c), local(name)))
    return e


@st.composite
def condition(draw: st.DrawFn) -> ir.Expression:
    left = local(draw(st.sampled_from(["y", "x"]))) if draw(st.booleans()) else draw(index_sum())
    right = draw(st.one_of(st.integers(-1, 16).map(number), index_sum()))
    e: ir.Expression = ir.Compare(draw(st.sampled_from(COMPARISONS)), left, right)
    match draw(st.integers(0, 4)):
        case 0:
            return ir.Logical(draw(st.sampled_from(["and", "or"])), e, draw(condition()))
        case 1:
            return ir.Unary("not", e, BOOL)
        case _:
            return e


def marks(*values: int) -> ir.Block:
    return tuple(ir.Assign(f"v{v}", number(v)) for v in values)


@st.composite
def branches(draw: st.DrawFn, depth: int = 0) -> ir.Block:
    """Branches of which now the one, now the other side is the larger one."""
    then, otherwise = marks(1, 2), marks(3)
    if depth < 1 and draw(st.booleans()):
        then = (*then, *draw(branches(depth + 1)))
    sides = (then, otherwise) if draw(st.booleans()) else (otherwise, then)
    return (*marks(0), ir.If(draw(condition()), *sides))


def passed(block: ir.Block, env: dict[str, Any]) -> list[str]:
    """The assignments that a point comes to."""
    names: list[str] = []
    for s in block:
        match s:
            case ir.Assign():
                names.append(s.name)
            case ir.If():
                names += passed(s.then if evaluate(s.condition, env) else s.otherwise, env)
            case _:
                raise AssertionError(s)
    return names


SHAPES = [Shape((1, 4), (2, 1), 1), Shape((2, 2), (1, 2), 1), Shape((1, 16), (1, 1), 1), Shape((1, 1), (3, 2), 0)]


@settings(max_examples=8 * settings().max_examples, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(branches(), st.sampled_from(SHAPES), st.integers(-2, 9))
def test_a_block_decides_for_all_of_its_points(body: ir.Block, shape: Shape, n: int) -> None:
    loops = tuple(ir.Parallel(v, number(e), ()) for v, e in EXTENTS.items())
    conditions, plain = decided(body, loops, shape, {"n"})
    sides = [shape.side(d) for d in range(len(loops))]
    starts = (range(0, extent, side) for extent, side in zip(EXTENTS.values(), sides, strict=True))
    for first in itertools.product(*starts):
        begin = {first_of(v): np.int32(f) for v, f in zip(EXTENTS, first, strict=True)} | {"n": np.int32(n)}
        if not all(evaluate(c, begin) for c in conditions):
            continue
        for point in itertools.product(*(range(f, f + s) for f, s in zip(first, sides, strict=True))):
            env = begin | {v: np.int32(p) for v, p in zip(EXTENTS, point, strict=True)}
            assert passed(plain, env) == passed(body, env)


def wrapping(e: ir.Expression) -> ir.Expression:
    """As in a condition that a user writes, which is no index."""
    return replace(e, bounded=False) if isinstance(e, ir.Binary) else e


@settings(max_examples=8 * settings().max_examples, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(branches(), st.sampled_from(SHAPES), st.sampled_from([-(2**31), -(2**30), 2**30, 2**31]), st.integers(-40, 40))
def test_uniforms_may_have_any_value(body: ir.Block, shape: Shape, edge: int, by: int) -> None:
    """Also those with which sums wrap, for some points of a block alone."""
    n = np.int32((edge + by + 2**31) % 2**32 - 2**31)
    body = flat_map(body, lambda s: (rewrite_statement(s, lambda e: rewrite(e, wrapping), tuple),))
    loops = tuple(ir.Parallel(v, number(e), ()) for v, e in EXTENTS.items())
    conditions, plain = decided(body, loops, shape, set(), {"n"})
    sides = [shape.side(d) for d in range(len(loops))]
    starts = (range(0, extent, side) for extent, side in zip(EXTENTS.values(), sides, strict=True))
    with np.errstate(over="ignore"):
        for first in itertools.product(*starts):
            begin = {first_of(v): np.int32(f) for v, f in zip(EXTENTS, first, strict=True)} | {"n": n}
            if not all(evaluate(c, begin) for c in conditions):
                continue
            for point in itertools.product(*(range(f, f + s) for f, s in zip(first, sides, strict=True))):
                env = begin | {v: np.int32(p) for v, p in zip(EXTENTS, point, strict=True)}
                assert passed(plain, env) == passed(body, env)


PLACES = [0, 2**29, 2**30, 2**31 - 2**16]  # about which counts and indices lie
large = st.builds(lambda edge, by: min(max(0, edge + by), NARROW), st.sampled_from(PLACES), st.integers(-20, 20))


@settings(max_examples=6 * settings().max_examples, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(branches(), st.sampled_from(SHAPES), large, st.tuples(large, large))
def test_counts_and_indices_may_be_as_large_as_calls_make_them(
    body: ir.Block, shape: Shape, n: int, first: tuple[int, int]
) -> None:
    """With which sums of several of them wrap, for some points of a block alone."""
    body = flat_map(body, lambda s: (rewrite_statement(s, lambda e: rewrite(e, wrapping), tuple),))
    loops = tuple(ir.Parallel(v, number(NARROW), ()) for v in EXTENTS)
    conditions, plain = decided(body, loops, shape, {"n"})
    begin = {first_of(v): np.int32(f) for v, f in zip(EXTENTS, first, strict=True)} | {"n": np.int32(n)}
    sides = [shape.side(d) for d in range(len(loops))]
    with np.errstate(over="ignore"):
        if not all(evaluate(c, begin) for c in conditions):
            return
        for point in itertools.product(*(range(f, f + s) for f, s in zip(first, sides, strict=True))):
            env = begin | {v: np.int32(p) for v, p in zip(EXTENTS, point, strict=True)}
            assert passed(plain, env) == passed(body, env)


@pytest.mark.parametrize("kind", [I32, U32], ids=str)
@pytest.mark.parametrize("operator", COMPARISONS)
def test_sums_of_32_bits_wrap_before_they_are_widened(operator: Any, kind: Scalar) -> None:
    """In a call whose indices have 64 bits."""
    loop = ir.Parallel("x", ir.Literal(64, I64), ())
    shape = Shape((16,), (2,), 0)
    limits = [int(x) for x in limits_of(kind)]
    values = [*limits, *(x + 9 for x in limits[:1]), *(x - 9 for x in limits[1:]), 0, 3, 20, 40]
    for by, n in itertools.product((-8, 8, 2**30), values):
        total = ir.Binary("+" if by > 0 else "-", ir.Local("n", kind), ir.Literal(abs(by), kind), kind)
        test = ir.Compare(operator, ir.Local("x", I64), ir.Cast(total, I64))
        body = (ir.If(test, marks(1), marks(2)),)
        conditions, plain = decided(body, (loop,), shape, set(), {"n"})
        for first in (0, 32):
            env: dict[str, Any] = {first_of("x"): np.int64(first), "n": kind.dtype.type(n)}
            with np.errstate(over="ignore"):
                if all(evaluate(c, env) for c in conditions):
                    for x in range(first, first + 32):
                        env["x"] = np.int64(x)
                        assert passed(plain, env) == passed(body, env)


@settings(max_examples=6 * settings().max_examples, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(branches(), index_sum(), st.sampled_from(SHAPES), st.integers(-2, 9))
def test_variables_stand_for_their_sums(body: ir.Block, p: ir.Expression, shape: Shape, n: int) -> None:
    """What a block decides of conditions about p, it decides of those about the sum that p is."""
    loops = tuple(ir.Parallel(v, number(e), ()) for v, e in EXTENTS.items())
    text = flat_map(body, lambda s: (rewrite_statement(s, lambda e: local("p") if e == local("x") else e, tuple),))
    written = flat_map(body, lambda s: (rewrite_statement(s, lambda e: p if e == local("x") else e, tuple),))
    found, wanted = (
        decided(b, loops, shape, {"n"}) for b in ((ir.Assign("p", p), *text), (ir.Assign("p", p), *written))
    )
    assert found[0] == wanted[0]
    sides = [shape.side(d) for d in range(len(loops))]
    starts = (range(0, extent, side) for extent, side in zip(EXTENTS.values(), sides, strict=True))
    for first in itertools.product(*starts):
        begin = {first_of(v): np.int32(f) for v, f in zip(EXTENTS, first, strict=True)} | {"n": np.int32(n)}
        if not all(evaluate(c, begin) for c in found[0]):
            continue
        for point in itertools.product(*(range(f, f + s) for f, s in zip(first, sides, strict=True))):
            env = begin | {v: np.int32(i) for v, i in zip(EXTENTS, point, strict=True)}
            env["p"] = evaluate(p, env)
            assert passed(found[1], env) == ["p", *passed(text, env)]


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.lists(condition(), max_size=6), st.integers(-2, 9))
def test_what_follows_from_others_is_not_tested(conditions: list[ir.Expression], n: int) -> None:
    less = tightest(conditions)
    assert len(less) <= len([x for c in conditions for x in _parts(c)])
    for y, x in itertools.product(range(-3, 20, 3), range(-3, 20, 2)):
        env = {"y": np.int32(y), "x": np.int32(x), "n": np.int32(n)}
        assert all(evaluate(c, env) for c in less) == all(evaluate(c, env) for c in conditions)


def test_of_neighbours_the_farthest_is_tested() -> None:
    places = [binary("+", local("x"), number(c)) for c in (-1, 0, 1)]
    tests: list[ir.Expression] = [
        ir.Logical("and", ir.Compare("<=", number(0), p), ir.Compare("<", p, local("n"))) for p in places
    ]
    assert tightest(tests) == (ir.Compare("<=", number(0), places[0]), ir.Compare("<", places[2], local("n")))


def _parts(e: ir.Expression) -> list[ir.Expression]:
    if isinstance(e, ir.Logical) and e.operator == "and":
        return [*_parts(e.left), *_parts(e.right)]
    return [e]


@lw.threadwise
def first_column(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    if x == 0:
        s = a[y, x] * 2
        for j in range(8):
            s += a[y, j] * s
        c[y, x] = s
    else:
        c[y, x] = 0


@pytest.mark.parametrize("across", [None, 4, 16])
def test_a_column_of_its_own_stays_one(across: int | None) -> None:
    a = np.arange(40 * 64, dtype=np.float32).reshape(40, 64) % 3
    wanted, found = np.zeros_like(a), np.zeros_like(a)
    with lw.device("python"):
        first_column(a[:4], wanted[:4], grid=(4, 64))
    first_column(a, found, grid=a.shape, plan=None if across is None else lw.Plan(across=across))
    np.testing.assert_array_equal(found[:4], wanted[:4])
    assert not found[:, 1:].any()


@lw.threadwise
def beyond(y: lw.index, x: lw.index, c: lw.Array2[lw.f32], t: lw.i32):
    s = 0.0
    if x - t > 0:
        s += 1.0
    if x - t > -5:
        s += 2.0
    c[y, x] = s


@pytest.mark.parametrize("t", [-(2**31), -(2**31) + 20, -20, 3, 2**31 - 20, 2**31 - 1])
def test_a_call_with_any_uniform(t: int) -> None:
    found, wanted = np.zeros((21, 40), np.float32), np.zeros((21, 40), np.float32)
    with lw.device("python"):
        beyond(wanted, np.int32(t), grid=wanted.shape)
    beyond(found, np.int32(t), grid=found.shape)
    np.testing.assert_array_equal(found, wanted)

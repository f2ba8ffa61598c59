"""Indices that clamps and remainders bring back: blocks in the inside read as if nothing did, with the same bits."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import expressions, statements, subexpressions
from lanewise.passes.points import bringing_back, merging
from lanewise.passes.points.shape import shape_of
from lanewise.planning.plan import NEUTRAL, Plan
from tests.fuzz.texts import executed
from tests.patterns.reductions import reference, run

Array = np.ndarray[Any, Any]

HEAD = "@lw.threadwise\ndef kernel(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):\n"
BACK = {
    "clamp": "lw.clamp({e}, 0, {n} - 1)",
    "remainder": "({e} + {n}) % {n}",
    "sign": "({e}) % {n}",
    "extremes": "lw.max(lw.min({e}, {n} - 1), 0)",
}
MOVED = {"y": "y + v - 1", "x": "x + u - 1"}


def text(rng: Random, back: str) -> str:
    """A window in loops, whose places are variables or not, perhaps under a test."""
    inside: list[str] = []
    places = [BACK[back].format(e=MOVED[i], n=f"a.shape[{d}]") for d, i in enumerate("yx")]
    if rng.random() < 0.5:
        inside = [f"p = {places[0]}", f"q = {places[1]}"]
        places = ["p", "q"]
    term = f"s += a[{places[0]}, {places[1]}] * (1.0 + v * 0.5 + u)"
    inside += ["if x > 2:", f"    {term}"] if rng.random() < 0.3 else [term]
    loops = ["for v in range(3):", "    for u in range(3):"]
    lines = ["s = 0.0", *loops, *(f"        {line}" for line in inside), "c[y, x] = s"]
    return HEAD + "".join(f"    {line}\n" for line in lines)


def returned(block: ir.Block) -> list[ir.Expression]:
    """The remainders and clamps by which a block finds places."""
    every = (x for s in statements(block) for e in expressions(s) for x in subexpressions(e))
    return [
        x
        for x in every
        if (isinstance(x, ir.Binary) and x.operator == "%")
        or (isinstance(x, ir.Call) and x.intrinsic in ("clamp", "min", "max") and x.type.is_integer)
    ]


def divided(kernel: ir.Kernel) -> ir.If:
    found = next(s for s in kernel.body if isinstance(s, ir.If))
    assert found.otherwise
    return found


@pytest.mark.grid(every=100)
@pytest.mark.parametrize("back", BACK)
@pytest.mark.parametrize("seed", range(4))
def test_blocks_in_the_inside_bring_nothing_back(seed: int, back: str) -> None:
    """And their bits are those of the function, at every size of the array."""
    rng = Random(seed)
    with executed(text(rng, back), f"{back}_{seed}.py") as names:
        for shape in ((5, 7), (11, 23), (13, 41)):
            a = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
            arrays = [a, np.zeros_like(a)]
            naive = reference(names.kernel, arrays, shape)
            plan = Plan(block=32, across=8, rows=rng.choice((1, 2)), targets=rng.choice((1, 2, 4)))
            program = build_program(naive, plan.filled(NEUTRAL), "cuda")
            inside = divided(program.kernels[0])
            assert not returned(inside.then)
            assert returned(inside.otherwise)
            wanted = run((naive,), names.kernel, arrays, shape)[1]
            np.testing.assert_array_equal(run(program.kernels, names.kernel, arrays, shape)[1], wanted)


BOX = """@lw.threadwise
def kernel(z: lw.index, y: lw.index, x: lw.index, a: lw.Array3[lw.f32], c: lw.Array3[lw.f32]):
    s = 0.0
    for w in range(-1, 2):
        for v in range(-1, 2):
            for u in range(-1, 2):
                {named}
                s += a[{read}]
    c[z, y, x] = s
"""
TURNED = [f"({i} + {m} + a.shape[{d}]) % a.shape[{d}]" for d, (i, m) in enumerate(("zw", "yv", "xu"))]


@pytest.mark.parametrize("named", [False, True])
def test_blocks_at_edges_find_a_place_once(named: bool) -> None:
    """A thread's box of 27 has nine of them, whatever has a name, and no division where one turn brings them back."""
    assigned = "; ".join(f"{n} = {e}" for n, e in zip("ijk", TURNED, strict=True))
    box = BOX.format(named=assigned, read="i, j, k") if named else BOX.format(named="pass", read=", ".join(TURNED))
    with executed(box, f"box_{named}.py") as names:
        a = np.random.default_rng(1).normal(size=(5, 9, 35)).astype(np.float32)
        arrays = [a, np.zeros_like(a)]
        naive = reference(names.kernel, arrays, a.shape)
        rolls = (np.roll(a.astype(np.float64), (w - 1, v - 1, u - 1), (0, 1, 2)) for w, v, u in np.ndindex(3, 3, 3))
        wanted = sum(rolls, start=np.zeros(a.shape))
        for plan, places in (
            (Plan(block=32, across=16, rows=2, targets=2, layers=2), 9),  # a loop over the points of a thread
            (Plan(block=32, across=16, rows=2), 3 + 2 * 3 + 3),
        ):
            program = build_program(naive, plan.filled(NEUTRAL), "cuda")
            others = divided(program.kernels[0]).otherwise
            back = [s for s in statements(others) if isinstance(s, ir.Assign) and isinstance(s.value, ir.Select)]
            assert len([s for s in back if returned((s,))]) == places
            assert (
                len([e for e in returned(others) if isinstance(e, ir.Binary) and isinstance(e.right, ir.Local)])
                == places
            )
            found = run(program.kernels, names.kernel, arrays, a.shape)[1]
            np.testing.assert_allclose(found, wanted, atol=1e-5)


@lw.threadwise
def repeated(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], t: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] = a[y, x] * t[x % t.shape[0]]


@lw.threadwise
def alternating(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], t: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] = a[y, x] * t[(x + 1) % 2]


@lw.threadwise
def halves(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], t: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] = a[lw.min(y, a.shape[0] // 2), lw.max(x, 40)] * t[0]


@lw.threadwise
def looked_up(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], t: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] = t[lw.clamp(lw.i32(a[y, x]), 0, t.shape[0] - 1)]


@pytest.mark.parametrize("kernel", [repeated, alternating, halves, looked_up], ids=lambda k: k.__name__)
def test_what_is_no_edge_stays(kernel: Any) -> None:
    """Most blocks would not be in the inside of short rows that repeat, nor of halves."""
    a = np.ones((9, 50), np.float32)
    arrays = [a, np.ones(4, np.float32), np.zeros_like(a)]
    naive = reference(kernel, arrays, a.shape)
    assert bringing_back.inside(naive) is naive
    shape = shape_of(Plan(block=32, across=8, targets=2).filled(NEUTRAL), 2)
    conditions, *_ = bringing_back.divided(naive, shape)
    assert not conditions
    merged = merging.apply(naive, shape)
    assert merged.grid is not None
    np.testing.assert_array_equal(run((merged,), kernel, arrays, a.shape)[2], run((naive,), kernel, arrays, a.shape)[2])


STEEP = {
    "clamp": "c[y, x] = a[y, lw.clamp(x * {c} - 1, 0, a.shape[1] - 1)]",
    "test": "if x * {c} < 300000000:\n        c[y, x] = a[y, x]",
    "remainder": "p = (x * {c} + 1) % a.shape[1]\n    c[y, x] = a[y, p]",
}


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("step", [3, 5_000, 4_000_000, 100_000_000])
@pytest.mark.parametrize("way", STEEP)
def test_steps_between_neighbours_may_be_long(way: str, step: int) -> None:
    """Of what no 32 bits hold for the points of a block nothing is tested for the block."""
    with executed(HEAD + f"    {STEEP[way].format(c=step)}\n", f"steep_{way}_{step}.py") as names:
        a = np.random.default_rng(step).normal(size=(9, 20)).astype(np.float32)
        arrays = [a, np.zeros_like(a)]
        naive = reference(names.kernel, arrays, a.shape)
        wanted = run((naive,), names.kernel, arrays, a.shape)[1]
        for plan in (Plan(block=32, across=8, rows=2, targets=2), Plan(block=32, targets=8)):
            program = build_program(naive, plan.filled(NEUTRAL), "cuda")
            np.testing.assert_array_equal(run(program.kernels, names.kernel, arrays, a.shape)[1], wanted)
        names.kernel(*arrays, grid=a.shape)
        np.testing.assert_array_equal(arrays[1], wanted)


@lw.threadwise
def turned_often(y: lw.index, x: lw.index, c: lw.Array2[lw.i32], d: lw.Array2[lw.i32], e: lw.Array2[lw.i32], n: lw.i32):
    p = (x - 1 + n) % n
    q = (x + 5 * n) % n
    r = (x + 1 - 3 * n) % n
    c[y, x] = p
    d[y, x] = q
    e[y, x] = r


@pytest.mark.parametrize("n", [7, -7, 0, 1, 2, 39, 40, 10**9, -(10**9), 2**31 - 1, -(2**31)])
def test_lengths_may_be_of_any_size(n: int) -> None:
    """What wraps before it is divided, wraps."""
    arrays = [np.zeros((5, 40), np.int32) for _ in range(3)]
    length = {"n": np.int32(n)}
    naive = reference(turned_often, arrays, (5, 40), **length)
    wanted = run((naive,), turned_often, arrays, (5, 40), **length)
    for plan in (Plan(block=32, across=8, rows=2, targets=4), Plan(block=32, targets=8)):
        program = build_program(naive, plan.filled(NEUTRAL), "cuda")
        found = run(program.kernels, turned_often, arrays, (5, 40), **length)
        np.testing.assert_array_equal(found, wanted)

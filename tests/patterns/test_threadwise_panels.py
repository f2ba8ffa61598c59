"""Recurrences in panels of rounds: what is computed ahead, what is refused, and every kind of shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import build_program
from lanewise.compiler.work import describe_work
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_expression, print_kernel
from lanewise.ir.series import launches, typical
from lanewise.ir.traverse import statements
from lanewise.language.target import Machine
from lanewise.launch.support import compile_kernel
from lanewise.passes import kept_rounds, panels
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.support.errors import PlanError
from tests.patterns.panelled import CASES, Case, copies, forward, lower, run_program

SHAPES = [(1, 1), (0, 3), (3, 0), (7, 5), (8, 16), (13, 9), (16, 4), (29, 17)]
PLANS = {
    "threads": Plan(block=32, panel=8),
    "points": Plan(block=32, across=8, rows=2, targets=2, panel=8),
    "tiles": Plan(block=32, across=8, rows=2, targets=4, tile=4, unroll=0, panel=8),
    "ahead": Plan(block=32, across=8, rows=1, targets=2, tile=4, prefetch="registers", panel=8),
    "copied": Plan(block=32, across=8, rows=1, targets=2, tile=4, prefetch="async3", panel=8),
}


def agree(case: Case, n: int, m: int, plan: Plan, seed: int = 3) -> int:
    arrays = case.make(np.random.default_rng(seed), n, m)
    compiled = case.kernel.compile(**arrays, grid=m)
    program = build_program(compiled.reference, plan.filled(NEUTRAL), "cuda")
    changed = copies(arrays)
    count = run_program(program.kernels, changed, compiled.environment)
    check(case, arrays, changed)
    return count


def check(case: Case, arrays: dict[str, Any], changed: dict[str, Any]) -> None:
    wide = arrays["a"].dtype == np.float64
    for name, expected in case.expect(**copies(arrays)).items():
        np.testing.assert_allclose(changed[name], expected, rtol=1e-10 if wide else 2e-4, atol=1e-10 if wide else 2e-4)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_recurrences_of_all_kinds(case: Case, name: str) -> None:
    """Two launches for each panel: what is gathered ahead of it, and the panel."""
    assert agree(case, 21, 6, PLANS[name]) == 2 * -(-(20 if case.name in ("longest", "chained") else 21) // 8)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_shapes(case: Case, shape: tuple[int, int]) -> None:
    agree(case, *shape, PLANS["points"])


@settings(deadline=None)
@drawn(st.sampled_from(CASES), st.integers(0, 40), st.integers(0, 9), st.integers(1, 20), st.integers(0, 99))
def test_panels_of_any_size(case: Case, n: int, m: int, panel: int, seed: int) -> None:
    agree(case, n, m, Plan(block=32, panel=panel), seed)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_panels_within_panels(case: Case) -> None:
    """The kernel of a panel is a recurrence again; every kernel means the same before it is mapped to threads."""
    arrays = case.make(np.random.default_rng(5), 23, 3)
    compiled = case.kernel.compile(**arrays, grid=3)
    kernels: list[ir.Kernel] = []
    rest = compiled.reference
    for panel in (12, 4, 3):
        ahead, rest = panels.apply(rest, panel)
        kernels.append(ahead)
    for last in (rest, kept_rounds.apply(rest, 3) if kept_rounds.legal(rest, 3) is None else rest):
        changed = copies(arrays)
        run_program([*kernels, last], changed, compiled.environment)
        check(case, arrays, changed)


def test_panels_have_three_sizes() -> None:
    compiled = CASES[0].kernel.compile(**CASES[0].make(np.random.default_rng(5), 70, 2), grid=2)
    program = build_program(compiled.reference, Plan(block=32, panel=512).filled(NEUTRAL), "cuda")
    assert [k.name for k in program.kernels] == [
        "forward_ahead_512",
        "forward_ahead_128",
        "forward_ahead_32",
        "forward",
    ]
    assert [[abs(s.step) for s in k.series] for k in program.kernels] == [
        [512],
        [512, 128],
        [512, 128, 32],
        [512, 128, 32],
    ]
    numbers = [n for n, _ in launches(program.kernels, {**compiled.environment, "$a.shape0": 600})]
    whole = [1, *[2, 3] * 4]
    assert numbers == [0, *whole * 4, 0, 1, *[2, 3] * 3]


def test_the_last_panel_is_shorter() -> None:
    compiled = CASES[2].kernel.compile(**CASES[2].make(np.random.default_rng(5), 21, 2), grid=2)
    program = build_program(compiled.reference, Plan(block=32, panel=8).filled(NEUTRAL), "cuda")
    counts = [c for n, c in launches(program.kernels, compiled.environment) if n == 0]
    assert [(c["$i.first"], c["$i.rounds"]) for c in counts] == [(20, 8), (12, 8), (4, 5)]
    counts, number = typical(program.kernels[0], compiled.environment)
    assert (counts["$i.first"], number) == (12, 3)


def test_panels_of_whole_tiles_have_no_loop_over_a_part_of_one() -> None:
    """Of `longest`, whose rounds begin with 1, no panel begins at a multiple of a tile."""
    for case, loops in ((CASES[0], 1), (next(c for c in CASES if c.name == "longest"), 2)):
        compiled = case.kernel.compile(**case.make(np.random.default_rng(5), 16, 8), grid=8)
        program = build_program(compiled.reference, PLANS["ahead"].filled(NEUTRAL), "cuda")
        tiles = [s for s in statements(program.kernels[0].body) if isinstance(s, ir.For) and s.role == "tiles"]
        assert len(tiles) == 2 * loops  # inside, and at the edges


def test_a_kernel_is_done_before_passes_begin_with_the_next_one() -> None:
    compiled = CASES[0].kernel.compile(**CASES[0].make(np.random.default_rng(5), 70, 2), grid=2)
    told: list[str] = []
    program = build_program(
        compiled.reference, Plan(block=32, panel=128).filled(NEUTRAL), "cuda",
        lambda stage, kernel: told.append(kernel.name), done=lambda kernel: told.append(f"{kernel.name} done"),
    )  # fmt: skip
    names = [k.name for k in program.kernels]
    assert [t for t in told if t.endswith(" done")] == [f"{n} done" for n in names]
    assert all(told.index(f"{n} done") > len(told) - told[::-1].index(n) - 1 for n in names[:-1])
    assert told.index("forward_ahead_128 done") < told.index("forward_ahead_32")


def test_the_text_of_both_kernels(golden: Any) -> None:
    compiled = forward.compile(**CASES[0].make(np.random.default_rng(5), 4, 4), grid=4)
    ahead, within = panels.apply(compiled.reference, 64)
    kept = kept_rounds.apply(within, 64)
    golden("recurrence", "\n".join(map(print_kernel, (ahead, within, kept))))


@pytest.mark.slow_cases("apart-points", "backward-tiles", "longest-threads")
@pytest.mark.grid(every=40)
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_text_compiles(case: Case, name: str) -> None:
    compiled = case.kernel.compile(**case.make(np.random.default_rng(5), 8, 8), grid=8)
    reference = replace(compiled.reference, arrays=tuple(replace(a, multiple=2) for a in compiled.reference.arrays))
    executable = compile_kernel(reference, PLANS[name].filled(NEUTRAL), "cuda", arch="sm_90")
    assert all(c.resources.registers for c in executable.cubins)


# ------------------------------------------------------------ what is refused


@lw.threadwise
def ahead_of_itself(x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    for i in range(a.shape[0]):
        s = b[i, x]
        for k in range(i):
            s -= a[i, k] * b[k + 1, x]
        b[i, x] = s


@lw.threadwise
def carried(x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    t = 0.0
    for i in range(a.shape[0]):
        s = b[i, x]
        for k in range(i):
            s -= a[i, k] * b[k, x]
        t += s
        b[i, x] = t


@lw.threadwise
def shortened(x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    for i in range(a.shape[0]):
        s = b[i, x]
        for k in range(i // 2):
            s -= a[i, k] * b[k, x]
        b[i, x] = s


@lw.threadwise
def broken(x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    for i in range(a.shape[0]):
        s = b[i, x]
        for k in range(i):
            s -= a[i, k] * b[k, x]
        if s < 0:
            break
        b[i, x] = s


@lw.threadwise
def turned_over(x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    for i in range(a.shape[0]):
        s = b[i, x]
        for k in range(i):
            s = b[k, x] - s * a[i, k]
        b[i, x] = s


@lw.threadwise
def weighted(x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    for i in range(1, a.shape[0]):
        s = 0.0
        f = b[i - 1, x]
        for k in range(i):
            s += f * a[i, k] * b[k, x]
        b[i, x] = s


@lw.threadwise
def early(x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    for i in range(a.shape[0]):
        b[i, x] = 2.0 * b[i, x]
        s = b[i, x]
        for k in range(i):
            s -= a[i, k] * b[k, x]
        b[i, x] = s


@lw.threadwise
def twice(x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    for _ in range(2):
        for i in range(0, a.shape[0]):
            s = b[i, x]
            for k in range(i):
                s -= a[i, k] * b[k, x]
            b[i, x] = s


@lw.threadwise
def followed(x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    for i in range(a.shape[0]):
        s = b[i, x]
        for k in range(i):
            s -= a[i, k] * b[k, x]
        b[i, x] = s
    b[0, x] = 1.0


REFUSED = [
    (ahead_of_itself, "the loop over k may read elements of b that rounds of i write at the same time or later"),
    (carried, "t keeps a value from one round of i to the next"),
    (shortened, "rounds of i do not lengthen the loop over k at one end, by one round each"),
    (broken, "a round of i may end early"),
    (turned_over, "s keeps a value from one round to the next, and is not gathered by"),
    (weighted, "the loop over k depends on what its round of i reads of b"),
    (early, "a round of i writes before its loop over k"),
    (twice, "the loop over i does more than gather values"),
    (followed, "a thread is no single loop over a range"),
]


@pytest.mark.parametrize(("kernel", "reason"), REFUSED, ids=lambda x: getattr(x, "__name__", ""))
def test_what_cannot_be_done_ahead_is_refused(kernel: Any, reason: str) -> None:
    z = np.zeros((3, 3), np.float32)
    compiled = kernel.compile(z, z.copy(), grid=3)
    with pytest.raises(PlanError) as caught:
        build_program(compiled.reference, Plan(block=32, panel=8).filled(NEUTRAL), "cuda")
    assert str(caught.value).startswith(f"blocking of recurrences cannot be applied to {kernel.__name__}: {reason}")


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        (Plan(panel=8, slices=2), "the threads of a panel have their own rounds; choose slices=1 and parts=1"),
    ],
    ids=str,
)
def test_plans_that_are_refused(wish: Plan, reason: str) -> None:
    z = np.zeros((3, 3), np.float32)
    compiled = forward.compile(z, z.copy(), grid=3)
    with pytest.raises(PlanError, match=reason):
        build_program(compiled.reference, replace(wish, block=32).filled(NEUTRAL), "cuda")


def test_a_cpu_has_no_panels() -> None:
    z = np.eye(3, dtype=np.float32)
    with pytest.raises(PlanError, match="blocking of recurrences cannot be applied to forward: only a GPU has blocks"):
        forward(z, z.copy(), grid=3, plan=Plan(panel=8))


def test_rounds_that_read_more_are_not_kept() -> None:
    """`longest` reads what its first launch has not written."""
    compiled = shifted.compile(np.eye(9, dtype=np.float32), np.ones((9, 2), np.float32), grid=2)
    _, within = panels.apply(compiled.reference, 4)
    reason = kept_rounds.legal(within, 4)
    assert reason == "the loop over k reads more of b than what rounds of i write"


@lw.threadwise
def shifted(x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    for i in range(1, a.shape[0]):
        s = b[i, x]
        for k in range(1, i):
            s -= a[i, k] * b[k - 1, x]
        b[i, x] = s


# ------------------------------------------------------------ default plans


@pytest.mark.parametrize(
    ("n", "m", "expected"),
    [
        (
            4096,
            4096,
            Plan(panel=512, block=128, across=16, rows=8, targets=8, tile=16, prefetch="async", unroll=0, min_blocks=1),
        ),
        (300, 300, Plan(panel=512, block=64, across=8, rows=2, targets=2, tile=16, prefetch="async", unroll=0)),
        (4096, 1, Plan(panel=512, block=256)),
        (100, 1_000_000, Plan(block=256)),
    ],
)
def test_long_recurrences_have_panels_by_default(n: int, m: int, expected: Plan) -> None:
    z = np.zeros((3, 3), np.float32)
    for kernel in (forward, CASES[2].kernel):
        compiled = kernel.compile(z, z.copy(), grid=3)
        work = describe_work(compiled.reference, m)
        assert work.rounds is not None
        long = replace(work, rounds=work.rounds.at({**compiled.environment, "$a.shape0": n}))
        assert complete_plan(None, Machine("cuda", 132), long) == expected.filled(NEUTRAL)


@pytest.mark.parametrize("kernel", [k for k, _ in REFUSED], ids=lambda k: k.__name__)
def test_what_is_refused_is_not_chosen(kernel: Any) -> None:
    z = np.zeros((3, 3), np.float32)
    compiled = kernel.compile(z, z.copy(), grid=3)
    work = describe_work(compiled.reference, 4096)
    rounds = None if work.rounds is None else work.rounds.at({**compiled.environment, "$a.shape0": 4096})
    assert complete_plan(None, Machine("cuda", 132), replace(work, rounds=rounds)).panel == 0


@lw.threadwise
def of_some(x: lw.index, a: lw.Array2[lw.f64], b: lw.Array2[lw.f64], n: lw.i32, scale: lw.f64):
    for i in range(n):
        s = scale * b[i, x]
        for k in range(i):
            s -= a[i, k] * b[k, x]
        b[i, x] = s / a[i, i]


@pytest.mark.parametrize("uniforms", ["constant", "global"])
def test_values_of_a_call_say_how_many_rounds(uniforms: Any) -> None:
    rng = np.random.default_rng(5)
    a, b = lower(rng, 19, np.float64), rng.normal(size=(19, 3))
    compiled = of_some.compile(a, b, 13, 2.0, grid=3)
    program = build_program(compiled.reference, Plan(block=32, panel=4, uniforms=uniforms).filled(NEUTRAL), "cuda")
    assert [str(print_expression(s.stop)) for s in program.kernels[0].series] == ["n"]
    if uniforms == "constant":
        changed = {"a": a, "b": b.copy()}
        assert run_program(program.kernels, changed, compiled.environment) == 8
        np.testing.assert_allclose(changed["b"][:13], 2 * np.linalg.solve(np.tril(a)[:13, :13], b[:13]), rtol=1e-10)
        np.testing.assert_array_equal(changed["b"][13:], b[13:])


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (Plan(panel=0), Plan(block=256)),
        (Plan(block=64), Plan(block=64)),
        (Plan(slices=2), Plan(block=256, slices=2)),
        (Plan(panel=128, block=64), Plan(panel=128, block=64)),
    ],
)
def test_wishes_come_first(wish: Plan, expected: Plan) -> None:
    z = np.zeros((3, 3), np.float32)
    compiled = forward.compile(z, z.copy(), grid=3)
    work = describe_work(compiled.reference, 4096)
    assert work.rounds is not None
    long = replace(work, rounds=replace(work.rounds, count=4096))
    assert complete_plan(wish, Machine("cuda", 132), long) == expected.filled(NEUTRAL)

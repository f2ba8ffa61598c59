"""Naive kernels of every family are right with default and random legal plans, and explained without an
internal error.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import Program, build_program
from lanewise.compiler.work import describe_work
from lanewise.emit.cuda import emit_cuda
from lanewise.ir import nodes as ir
from lanewise.language.scalar_functions import SCALAR_FUNCTIONS
from lanewise.language.target import CUDA, Machine
from lanewise.patterns.tables.names import extent_of, length_of
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime.nvrtc import compile_cubin
from tests.fuzz.elsewhere import ARCHITECTURE
from tests.fuzz.texts import executed
from tests.fuzz.trial import draw_wish, fewer
from tests.patterns.reductions import reference, run
from tests.zoo import every
from tests.zoo.every import generate
from tests.zoo.further import FAMILIES, FIRST, FUNCTIONS, SPECIAL
from tests.zoo.generate import POINTS, SMALL, WAVE, Case
from tests.zoo.truth import Answer, check, compare

QUICK, FEW, MANY = 16, 6, 400
FURTHER = range(FIRST, FIRST + 8 * len(FUNCTIONS))  # in which each function has a kernel of its own
LAST = range(every.FIRST, every.FIRST + 48 * len(every.FAMILIES))


def each(name: str, quick: int = FEW, further: int = 0, last: int = 0) -> Any:
    """Seeds, of which a few are quick. further, last: so many of the later families have a quick one, too."""
    seeds = [*range(quick), *FURTHER[1 : 2 * further : 2], *LAST[1 : 2 * last : 2]]
    return pytest.mark.parametrize(
        name, [pytest.param(s, marks=() if s in seeds else pytest.mark.slow) for s in (*range(MANY), *FURTHER, *LAST)]
    )


@each("seed", QUICK, len(FAMILIES), len(every.FAMILIES))
def test_a_cpu_computes_what_the_function_says(seed: int) -> None:
    case = generate(seed)
    with executed(case.text, f"zoo_{seed}.py") as names:
        for size in (SMALL, WAVE) if seed % 8 == 0 else (SMALL,):
            given, grid = case.arguments(size)
            names.kernel(**given, grid=grid)
            check(case, names.kernel.python, given, given[case.written], grid)


@pytest.mark.slow_cases("1")
@each("seed", further=len(FAMILIES), last=1)
def test_plans_of_a_gpu_compute_what_the_function_says(seed: int) -> None:
    """Plans that are suggested, and random ones, run by the interpreter."""
    case = generate(seed)
    with executed(case.text, f"zoo_{seed}.py") as names:
        given, grid = tiny(case)
        arrays = [given[n] for n in names.kernel.signature.arrays]
        text = reference(names.kernel, arrays, grid)
        calls = names.kernel._calls
        environment = calls.subject.environment(calls.given(tuple(arrays), {"grid": grid}))
        many = 1 if seed < every.FIRST else 3
        for program in programs(text, environment, int(np.prod(grid)), Random(seed), many):
            found = run(program.kernels, names.kernel, arrays, grid)
            written = found[list(names.kernel.signature.arrays).index(case.written)]
            check(case, names.kernel.python, given, written, grid, points=6)


def programs(
    text: ir.Kernel, environment: dict[str, Any], points: int, rng: Random, many: int = 1
) -> Iterator[Program]:
    """With the default plan of many points, the first plan that is suggested, and so many random ones."""
    work = describe_work(text, points, CUDA)
    yield build_program(text, complete_plan(Plan(), Machine("cuda", 132), work.at(environment, points)), "cuda")
    plan = work.suggested and work.suggested.first(lambda plan: True)
    if plan is not None:
        yield build_program(text, plan.filled(NEUTRAL), "cuda")
    for _ in range(many):
        for wish in fewer(rng, draw_wish(rng, "cuda", text.pattern)):
            try:
                program = build_program(text, wish.filled(NEUTRAL), "cuda")
            except lw.PlanError:
                continue
            yield program
            break


@pytest.mark.parametrize("seed", [pytest.param(s, marks=() if s == LAST[1] else pytest.mark.slow) for s in LAST])
def test_the_compiler_of_a_gpu_takes_it(seed: int) -> None:
    """With the same plans."""
    case = generate(seed)
    with executed(case.text, f"zoo_{seed}.py") as names:
        given, grid = tiny(case)
        arrays = [given[n] for n in names.kernel.signature.arrays]
        calls = names.kernel._calls
        environment = calls.subject.environment(calls.given(tuple(arrays), {"grid": grid}))
        text = reference(names.kernel, arrays, grid)
        for program in programs(text, environment, int(np.prod(grid)), Random(seed)):
            for kernel in program.kernels:
                assert compile_cubin(emit_cuda(kernel, "zoo"), kernel.name, ARCHITECTURE).code


@pytest.mark.parametrize("seed", [pytest.param(s, marks=() if s == LAST[1] else pytest.mark.slow) for s in LAST])
def test_plans_of_a_cpu_compute_what_the_function_says(seed: int) -> None:
    """A random one."""
    case, rng = generate(seed), Random(seed)
    given, grid = case.arguments(SMALL)
    with executed(case.text, f"zoo_{seed}.py") as names:
        for wish in fewer(rng, draw_wish(rng, "cpu", names.kernel._calls.skeleton.pattern)):
            try:
                names.kernel(**given, grid=grid, plan=wish)
            except lw.PlanError:
                continue
            check(case, names.kernel.python, given, given[case.written], grid, points=6)
            return


@each("seed")
def test_every_size_has_a_default_plan(seed: int) -> None:
    """As calls have it, whatever the lengths are."""
    case = generate(seed)
    types = {n: a.dtype for n, a in tiny(generate(seed))[0].items()}
    with executed(case.text, f"zoo_{seed}.py") as names:
        for size in POINTS:
            shapes, grid = case.shapes(POINTS[size])
            arrays = [np.empty(shapes[n], types[n]) for n in names.kernel.signature.arrays]
            text = reference(names.kernel, arrays, grid)
            counts = dict(zip(map(extent_of, names.kernel.signature.indices), grid, strict=True))
            lengths = {length_of(n, d): m for n, s in shapes.items() for d, m in enumerate(s)}
            points = int(np.prod(grid))
            work = describe_work(text, points, CUDA).at(counts | lengths, points)
            build_program(text, complete_plan(Plan(), Machine("cuda", 132), work), "cuda", between=False)


@each("seed")
def test_it_is_explained(seed: int) -> None:
    case = generate(seed)
    with executed(case.text, f"zoo_{seed}.py") as names:
        given, grid = case.arguments(SMALL)
        explanation = names.kernel.compile(**given, grid=grid).explain()
        assert "internal error" not in str(explanation)


def test_every_function_of_the_language_is_drawn() -> None:
    assert set(FUNCTIONS) == {*SCALAR_FUNCTIONS, "select"}
    drawn = "".join(generate(seed).text for seed in FURTHER)
    assert all(f.split("(")[0] + "(" in drawn for f in FUNCTIONS.values())


@pytest.mark.parametrize(
    "part",
    [
        "s = s or (a", "s = s and (a", "s = s | (a", "s = s & (a", "s = s ^ (a", " and b[k, x]:", "break", "lw.min(s, lw.max(a", "Array3[lw.bool]", "Array2[lw.u32]", "Array2[lw.i64]",
        "for k in range(a.shape[1]):\n        for x", "    for o in range(b.shape[0]):\n                r[o, y, x]",
        "for u in range(3):\n        for v", "    for c in range(8):\n", "range(7)", "range(-3, 4)", "range(0, 7)", "lw.log(s)",
        "lw.log1p(lw.exp(", "def kernel(x: lw.index, a: lw.Array1", "def kernel(z: lw.index, a", "continue",
    ],
)  # fmt: skip
def test_later_families_draw_all_of_it(part: str) -> None:
    assert any(part in generate(seed).text for seed in LAST)


@pytest.mark.parametrize("value", SPECIAL, ids=str)
def test_numbers_that_are_not_ordinary_are_drawn(value: float) -> None:
    """Each in many kernels, and equal numbers in all."""
    arrays = [case.made(64)[0]["a"] for case in map(generate, FURTHER) if case.family == "special"]
    bits = np.float32(value).view(np.uint32)
    assert sum(bool((a.view(np.uint32) == bits).any()) for a in arrays) >= len(arrays) // 8
    assert all(len(np.unique(a[np.isfinite(a)])) < a.size for a in arrays)


@pytest.mark.parametrize(
    ("wanted", "found"), [(0.0, -0.0), (np.nan, 1.0), (1.0, np.nan), (np.inf, -np.inf), (np.inf, 1e30), (1.0, np.inf)]
)
def test_another_number_is_told_from_it(wanted: float, found: float) -> None:
    case = next(c for c in map(generate, FURTHER) if c.signed)
    given, place = tiny(case)[0], (np.array([0]), np.array([0]))
    told = [Answer((0, 0), place, np.array([wanted]))]
    assert compare(case, told, given, np.full((1, 1), wanted, np.float32)) == 0.0
    with pytest.raises(AssertionError, match=f"seed {case.seed}"):
        compare(case, told, given, np.full((1, 1), found, np.float32))


def tiny(case: Case) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Arrays of some dozen points, which an interpreter can run."""
    return case.made(36, least=0.0)

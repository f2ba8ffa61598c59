"""Naive kernels of every family are right with default and random legal plans, and explained without an internal error."""

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
from lanewise.ir import nodes as ir
from lanewise.language.target import CUDA, Machine
from lanewise.patterns.tables.names import extent_of, length_of
from lanewise.planning.plan import NEUTRAL, Plan
from tests.fuzz.texts import executed
from tests.fuzz.trial import draw_wish, fewer
from tests.patterns.reductions import reference, run
from tests.zoo.generate import POINTS, SMALL, WAVE, Case, generate
from tests.zoo.truth import check

QUICK, FEW, MANY = 16, 6, 400


def each(name: str, quick: int = FEW) -> Any:
    """Seeds, of which a few are quick."""
    return pytest.mark.parametrize(
        name, [pytest.param(s, marks=() if s < quick else pytest.mark.slow) for s in range(MANY)]
    )


@each("seed", QUICK)
def test_a_cpu_computes_what_the_function_says(seed: int) -> None:
    case = generate(seed)
    with executed(case.text, f"zoo_{seed}.py") as names:
        for size in (SMALL, WAVE) if seed % 8 == 0 else (SMALL,):
            given, grid = case.arguments(size)
            names.kernel(**given, grid=grid)
            check(case, names.kernel.python, given, given[case.written], grid)


@pytest.mark.slow_cases("1")
@each("seed")
def test_plans_of_a_gpu_compute_what_the_function_says(seed: int) -> None:
    """Plans that are suggested, and random ones, run by the interpreter."""
    case = generate(seed)
    with executed(case.text, f"zoo_{seed}.py") as names:
        given, grid = tiny(case)
        arrays = [given[n] for n in names.kernel.signature.arrays]
        text = reference(names.kernel, arrays, grid)
        calls = names.kernel._calls
        environment = calls.subject.environment(calls.given(tuple(arrays), {"grid": grid}))
        for program in programs(text, environment, int(np.prod(grid)), Random(seed)):
            found = run(program.kernels, names.kernel, arrays, grid)
            written = found[list(names.kernel.signature.arrays).index(case.written)]
            check(case, names.kernel.python, given, written, grid, points=6)


def programs(text: ir.Kernel, environment: dict[str, Any], points: int, rng: Random) -> Iterator[Program]:
    """With the default plan of many points, the first plan that is suggested, and a random one."""
    work = describe_work(text, points, CUDA)
    yield build_program(text, complete_plan(Plan(), Machine("cuda", 132), work.at(environment, points)), "cuda")
    plan = work.suggested and work.suggested.first(lambda plan: True)
    if plan is not None:
        yield build_program(text, plan.filled(NEUTRAL), "cuda")
    for wish in fewer(rng, draw_wish(rng, "cuda", text.pattern)):
        try:
            yield build_program(text, wish.filled(NEUTRAL), "cuda")
        except lw.PlanError:
            continue
        return


@each("seed")
def test_every_size_has_a_default_plan(seed: int) -> None:
    """As calls have it, whatever the lengths are."""
    case = generate(seed)
    with executed(case.text, f"zoo_{seed}.py") as names:
        for size in POINTS:
            shapes, grid = case.shapes(POINTS[size])
            arrays = [np.empty(shapes[n], np.float32) for n in names.kernel.signature.arrays]
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


def tiny(case: Case) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Arrays of some dozen points, which an interpreter can run."""
    rng = np.random.default_rng(case.seed)
    shapes, grid = case.shapes(36)
    given = {n: rng.random(shape, np.float32) for n, shape in shapes.items()}
    given[case.written][...] = np.nan
    return given, grid

"""Threads with several points, tiles in shared memory, wide accesses: every stage computes what the reference does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import build_program
from lanewise.compiler.work import describe_work
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_kernel
from lanewise.ladders.compiler_kernels import batched
from lanewise.language.target import Machine
from lanewise.launch.support import compile_kernel
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.support.errors import PlanError
from tests.patterns.test_threadwise import arguments, check, copies
from tests.patterns.threadwise import run_stage, stages
from tests.patterns.threadwise_kernels import BY_NAME, CASES, Case

Wish = dict[str, Any]
TWO: Wish = {"block": 32, "across": 8, "rows": 2, "targets": 2}
PLANS: dict[str, Wish] = {
    "points": TWO,
    "four": {"block": 32, "across": 4, "rows": 1, "targets": 4},
    "tile": {**TWO, "tile": 4},
    "ahead": {**TWO, "tile": 4, "prefetch": "registers"},
    "copied": {**TWO, "tile": 4, "prefetch": "async"},
    "copied, three": {**TWO, "targets": 4, "tile": 2, "prefetch": "async3", "unroll": 0},
    "copied, four": {**TWO, "tile": 2, "prefetch": "async4", "unroll": 2},
    "unrolled": {**TWO, "targets": 4, "tile": 4, "unroll": 0},
    "turned": {**TWO, "neighbours": "first", "tile": 4},
    "turned, wide": {**TWO, "targets": 4, "neighbours": "first", "tile": 2, "unroll": 2},
    "panels": {**TWO, "order": "panels"},
    "diagonal": {**TWO, "order": "diagonal"},
    "layers": {**TWO, "layers": 2},
    "eight": {"block": 32, "across": 2, "rows": 2, "targets": 8, "adjacent": 8, "tile": 4, "unroll": 0},
}
LINE: dict[str, Wish] = {"copied": {"block": 32, "tile": 4, "prefetch": "async3"},
        "points": {"block": 32, "targets": 2}, "tile": {"block": 32, "targets": 2, "tile": 4}, "ahead": {"block": 32, "tile": 4, "prefetch": "registers"},
        "unrolled": {"block": 32, "targets": 4, "tile": 4, "unroll": 0}}  # fmt: skip
REFUSED = (
    "only the tiles of a single loop are loaded ahead",
    "only the tiles of loops are copied ahead",
    "elements of i are i64",
    "no loop of it is cut into tiles",
    "no elements are read by several threads of a block in a loop that all threads share, or apart in memory",
    "decides where it reads or how often, and points beyond the end read nothing there",
)


def plan_of(name: str, rank: int) -> Plan | None:
    if rank == 1:
        return Plan(**LINE[name]) if name in LINE else None
    return None if name == "layers" and rank < 3 else Plan(**PLANS[name])


def stages_of(reference: ir.Kernel, plan: Plan, multiple: int) -> tuple[list[ir.Kernel], str]:
    """The kernel of every stage, up to the pass that refuses the plan; and what it says."""
    wide = replace(reference, arrays=tuple(replace(a, multiple=multiple) for a in reference.arrays))
    found: list[ir.Kernel] = []
    try:
        build_program(wide, plan.filled(NEUTRAL), "cuda", lambda name, kernel: found.append(kernel))
    except PlanError as error:
        return found, str(error)
    return found, ""


def multiple_of(given: dict[str, Any]) -> int:
    lengths = [a.shape[-1] for a in given.values() if isinstance(a, np.ndarray)]
    sizes = [a.itemsize for a in given.values() if isinstance(a, np.ndarray)]
    return next((m for m in (4, 2) if all(n % m == 0 for n in lengths) and m * max(sizes) <= 16), 1)


def agree(case: Case, name: str, sizes: tuple[int, ...], *, every: bool = False) -> None:
    given, grid = arguments(case, sizes)
    rank = 1 if np.isscalar(grid) else len(grid)
    plan = plan_of(name, rank)
    if plan is None:
        pytest.skip("a plan for other index spaces")
    compiled = case.kernel.compile(**given, grid=grid)
    stages, refused = stages_of(compiled.reference, plan, multiple_of(given))
    assert not refused or refused.endswith(REFUSED)
    for stage in stages if every else stages[-1:]:
        changed = copies(given)
        run_stage(stage, changed, compiled.environment)
        if case.tolerance:
            for array, value in case.expect(**copies(given)).items():
                np.testing.assert_allclose(changed[array], value, rtol=50 * case.tolerance, atol=50 * case.tolerance)
        else:
            check(case, changed, given)


@pytest.mark.slow_cases("convolve-copied, four")
@pytest.mark.grid(every=40)
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_every_plan_means_the_same(case: Case, name: str) -> None:
    agree(case, name, case.sizes, every=case.name in ("matmul", "convolve", "transpose"))


MATRICES = [(1, 1, 1), (8, 4, 16), (16, 8, 32), (17, 9, 37), (4, 0, 3), (0, 3, 2)]


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("sizes", MATRICES)
@pytest.mark.parametrize(
    "name", ["tile", "ahead", "copied", "copied, three", "copied, four", "unrolled", "turned", "eight"]
)
def test_matrices_of_all_shapes(name: str, sizes: tuple[int, ...]) -> None:
    agree(BY_NAME["matmul"], name, sizes)


@pytest.mark.slow_cases("copied, four-sizes3")
@pytest.mark.grid(every=40)
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (16, 16, 4, 4), (16, 16, 8, 4), (18, 33, 5, 7), (3, 4, 0, 2)])
@pytest.mark.parametrize("name", ["tile", "copied", "copied, three", "copied, four", "unrolled", "eight"])
def test_windows_of_all_shapes(name: str, sizes: tuple[int, ...]) -> None:
    agree(BY_NAME["convolve"], name, sizes)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("sizes", [(1, 1), (32, 32), (16, 48), (33, 17), (0, 5)])
@pytest.mark.parametrize("name", ["points", "tile", "turned", "turned, wide"])
def test_transposes_of_all_shapes(name: str, sizes: tuple[int, ...]) -> None:
    agree(BY_NAME["transpose"], name, sizes)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize(
    "case",
    [c for c in CASES if c.name in ("matmul", "convolve", "transpose", "smooth", "laplace")],
    ids=lambda c: c.name,
)
@pytest.mark.parametrize("multiple", [1, 2])
def test_the_text_compiles(case: Case, name: str, multiple: int) -> None:
    given, grid = arguments(case)
    plan = plan_of(name, len(grid))
    if plan is None:
        pytest.skip("a plan for other index spaces")
    reference = case.kernel.compile(**given, grid=grid).reference
    wide = replace(reference, arrays=tuple(replace(a, multiple=multiple) for a in reference.arrays))
    if stages_of(wide, plan, multiple)[1]:
        return  # which test_every_plan_means_the_same is about
    executable = compile_kernel(wide, plan.filled(NEUTRAL), "cuda", arch="sm_90")
    assert all(c.resources.registers for c in executable.cubins)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize(("name", "sizes"), [("laplace", (5, 26, 50)), ("smooth", (26, 50)), ("green", (9, 37))])
@pytest.mark.parametrize("plan", ["points", "layers", "panels", "diagonal"])
def test_edges_that_users_test_for_cost_nothing_inside(name: str, sizes: tuple[int, ...], plan: str) -> None:
    """Blocks in the inside have no test, those at the edges have all of them."""
    agree(BY_NAME[name], plan, sizes)
    given, grid = arguments(BY_NAME[name], sizes)
    reference = BY_NAME[name].kernel.compile(**given, grid=grid).reference
    if name != "green" and (wish := plan_of(plan, len(sizes))) is not None:
        split = stages_of(reference, wish, 1)[0][-1].body[-1]
        assert isinstance(split, ir.If)
        assert not any(isinstance(s, ir.If) for s in split.then)
        assert any(isinstance(s, ir.If) for s in split.otherwise)


def test_the_passes_of_a_matrix_product(golden: Any) -> None:
    """The text of each stage: points, tiles, and accesses of 8 bytes."""
    given, grid = arguments(BY_NAME["matmul"], (8, 8, 32))
    reference = BY_NAME["matmul"].kernel.compile(**given, grid=grid).reference
    wide = replace(reference, arrays=tuple(replace(a, multiple=2) for a in reference.arrays))
    plan = Plan(block=32, across=8, rows=1, targets=2, tile=4, prefetch="registers", unroll=2)
    found = stages(wide, plan)
    for name in ("thread merging", "shared-memory tiles", "unrolling", "wide accesses"):
        golden(name.replace(" ", "_"), print_kernel(found[name]))


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        (Plan(block=64, across=48), "the threads of a block make no rows of 48"),
        (Plan(block=64, across=8, down=4), "8 rows of threads are not divided by 4"),
        (Plan(block=64, layers=2), "the index space has 2 indices"),
        (Plan(block=64, targets=6, adjacent=4), "6 points are no groups of 4 neighbours"),
        (Plan(block=64, targets=2, prefetch="registers"), "only tiles are loaded ahead; choose a tile"),
        (Plan(block=64, targets=2, prefetch="async"), "only tiles are loaded ahead; choose a tile"),
    ],
)
def test_what_does_not_fit_is_refused(wish: Plan, message: str) -> None:
    given, grid = arguments(BY_NAME["matmul"])
    reference = BY_NAME["matmul"].kernel.compile(**given, grid=grid).reference
    with pytest.raises(PlanError, match=message):
        build_program(reference, wish.filled(NEUTRAL), "cuda")


def test_tiles_of_three_dimensions_are_not_loaded_ahead() -> None:
    a, c = np.zeros((5, 16, 16), np.float32), np.zeros((5, 16, 16), np.float32)
    reference = batched.compile(a, a, c, grid=c.shape).reference
    tiles = Plan(block=64, across=8, down=8, targets=2, rows=2, tile=16)
    assert build_program(reference, tiles.filled(NEUTRAL), "cuda").kernels
    with pytest.raises(PlanError, match="a tile of 3 dimensions has no second half that could be loaded ahead"):
        build_program(reference, replace(tiles, prefetch="registers").filled(NEUTRAL), "cuda")


@pytest.mark.parametrize("wish", [Plan(parts=2, block=256), Plan(parts=8, slices=4, block=64)])
def test_points_of_three_indices_have_no_parts(wish: Plan) -> None:
    """What the parts gather would have four."""
    a, c = np.zeros((2, 16, 4096), np.float32), np.zeros((2, 16, 16), np.float32)
    given = {"a": a, "b": a.reshape(2, 4096, 16), "c": c}
    reference = batched.compile(**given, grid=c.shape).reference
    with pytest.raises(
        PlanError, match="each part leaves a value for every point, in an array of one dimension more, and arrays"
    ):
        build_program(reference, wish.filled(NEUTRAL), "cuda")


def test_the_default_plan_of_three_indices_has_no_parts() -> None:
    """Few points and long loops, of which parts would be made."""
    a, c = np.zeros((2, 4, 40_000), np.float32), np.zeros((2, 4, 4), np.float32)
    compiled = batched.compile(a, a.reshape(2, 40_000, 4), c, grid=c.shape)
    work = describe_work(compiled.reference, c.size)
    rounds = None if work.rounds is None else work.rounds.at(compiled.environment)
    plan = complete_plan(None, Machine("cuda", 132), replace(work, rounds=rounds))
    assert plan.slices > plan.parts == 1
    assert build_program(compiled.reference, plan, "cuda").kernels


def test_only_points_have_these_decisions() -> None:
    given, grid = arguments(BY_NAME["matmul"])
    with pytest.raises(PlanError, match="only a GPU has blocks of threads"):
        BY_NAME["matmul"].kernel(**given, grid=grid, plan=Plan(down=2))

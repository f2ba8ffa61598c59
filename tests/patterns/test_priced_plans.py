"""No default plan of a kernel that nobody chose is far behind a plain one by the model; equal calls get equal plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.analysis.length import own_length
from lanewise.compiler.pipeline import Program, build_program
from lanewise.explanation.calls import call_subject
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements
from lanewise.models.devices import table_model
from lanewise.models.predict import predict
from lanewise.patterns.threadwise import candidates, priced, round_code
from lanewise.patterns.threadwise.candidates import ACCESS
from lanewise.patterns.threadwise.plans import LOOPS
from lanewise.planning.plan import NEUTRAL, CompletePlan
from lanewise.support.errors import PlanError
from tests.fuzz.texts import executed
from tests.zoo import every
from tests.zoo.generate import generate

MOST_TEXT = 30_000  # a quarter of a second, or a third where others use the machine
PLAIN = lw.Plan(block=256).filled(NEUTRAL)
LONG = """@lw.threadwise
def kernel(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(y + 1):
        t = a[y, k]
{rounds}
        s += t
    r[y, x] = s
"""
TRIANGLE = """@lw.threadwise
def kernel(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 1e30
    for k in range(y + 1):
        s = lw.min(s, {a} + {b})
    r[y, x] = s
"""


def subject_of(kernel: Any, given: dict[str, Any], grid: tuple[int, ...]) -> Any:
    return call_subject(kernel, (), {**given, "grid": grid}, "cuda", table_model())[0]


def seconds(subject: Any, plan: CompletePlan) -> float:
    try:
        program = build_program(subject.reference, plan, "cuda", between=False)
    except PlanError:
        return np.inf
    return predict(program, subject.environment, subject.model, in_graph=True).seconds


def length_of(program: Program) -> int:
    """Its operations and statements, an access as `ACCESS` of them: what a model goes through."""
    return sum(
        own_length(k) + ACCESS * sum(isinstance(s, ir.Load | ir.Store | ir.CopyLanes) for s in statements(k.body))
        for k in program.kernels
    )


def text(subject: Any, plan: CompletePlan) -> int:
    try:
        return length_of(build_program(subject.reference, plan, "cuda", between=False))
    except PlanError:
        return 0


def check(subject: Any, others: tuple[lw.Plan, ...] = priced.OTHERS) -> None:
    default = seconds(subject, subject.plan)
    for other in others:  # 1.2: sizes are rounded to powers of two for the choice
        least = seconds(subject, other.filled(NEUTRAL))
        assert default <= 1.2 * max(priced.SURE * least, least + priced.WORTH), (subject.plan, other)


@pytest.mark.parametrize(
    "seed", [pytest.param(s, marks=() if s in (417, 569, 592) else pytest.mark.slow) for s in range(401, 601)]
)
def test_no_default_is_far_behind_a_plain_plan(seed: int) -> None:
    case = generate(seed)
    with executed(case.text, f"zoo_{seed}.py") as names:
        given, grid = case.arguments("full")
        subject = subject_of(names.kernel, given, grid)
        if text(subject, subject.plan) + sum(text(subject, o.filled(NEUTRAL)) for o in priced.OTHERS) <= priced.MOST:
            check(subject)


@pytest.mark.parametrize(
    "seed", [pytest.param(s, marks=() if s in (200032, 200064) else pytest.mark.slow) for s in range(200_000, 200_100)]
)
def test_nor_is_a_tile_longer_than_all_loops(seed: int) -> None:
    case = every.generate(seed)
    with executed(case.text, f"zoo_{seed}.py") as names:
        given, grid = case.arguments("full")
        subject = subject_of(names.kernel, given, grid)
        suggested = subject.work.suggested
        if suggested is not None and suggested.is_short(subject.plan) and "short" in suggested.others:
            check(subject, LOOPS["short"])


def test_points_of_much_code_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """8 x 8 log-sum-exps in a tile of 8 are 320 KB of instructions."""
    case = every.generate(200_036)
    with executed(case.text, "exponents.py") as names:
        given, grid = case.arguments("full")
        plan = subject_of(names.kernel, given, grid).plan
        assert plan.tile > 0
        assert plan.targets * plan.rows == 16
        monkeypatch.setattr(round_code, "FAR_TOO_MUCH_CODE", 1 << 20)
    with executed(case.text, "exponents_again.py") as names:
        plan = subject_of(names.kernel, given, grid).plan
        assert plan.targets * plan.rows == 64


@pytest.mark.parametrize("size", ["small", "wave"])
@pytest.mark.parametrize(
    "seed", [pytest.param(s, marks=() if s in (435, 440, 497) else pytest.mark.slow) for s in range(401, 601)]
)
def test_nor_is_that_of_a_call_too_small_for_other_plans(seed: int, size: str) -> None:
    case = generate(seed)
    with executed(case.text, f"zoo_{seed}.py") as names:
        given, grid = case.arguments(size)
        subject = subject_of(names.kernel, given, grid)
        if subject.plan == PLAIN and any(isinstance(s, ir.For) for s in statements(subject.reference.body)):
            check(subject, LOOPS["small"])


@pytest.mark.parametrize("n", [100, 1000, 4096])
@pytest.mark.parametrize("a", ["a[y, k]", "a[k, y]"])
@pytest.mark.parametrize("b", ["b[x, k]", "b[k, x]"])
def test_triangles_are_read_as_they_lie(a: str, b: str, n: int) -> None:
    """In tiles, where there are blocks enough."""
    with executed(TRIANGLE.format(a=a, b=b), "triangle.py") as names:
        arrays = {m: np.zeros((n, n), np.float32) for m in "abr"}
        subject = subject_of(names.kernel, arrays, (n, n))
        check(subject)
        assert (subject.plan.tile > 0) == (n >= 1000)


def test_calls_of_nearly_one_size_get_one_plan() -> None:
    """Whichever comes first; and what was priced once is not priced again."""
    with executed(TRIANGLE.format(a="a[y, k]", b="b[x, k]"), "triangle.py") as names:
        for sizes in ((3000, 3001, 3100), (3100, 3001, 3000)):
            plans = {
                n: subject_of(names.kernel, {m: np.zeros((n, n), np.float32) for m in "abr"}, (n, n)).plan
                for n in sizes
            }
            assert len(set(plans.values())) == 1


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, Any, Any], tuple[int, int]]:
    """The text of all programs that are priced for the plan of a call, and how many are."""
    lengths: list[int] = []
    found = priced.predict

    def counted(program: Program, *given: Any, **named: Any) -> Any:
        lengths.append(length_of(program))
        return found(program, *given, **named)

    monkeypatch.setattr(priced, "predict", counted)

    def run(kernel: Any, given: dict[str, Any], grid: tuple[int, ...]) -> tuple[int, int]:
        lengths.clear()
        subject_of(kernel, given, grid)
        return sum(lengths), len(lengths)

    return run


@pytest.mark.parametrize(
    ("seed", "size"),
    [
        pytest.param(s, size, marks=() if s in (200_005, 200_064, 200_134) else pytest.mark.slow)
        for s in (*range(1, 61), *range(100_001, 100_031), *range(200_000, 200_150))
        for size in ("wave", "full")
    ],
)
def test_little_text_is_priced_for_any_choice(watched: Any, seed: int, size: str) -> None:
    case = every.generate(seed)
    with executed(case.text, f"zoo_{seed}.py") as names:
        given, grid = case.arguments(size)
        whole, several = watched(names.kernel, given, grid)
        assert whole <= MOST_TEXT
        assert several <= 1 + max(map(len, (*LOOPS.values(), priced.OTHERS)))


@pytest.mark.parametrize("rounds", [1, 20, pytest.param(60, marks=pytest.mark.slow)])
def test_nor_for_long_texts(watched: Any, rounds: int) -> None:
    """However long a user's function is; several plans of a short one are priced."""
    body = "\n".join(f"        t = lw.max(t * b[y + {n}, k], a[x, k] - t)" for n in range(rounds))
    with executed(LONG.format(rounds=body), "long.py") as names:
        arrays = {m: np.zeros((1024, 1024), np.float32) for m in "abr"}
        whole, several = watched(names.kernel, arrays, (700, 1000))
        assert whole <= MOST_TEXT
        assert rounds > 1 or several > 1


def test_a_plan_is_built_once_to_see_whether_it_is_legal_and_to_price_it(monkeypatch: pytest.MonkeyPatch) -> None:
    merged: list[CompletePlan] = []
    found = candidates.staged

    def counted(kernel: ir.Kernel, plan: CompletePlan, *given: Any) -> Any:
        merged.append(plan)
        return found(kernel, plan, *given)

    monkeypatch.setattr(candidates, "staged", counted)
    for seed in (200_003, 200_032, 200_064):
        case = every.generate(seed)
        with executed(case.text, f"zoo_{seed}.py") as names:
            given, grid = case.arguments("full")
            subject_of(names.kernel, given, grid)
        assert merged
        assert len(merged) == len(set(merged))
        merged.clear()


def test_the_same_call_gets_the_same_plan_whatever_was_priced_before() -> None:
    """What is known already costs nothing, and decides nothing."""
    case = every.generate(200_032)
    plans: list[CompletePlan] = []
    for sizes in (("wave", "full"), ("full", "wave", "full")):
        with executed(case.text, "whatever.py") as names:
            found = [subject_of(names.kernel, *case.arguments(size)).plan for size in sizes]
            plans.append(found[-1])
    assert plans[0] == plans[1]


def test_what_takes_long_to_build_is_not_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[CompletePlan] = []
    monkeypatch.setattr(priced, "_seconds", lambda kernel, plan, sizes: asked.append(plan) or 1.0)
    for most, many in ((priced.MOST, True), (1, False)):
        monkeypatch.setattr(priced, "MOST", most)
        with executed(TRIANGLE.format(a="a[y, k]", b="b[k, x]"), f"triangle_{most}.py") as names:
            asked.clear()
            subject_of(names.kernel, {m: np.zeros((2048, 2048), np.float32) for m in "abr"}, (2048, 2048))
            assert bool(asked) == many
            assert len(asked) == len(set(asked))


def test_sizes_are_rounded_to_powers_of_two() -> None:
    found = {n: priced._rounded(n) for n in (0, 1, 3, 64, 65, 1000, 1500, -1000, 0.5)}
    assert found == {0: 0, 1: 1, 3: 3, 64: 64, 65: 64, 1000: 1024, 1500: 2048, -1000: -1024, 0.5: 1.0}


@pytest.mark.cuda
@pytest.mark.parametrize("a", ["a[y, k]", "a[k, y]"])
@pytest.mark.parametrize("b", ["b[x, k]", "b[k, x]"])
def test_triangles_on_a_gpu(a: str, b: str) -> None:
    n = 300
    rng = np.random.default_rng(1)
    one, two = (rng.normal(size=(n, n)).astype(np.float32) for _ in range(2))
    with executed(TRIANGLE.format(a=a, b=b), "triangle.py") as names, lw.device("cuda"):
        import cupy as cp

        r = cp.zeros((n, n), np.float32)
        names.kernel(cp.asarray(one), cp.asarray(two), r, grid=(n, n))
        left, right = (one if a == "a[y, k]" else one.T), (two.T if b == "b[x, k]" else two)
        wanted = [np.min(left[y, : y + 1, None] + right[: y + 1], axis=0) for y in range(n)]
        np.testing.assert_array_equal(r.get(), np.array(wanted))

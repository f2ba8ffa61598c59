"""Whether a plan is legal is read off a kernel before its rounds are written out, and is what building it says."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

import lanewise as lw
from lanewise.analysis.length import length
from lanewise.compiler.pipeline import finished
from lanewise.explanation.calls import call_subject
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import as_it_is
from lanewise.ir.shared import array_bytes, shared_bytes
from lanewise.language.target import CUDA
from lanewise.models.devices import table_model
from lanewise.passes.points import unrolling
from lanewise.passes.points.lengths import length_after
from lanewise.passes.thread_mapping import MAX_SHARED_BYTES
from lanewise.patterns.threadwise import candidates, plans, priced
from lanewise.patterns.threadwise.candidates import Candidates
from lanewise.patterns.threadwise.merged import StagedKernel, staged
from lanewise.planning.limits import MOST_LENGTH
from lanewise.planning.plan import NEUTRAL, CompletePlan
from lanewise.support.errors import PlanError
from tests.fuzz.texts import executed
from tests.zoo import every

FAMILIES = (
    plans.PRODUCTS, plans.BATCHES, plans.CHANNELS, plans.WINDOWS, plans.TURNED, plans.APART, plans.NEAR, plans.LAYERS,
    plans.STRIDED, plans.STREAMS, plans.LOOPS["short"], plans.LOOPS["small"],
)  # fmt: skip
SUGGESTED = tuple(dict.fromkeys(p for family in FAMILIES for p in family if p.slices is None))
# long ones, windows in tiles, products in rings, edges, loops in any order
SEEDS = (1, 35, 134, 200_020, 200_064, 200_096)
# of tens of thousands of operations
LONG = (200_005, 200_024, 200_124, 200_134)
BROAD = (*range(1, 401, 7), *range(100_000, 100_096, 5), *range(200_000, 200_192))
SOME = [pytest.param(s, marks=() if s in SEEDS else pytest.mark.slow) for s in sorted({*SEEDS, *BROAD})]
MANY = [
    pytest.param(s, size, marks=() if (s in (*SEEDS, *LONG) and size == "full") or s == 200_005 else pytest.mark.slow)
    for s in sorted({*SEEDS, *LONG, *BROAD})
    for size in ("full", "wave", "small")
]


def subject_of(kernel: Any, given: dict[str, Any], grid: tuple[int, ...]) -> Any:
    return call_subject(kernel, (), {**given, "grid": grid}, "cuda", table_model())[0]


@contextmanager
def candidates_of(seed: int) -> Generator[Candidates | None]:
    """What `suggested` asks about the plans of a kernel of the zoo."""
    made: list[Candidates] = []
    found = plans.Candidates
    case = every.generate(seed)
    try:
        plans.Candidates = lambda *given: made.append(found(*given)) or made[-1]  # type: ignore[assignment,misc]
        with executed(case.text, f"zoo_{seed}.py") as names:
            subject_of(names.kernel, *case.arguments("small"))
            yield made[0] if made else None
    finally:
        plans.Candidates = found  # type: ignore[misc]


def drawn(rng: random.Random) -> CompletePlan:
    """A plan that nobody suggests, of no more points than compilers take."""
    tile = rng.choice((0, 3, 4, 8, 16))
    return lw.Plan(
        block=rng.choice((32, 64, 128, 256)),
        across=rng.choice((0, 4, 16, 32)),
        rows=rng.choice((1, 2, 4)),
        layers=rng.choice((1, 1, 2)),
        targets=rng.choice((1, 2, 3, 4)),
        adjacent=rng.choice((0, 1)),
        neighbours=rng.choice(("last", "last", "first")),
        tile=tile,
        prefetch=rng.choice(("none", "none", "registers", "async")) if tile else "none",
        unroll=rng.choice((0, 1, 2, 4)) if tile else 1,
    ).filled(NEUTRAL)


def builds(normal: ir.Kernel, plan: CompletePlan) -> bool:
    """Whether compilers can take what is made of a kernel, by making it."""
    try:
        before = staged(normal, plan, as_it_is)
        if plan.unroll != 1 and unrolling.legal(before.kernel, plan.unroll) is not None:
            return False
        shaped = [before.written_out(n, as_it_is) for n in {1, plan.unroll}]
        programs = [finished((k,), plan, CUDA) for k in shaped]
    except PlanError:
        return False
    return all(length(k) <= MOST_LENGTH for k in shaped) and all(
        shared_bytes(k) <= MAX_SHARED_BYTES for p in programs for k in p
    )


@pytest.mark.parametrize("seed", SOME)
def test_a_length_is_known_before_anything_is_written_out(seed: int) -> None:
    """That of rounds to the operation; of joined accesses one that they never exceed. And so is shared memory."""
    rng, looked = random.Random(seed), 0
    with candidates_of(seed) as found:
        if found is None:
            return
        some = [p.filled(NEUTRAL) for p in rng.sample(SUGGESTED, 4)] + [drawn(rng) for _ in range(4)]
        for plan in some:
            try:
                before = staged(found._normal, plan, as_it_is)
            except PlanError:
                continue
            kernel = before.kernel
            if length(kernel) > 2 * MOST_LENGTH or (
                plan.unroll != 1 and unrolling.legal(kernel, plan.unroll) is not None
            ):
                continue
            looked += 1
            written = kernel if plan.unroll == 1 else unrolling.apply(kernel, plan.unroll, joined=before.joined)
            assert length_after(kernel, plan.unroll, joined=before.joined) == length(written), plan
            shaped = before.written_out(plan.unroll, as_it_is)
            assert length(shaped) <= before.most_length(plan.unroll), plan
            taken = array_bytes(a for a in kernel.arrays if a.space == "shared")
            assert taken == sum(map(shared_bytes, finished((shaped,), plan, CUDA))), plan
    assert looked > 0 or seed not in SEEDS


@pytest.mark.parametrize("seed", SOME)
def test_what_is_said_to_be_legal_is_what_builds(seed: int) -> None:
    rng = random.Random(-seed)
    with candidates_of(seed) as found:
        if found is None:
            return
        some = [p.filled(NEUTRAL) for p in rng.sample(SUGGESTED, 3)] + [drawn(rng) for _ in range(3)]
        for plan in some:
            assert found.is_legal(plan) == builds(found._normal, plan), plan


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often the rounds of which kernels were written out, or left as they are, to be looked at."""
    times: list[int] = []
    found = StagedKernel.written_out

    def counted(self: StagedKernel, unroll: int, checked: Any) -> ir.Kernel:
        times.append(unroll)
        return found(self, unroll, checked)

    monkeypatch.setattr(StagedKernel, "written_out", counted)
    return times


@pytest.mark.parametrize(("seed", "size"), MANY)
def test_no_rounds_are_written_out_to_choose_a_plan(written: list[int], seed: int, size: str) -> None:
    """And kernels are finished for the plans that are priced alone."""
    case = every.generate(seed)
    with executed(case.text, f"zoo_{seed}.py") as names:
        subject_of(names.kernel, *case.arguments(size))
    assert set(written) <= {1}
    assert len(written) <= 1 + max(map(len, (*plans.LOOPS.values(), priced.OTHERS)))


@pytest.mark.parametrize("seed", [200_003, 200_024, 200_124])
def test_what_is_not_priced_is_not_kept(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    asked: list[CompletePlan] = []
    found = priced._seconds

    def watched(given: Candidates, plan: CompletePlan, sizes: dict[str, Any]) -> float:
        asked.append(plan)
        return found(given, plan, sizes)

    monkeypatch.setattr(priced, "_seconds", watched)
    with candidates_of(seed) as made:
        assert made is not None
        assert set(made._programs) <= set(asked)
        assert made._staged is None


@pytest.mark.parametrize(
    "seed",
    [pytest.param(s, marks=() if s == 200_032 else pytest.mark.slow) for s in range(200_000, 200_150)],
)
def test_a_plan_does_not_depend_on_the_sizes_that_came_before(seed: int) -> None:
    case, sizes = every.generate(seed), ["small", "wave", "full"]
    alone: dict[str, CompletePlan] = {}
    for size in sizes:
        with executed(case.text, f"alone_{seed}.py") as names:
            alone[size] = subject_of(names.kernel, *case.arguments(size)).plan
    for order in (sizes, sizes[::-1], [*sizes[1:], sizes[0]]):
        with executed(case.text, f"together_{seed}.py") as names:
            assert [subject_of(names.kernel, *case.arguments(size)).plan for size in order] == [alone[s] for s in order]


def test_a_kernel_of_any_length_is_refused_before_it_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the bytes of its tiles, where these are too many."""
    refused: list[str] = []
    found: Callable[..., StagedKernel] = candidates.staged

    def watched(*given: Any) -> StagedKernel:
        try:
            return found(*given)
        except PlanError as e:
            refused.append(str(e))
            raise

    monkeypatch.setattr(candidates, "staged", watched)
    case = every.generate(200_124)
    with executed(case.text, "long_window.py") as names:
        subject_of(names.kernel, *case.arguments("full"))
    assert len(refused) == 2
    assert all("bytes" in text for text in refused)

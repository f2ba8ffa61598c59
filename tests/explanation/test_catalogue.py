"""The catalogue covers the plan, and the passes themselves say what a kernel allows."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.optimisations import (
    LAYOUT,
    OPTIMISATIONS,
    UNCHANGED,
    BuiltPrograms,
    neutral,
    optimisation,
    possible,
    reason_of,
    without,
)
from lanewise.compiler.pipeline import build_program
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.patterns.pairwise.build import PAIRWISE
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.support.errors import PlanError
from tests.corpus import case
from tests.harness import CUDA_PLAN, reference_kernel
from tests.patterns.panelled import CASES

SLICED = Plan(block=256, tile=256, slices=4, targets=2, unroll=8).filled(CUDA_PLAN)
FIELDS = [o.field for o in OPTIMISATIONS if o.field != LAYOUT]


def test_every_field_of_the_plan_is_one_optimisation() -> None:
    assert sorted(FIELDS) == sorted(f.name for f in fields(Plan))
    assert len({o.name for o in OPTIMISATIONS}) == len(FIELDS) + 1


@pytest.mark.parametrize("field", FIELDS)
def test_values_start_neutral_and_are_described(field: str) -> None:
    entry = optimisation(field)
    for kind in ("cpu", "cuda"):
        for pattern in (PAIRWISE, ELEMENTWISE):
            values = entry.values(kind, pattern)
            assert not values or values[0] == neutral(field, kind)
            texts = [entry.describe(v, kind) for v in values]
            assert len(set(texts)) == len(texts)
    assert entry.describe(getattr(NEUTRAL, field))


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@pytest.mark.parametrize("name", ["gravity", "yukawa", "kick_drift"])
def test_the_neutral_plan_is_legal(name: str, kind: str) -> None:
    plan = Plan(**{f: neutral(f, kind) for f in FIELDS})
    build_program(reference_kernel(case(name), lw.SoA(), kind), plan, kind)


def test_reasons_are_those_of_the_passes() -> None:
    reference = reference_kernel(case("gravity"), lw.SoAoAS(), "cuda")
    refused = possible(reference, SLICED, "cuda", "tile", 64)
    assert refused is not None
    assert refused.startswith("shared-memory tiles cannot be applied to gravity: a tile of 64 sources is no multiple")
    assert reason_of(refused) == "a tile of 64 sources is no multiple of the 256 threads that stage it"
    assert possible(reference, SLICED, "cuda", "targets", 4) is None
    cpu = possible(reference_kernel(case("gravity"), lw.SoA(), "cpu"), NEUTRAL, "cpu", "slices", 2)
    assert cpu is not None
    assert reason_of(cpu) == "only a GPU divides the sources of one target; on a CPU slices is 1"


def test_what_changes_nothing_is_said() -> None:
    reference = reference_kernel(case("kick_drift"), lw.SoAoAS(), "cuda")
    plan = Plan(block=32).filled(NEUTRAL)
    assert possible(reference, plan, "cuda", "block", 128) is None
    assert possible(reference, plan, "cuda", "fast_math", True) is None
    found = possible(reference, plan, "cuda", "rsqrt", "hardware")
    assert found is not None  # there is no square root in it: refused by the pass, or without effect
    assert found == UNCHANGED or "cannot be applied" in found


def test_what_rests_on_an_optimisation_goes_with_it() -> None:
    reference = reference_kernel(case("gravity"), lw.SoAoAS(), "cuda")
    assert without(reference, SLICED, "cuda", "unroll") == (replace(SLICED, unroll=1), ())
    assert without(reference, SLICED, "cuda", "tile") == (replace(SLICED, tile=0, slices=1), ("slices",))


def test_what_is_refused_for_another_reason_is_taken_off_too() -> None:
    programs = BuiltPrograms(reference_kernel(case("gravity"), lw.SoAoAS(), "cuda"), "cuda")
    broken = replace(SLICED, targets=0)
    assert programs.without(broken, "unroll") == (replace(broken, unroll=1, targets=1), ("targets",))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("unrolling cannot be applied to f: it has no loop: none", "it has no loop: none"),
        ("Plan(block=33, slices=2): the threads: all", "the threads: all"),
        ("something else: with a colon", "something else: with a colon"),
    ],
)
def test_heads_are_taken_off(message: str, reason: str) -> None:
    assert reason_of(message) == reason


BESIDE = (
    {"registers": 40}, {"registers": 15}, {"min_blocks": 2}, {"min_blocks": 8}, {"fast_math": True},
    {"fast_math": True, "registers": 64}, {"min_blocks": 2, "registers": 40},
)  # fmt: skip


@pytest.mark.parametrize("name", ["gravity", "kick_drift", "grow", "panels"])
def test_programs_of_plans_alike_are_those_that_passes_make(name: str) -> None:
    if name == "panels":
        made, zeros = CASES[0], np.random.default_rng(1)
        reference = made.kernel.compile(**made.make(zeros, 20, 8), grid=8).reference
        plan = Plan(block=32, across=8, rows=2, targets=4, tile=4, unroll=0, panel=8).filled(NEUTRAL)
    else:
        reference, plan = reference_kernel(case(name), lw.SoAoAS(), "cuda"), Plan(block=64).filled(NEUTRAL)
    programs = BuiltPrograms(reference, "cuda")
    for beside in BESIDE:
        wanted = replace(plan, **beside)
        found = programs.get(wanted)
        if not isinstance(found, str):
            assert found == build_program(reference, wanted, "cuda")
            continue
        with pytest.raises(PlanError) as refusal:
            build_program(reference, wanted, "cuda")
        assert found == str(refusal.value)

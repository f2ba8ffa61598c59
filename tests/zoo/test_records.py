"""Kernels over records are right on a CPU in every layout, and explained for a GPU without an internal error."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.emit.cuda import emit_cuda
from lanewise.explanation.build import explain
from lanewise.explanation.calls import call_subject
from lanewise.ir.pattern import Pattern
from lanewise.models.devices import table_model
from lanewise.patterns.search.build import SEARCH
from lanewise.runtime.nvrtc import compile_cubin
from tests.fuzz.elsewhere import ARCHITECTURE
from tests.fuzz.texts import executed
from tests.fuzz.trial import draw_wish, fewer
from tests.zoo.generate import SMALL, WAVE
from tests.zoo.record_forms import FIRST, FORMS, generate
from tests.zoo.record_truth import call_of, check, records_of
from tests.zoo.records import RecordCase

QUICK, MANY = (0, 2, 4), 400  # one of each family
FORMED = range(FIRST, FIRST + 60 * len(FORMS))
QUICK_FORMED = (FORMED[5], FORMED[7], FORMED[11])  # elements, extremes and pairs
LAYOUTS = (None, "auto", lw.AoS(), lw.SoA(), lw.AoAS(), lw.SoAoAS(), lw.AoSoA(16))


def each(name: str, quick: Sequence[int] = QUICK) -> Any:
    """Seeds, of which a few are quick."""
    return pytest.mark.parametrize(
        name,
        [pytest.param(s, marks=() if s in quick else pytest.mark.slow) for s in (*range(MANY), *FORMED)],
    )


def call(
    case: RecordCase, names: Any, size: str, layout: Any, **how: Any
) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """The results of a call, the fields of its elements and its tables after it."""
    records = records_of(case, names.Item, size, layout=layout)
    tables = case.given_arrays()
    out = call_of(case, names.kernel, size)(*records, *case.uniforms.values(), **tables, **how)
    found = [np.asarray(f) for f in (out if isinstance(out, tuple) else () if out is None else (out,))]
    return found, records[0].numpy(), tables


@each("seed", (*QUICK, *QUICK_FORMED))
def test_a_cpu_computes_what_the_function_says(seed: int) -> None:
    case = generate(seed)
    with executed(case.text, f"zoo_records_{seed}.py") as names:
        layout = Random(seed).choice(LAYOUTS)
        check(case, SMALL, *call(case, names, SMALL, layout))
        if seed % 8 == 0 and seed not in QUICK:
            check(case, WAVE, *call(case, names, WAVE, layout))


@pytest.mark.parametrize("seed", [pytest.param(s, marks=() if s == FORMED[5] else pytest.mark.slow) for s in FORMED])
def test_plans_of_a_cpu_compute_what_the_function_says(seed: int) -> None:
    """A random one."""
    case, rng = generate(seed), Random(seed)
    with executed(case.text, f"zoo_records_{seed}.py") as names:
        for wish in fewer(rng, draw_wish(rng, "cpu", pattern_of(case, names))):
            try:
                out = call(case, names, SMALL, None, plan=wish)
            except lw.PlanError:
                continue
            check(case, SMALL, *out)
            return


def pattern_of(case: RecordCase, names: Any) -> Pattern:
    return SEARCH if case.family == "searches" else names.kernel._calls.skeleton.pattern


@pytest.mark.parametrize("seed", [pytest.param(s, marks=() if s == FORMED[5] else pytest.mark.slow) for s in FORMED])
def test_the_compiler_of_a_gpu_takes_it(seed: int) -> None:
    """With the default plan and a random one."""
    case, rng = generate(seed), Random(seed)
    with executed(case.text, f"zoo_records_{seed}.py") as names:
        records, tables = records_of(case, names.Item, SMALL), case.given_arrays()
        kernel, given = call_of(case, names.kernel, SMALL), (*records, *case.uniforms.values())
        for wish in (lw.Plan(), *fewer(rng, draw_wish(rng, "cuda", pattern_of(case, names)))):
            try:
                subject, _, _ = call_subject(kernel, given, tables, "cuda", table_model("sm_90"), requested=wish)
                program = build_program(subject.reference, subject.plan, "cuda")
            except lw.PlanError:
                continue
            for k in program.kernels:
                assert compile_cubin(emit_cuda(k, "zoo"), k.name, ARCHITECTURE).code
            if wish != lw.Plan():
                return


@pytest.mark.parametrize(
    "part",
    [
        "lw.KMin[lw.f32, 1]", "lw.KMin[lw.f32, 32]", "lw.ArgKMin[", "lw.LogSumExp[", "lw.Any", "lw.All", "if mode == 0", "if flag",
        "cut > 0.0", "range(turns)", "lw.scatter_min(least", "lw.scatter_max(most", "lw.scatter_min(first", "lw.scatter_max(last",
    ],
)  # fmt: skip
def test_later_forms_draw_all_of_it(part: str) -> None:
    assert any(part in generate(seed).text for seed in FORMED)


@each("seed")
def test_it_is_explained_for_a_gpu(seed: int) -> None:
    case = generate(seed)
    with executed(case.text, f"zoo_records_{seed}.py") as names:
        records = records_of(case, names.Item, SMALL)
        tables = case.given_arrays()
        kernel, given = call_of(case, names.kernel, SMALL), (*records, *case.uniforms.values())
        subject, _, _ = call_subject(kernel, given, tables, "cuda", table_model("sm_90"))
        build_program(subject.reference, subject.plan, "cuda")
        assert "internal error" not in str(explain(subject, resources={}, measure_resources=False))

"""Kernels over records are right on a CPU in every layout, and explained for a GPU without an internal error."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.explanation.build import explain
from lanewise.explanation.calls import call_subject
from lanewise.models.devices import table_model
from tests.fuzz.texts import executed
from tests.zoo.generate import SMALL, WAVE
from tests.zoo.record_truth import call_of, check, records_of
from tests.zoo.records import RecordCase, generate

QUICK, MANY = (0, 2, 4), 400  # one of each family
LAYOUTS = (None, "auto", lw.AoS(), lw.SoA(), lw.AoAS(), lw.SoAoAS(), lw.AoSoA(16))


def each(name: str) -> Any:
    """Seeds, of which a few are quick."""
    return pytest.mark.parametrize(
        name, [pytest.param(s, marks=() if s in QUICK else pytest.mark.slow) for s in range(MANY)]
    )


def call(case: RecordCase, names: Any, size: str, layout: Any) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """The results of a call, the fields of its elements and its tables after it."""
    records = records_of(case, names.Item, size, layout=layout)
    tables = {n: a.astype(np.float32) for n, a in case.arrays().items()}
    out = call_of(case, names.kernel, size)(*records, *case.uniforms.values(), **tables)
    found = [np.asarray(f) for f in (out if isinstance(out, tuple) else () if out is None else (out,))]
    return found, records[0].numpy(), tables


@each("seed")
def test_a_cpu_computes_what_the_function_says(seed: int) -> None:
    case = generate(seed)
    with executed(case.text, f"zoo_records_{seed}.py") as names:
        layout = Random(seed).choice(LAYOUTS)
        check(case, SMALL, *call(case, names, SMALL, layout))
        if seed % 8 == 0 and seed not in QUICK:
            check(case, WAVE, *call(case, names, WAVE, layout))


@each("seed")
def test_it_is_explained_for_a_gpu(seed: int) -> None:
    case = generate(seed)
    with executed(case.text, f"zoo_records_{seed}.py") as names:
        records = records_of(case, names.Item, SMALL)
        tables = {n: a.astype(np.float32) for n, a in case.arrays().items()}
        kernel, given = call_of(case, names.kernel, SMALL), (*records, *case.uniforms.values())
        subject, _, _ = call_subject(kernel, given, tables, "cuda", table_model("sm_90"))
        build_program(subject.reference, subject.plan, "cuda")
        assert "internal error" not in str(explain(subject, resources={}, measure_resources=False))

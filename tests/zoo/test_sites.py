"""Flows with their own collisions and stencils are right on a CPU, and explained for a GPU without an
internal error.
"""

from __future__ import annotations

from typing import Any

import pytest

from lanewise.compiler.pipeline import build_program
from lanewise.explanation.build import explain
from lanewise.models.devices import table_model
from tests.fuzz.elsewhere import step_for_a_gpu
from tests.fuzz.texts import executed
from tests.zoo.generate import SMALL, WAVE
from tests.zoo.sites import check, found, generate, sites_of

QUICK, MANY = (1, 3), 160  # one of each family


def each(name: str) -> Any:
    """Seeds, of which a few are quick."""
    return pytest.mark.parametrize(
        name, [pytest.param(s, marks=() if s in QUICK else pytest.mark.slow) for s in range(MANY)]
    )


@each("seed")
def test_a_cpu_computes_what_the_function_says(seed: int) -> None:
    case = generate(seed)
    with executed(case.text, f"zoo_sites_{seed}.py") as names:
        for size in (SMALL, WAVE) if seed % 8 in (0, 2) else (SMALL,):
            check(case, names, size, found(case, names.kernel, sites_of(case, names.kernel, size), size))


@pytest.mark.cuda
@pytest.mark.parametrize("seed", range(0, MANY, 4))
def test_a_gpu_computes_what_the_function_says(seed: int) -> None:
    case = generate(seed)
    with executed(case.text, f"zoo_sites_{seed}.py") as names:
        check(case, names, SMALL, found(case, names.kernel, sites_of(case, names.kernel, SMALL, "cuda"), SMALL))


@each("seed")
def test_it_is_explained_for_a_gpu(seed: int) -> None:
    case = generate(seed)
    with executed(case.text, f"zoo_sites_{seed}.py") as names:
        sites = sites_of(case, names.kernel, SMALL)
        subject = step_for_a_gpu(names.kernel, sites, case.uniforms, table_model("sm_90"), None)
        build_program(subject.reference, subject.plan, "cuda")
        assert "internal error" not in str(explain(subject, resources={}, measure_resources=False))

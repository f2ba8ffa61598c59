"""Sums and extremes of elementwise kernels over so many elements that threads of a GPU have several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import build_program
from lanewise.compiler.work import describe_work
from lanewise.ir.pattern import MANY
from lanewise.language.target import CUDA, Machine
from lanewise.language.types import F32, I32
from lanewise.patterns.elementwise.build import (
    ElementwiseArguments,
    build_elementwise,
    build_reduction,
    reduction_work,
)

GPU = Machine("cuda", 132, copies=True)


@lw.record
class Star:
    position: lw.vec3
    mass: lw.f32


@lw.elementwise
def energy(star: Star, potential: lw.f32) -> lw.f64:
    return 0.5 * lw.f64(star.mass) * potential


@lw.elementwise
def height(star: Star) -> lw.f32:
    return star.position.z


@lw.elementwise
def doubled(x: lw.f32) -> lw.f32:
    return 2.0 * x


STARS = {"star": (Star.__record__, lw.SoA())}  # type: ignore[attr-defined]
KERNELS: dict[str, tuple[Any, ElementwiseArguments]] = {
    "energy": (energy, ElementwiseArguments(STARS, {"potential": F32}, {})),
    "height": (height, ElementwiseArguments(STARS, {}, {})),
    "doubled": (doubled, ElementwiseArguments({}, {"x": F32}, {})),
}


@pytest.mark.parametrize("operation", ["sum", "min", "max"])
@pytest.mark.parametrize("name", KERNELS)
def test_reductions_of_any_size_have_a_default_plan_on_cuda(name, operation):
    kernel, given = KERNELS[name]
    together = []
    for count in (1, 1000, MANY - 1, MANY, MANY + 1, 10 * MANY, 2**31 - 1):
        elements = describe_work(build_elementwise(kernel.lowered, given, I32), count, CUDA)
        together.append(complete_plan(None, GPU, elements).targets)
        plan = complete_plan(None, GPU, reduction_work(elements))
        reduction = build_reduction(kernel.lowered, given, I32, operation, strided=True)
        assert build_program(reduction, plan, "cuda").kernels
    assert max(together) > 1  # where the plain call has several elements a thread


@pytest.mark.cuda
@pytest.mark.parametrize("count", [MANY - 1, MANY + 3])
def test_large_reductions_on_a_gpu(count):
    x = np.random.default_rng(1).random(count, np.float32)
    position = np.zeros((count, 3), np.float32)
    position[:, 2] = x
    stars: Any = Star.array(position=position, mass=x, device="cuda")  # type: ignore[attr-defined]
    given = stars.mass
    assert doubled.sum(given) == pytest.approx(2 * x.sum(dtype=np.float64), rel=1e-12)
    assert (doubled.min(given), doubled.max(given)) == (2 * x.min(), 2 * x.max())
    assert (height.min(stars), height.max(stars)) == (x.min(), x.max())
    wanted = 0.5 * np.square(x.astype(np.float64)).sum()
    assert energy.sum(stars, given) == pytest.approx(wanted, rel=1e-12)
